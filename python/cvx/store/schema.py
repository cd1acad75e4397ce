"""The tables of the record. Column order is part of the format: new columns go to the end."""

from __future__ import annotations

SCHEMA_VERSION = 1

TABLES = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE episodes (
    episode_id INTEGER PRIMARY KEY,
    entity INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    goal TEXT NOT NULL,
    task_type TEXT,
    reward REAL NOT NULL CHECK (reward BETWEEN 0 AND 1),
    metadata TEXT NOT NULL,
    recorded INTEGER NOT NULL
);
CREATE INDEX episodes_by_entity ON episodes (namespace, entity);

CREATE TABLE events (
    event_id INTEGER PRIMARY KEY,
    timestamp INTEGER NOT NULL,
    text TEXT NOT NULL,
    embedding BLOB,
    entity INTEGER NOT NULL,
    node INTEGER UNIQUE,
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    action TEXT,
    metadata TEXT NOT NULL,
    reward REAL CHECK (reward BETWEEN 0 AND 1),
    recallable INTEGER NOT NULL,
    episode INTEGER REFERENCES episodes (episode_id),
    tags TEXT NOT NULL,
    recorded INTEGER NOT NULL
);
CREATE INDEX events_by_entity ON events (namespace, entity, timestamp);
CREATE INDEX events_by_episode ON events (episode);

CREATE TABLE links (
    from_node INTEGER NOT NULL,
    to_node INTEGER NOT NULL,
    kind TEXT NOT NULL,
    weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
    why TEXT NOT NULL,
    evidence TEXT NOT NULL,
    recorded INTEGER NOT NULL,
    PRIMARY KEY (from_node, to_node, kind)
) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (to_node);

CREATE TABLE usage (
    context TEXT PRIMARY KEY,
    retrieved INTEGER NOT NULL,
    followed INTEGER NOT NULL,
    helped INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE decays (
    episode INTEGER NOT NULL,
    node INTEGER NOT NULL,
    before REAL NOT NULL,
    after REAL NOT NULL,
    recorded INTEGER NOT NULL,
    PRIMARY KEY (episode, node)
) WITHOUT ROWID;

CREATE TABLE decisions (
    decision_id INTEGER PRIMARY KEY,
    episode INTEGER REFERENCES episodes (episode_id),
    cue TEXT NOT NULL,
    hits TEXT NOT NULL,
    action_scores TEXT NOT NULL,
    rendered TEXT NOT NULL,
    action TEXT,
    followed TEXT NOT NULL,
    outcome REAL,
    recorded INTEGER NOT NULL
);
CREATE INDEX decisions_by_episode ON decisions (episode);

CREATE TABLE model_state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    recorded INTEGER NOT NULL
) WITHOUT ROWID;
"""
