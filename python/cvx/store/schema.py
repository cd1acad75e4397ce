"""The tables of the record, and the way from each older version to this one.

Column order is part of the format: new columns go to the end.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable

from cvx.store import text
from cvx.store.failpoints import reach
from cvx.store.rows import COLUMNS, renew_crc_sql

SCHEMA_VERSION = 2

_VERSION_1 = """
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

_VERSION_2 = """
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


def _to_version_1(db: sqlite3.Connection) -> None:
    _run(db, _VERSION_1)


def _to_version_2(db: sqlite3.Connection) -> None:
    _run(db, _VERSION_2)
    text.create(db)
    reach("migrate.altered")
    # Until now the family of goals was a tag of the index alone; a rebuild needs it here.
    families = db.execute(
        "SELECT event_id, tags, task_type FROM events JOIN episodes ON episode = episode_id"
        " WHERE node IS NOT NULL AND task_type IS NOT NULL"
    ).fetchall()
    db.executemany(
        "UPDATE events SET tags = ? WHERE event_id = ?",
        (
            (json.dumps([f"task:{family}", *json.loads(tags)], separators=(",", ":")), event)
            for event, tags, family in families
        ),
    )
    for table in COLUMNS:
        db.execute(renew_crc_sql(table, "true"))
    text.refill(db)
    next_node, next_event = db.execute(
        "SELECT ifnull(max(node), -1) + 1, ifnull(max(event_id), 0) + 1 FROM events"
    ).fetchone()
    db.executemany(
        "INSERT INTO meta VALUES (?, ?)",
        [
            ("uuid", uuid.uuid4().hex),
            ("next_node", str(next_node)),
            ("next_event", str(next_event)),
        ],
    )


_STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (_to_version_1, _to_version_2)


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a database from a version (0: empty) to this one, in one transaction.

    The caller holds the lock of the record.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in _STEPS[version:]:
            step(db)
        db.execute("INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", (SCHEMA_VERSION,))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _run(db: sqlite3.Connection, script: str) -> None:
    # executescript() would commit first.
    for statement in script.split(";"):
        if statement.strip():
            db.execute(statement)
