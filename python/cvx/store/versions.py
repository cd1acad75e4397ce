"""The statements that make each version of the tables out of the one before.

Column order is part of the format: new columns go to the end.
"""

VERSION_1 = """
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

VERSION_2 = """
ALTER TABLE events ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN trust REAL NOT NULL DEFAULT 1.0;
ALTER TABLE events ADD COLUMN visibility TEXT NOT NULL DEFAULT 'private';
ALTER TABLE events ADD COLUMN salience REAL;
ALTER TABLE events ADD COLUMN state TEXT NOT NULL DEFAULT 'active';
ALTER TABLE events ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
CREATE INDEX events_by_source ON events (source);
CREATE INDEX events_public ON events (namespace) WHERE visibility = 'public';
CREATE INDEX events_put_away ON events (state) WHERE state <> 'active';
ALTER TABLE episodes ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE links ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decays ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE model_state ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;

CREATE TABLE aliases (
    node INTEGER PRIMARY KEY,
    event_id INTEGER NOT NULL REFERENCES events (event_id),
    text TEXT NOT NULL,
    embedding BLOB,
    recorded INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
CREATE INDEX aliases_by_event ON aliases (event_id);

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded INTEGER NOT NULL,
    op TEXT NOT NULL,
    body TEXT NOT NULL,
    chain INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
"""

WORDS_2 = """
CREATE VIRTUAL TABLE events_words USING fts5(text, content='');
CREATE VIRTUAL TABLE events_pairs USING fts5(text, content='', tokenize='unicode61');
"""
"""What the index made in a record of version 2, and version 3 in its own way."""

VERSION_3 = """
ALTER TABLE events ADD COLUMN key TEXT;
CREATE UNIQUE INDEX events_by_key ON events (namespace, key) WHERE key IS NOT NULL;
CREATE INDEX events_scope ON events
    (event_id, namespace, visibility, state, node, recallable);
DROP INDEX events_by_source;
CREATE INDEX events_by_source ON events (source) WHERE source <> '';
ALTER TABLE usage ADD COLUMN last_used INTEGER;
ALTER TABLE decisions ADD COLUMN record TEXT NOT NULL DEFAULT '{}';
DROP INDEX events_by_episode;
CREATE INDEX events_by_episode ON events (episode) WHERE episode IS NOT NULL;
DROP TABLE IF EXISTS events_words;
DROP TABLE IF EXISTS events_pairs;
"""

SET_ASIDE = """
CREATE TABLE IF NOT EXISTS set_aside (
    number INTEGER PRIMARY KEY,
    recorded INTEGER NOT NULL,
    why TEXT NOT NULL,
    from_table TEXT NOT NULL,
    row TEXT NOT NULL
)
"""
"""Made by the first repair that takes a row out of the record."""
