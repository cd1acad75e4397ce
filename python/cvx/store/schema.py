"""The database schema: tables of each version, migrations, detection of foreign objects."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import lru_cache
from typing import NamedTuple

from cvx.errors import DamagedStoreError, StoreVersionError
from cvx.store import fulltext
from cvx.store.failpoints import reach
from cvx.store.rows import COLUMNS, crc_sql, row_crc

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
"""Repairs by older versions took rows out of the record into this."""
_CREATE_STAGED = (
    "CREATE TABLE staged (node INTEGER PRIMARY KEY, embedding BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TRIGGER staged_event_gone AFTER DELETE ON events"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
    "CREATE TRIGGER staged_event_moved AFTER UPDATE OF node ON events"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
    "CREATE TRIGGER staged_alias_gone AFTER DELETE ON aliases"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
)
_DROP_STAGED = (
    "DROP TRIGGER IF EXISTS staged_event_gone",
    "DROP TRIGGER IF EXISTS staged_event_moved",
    "DROP TRIGGER IF EXISTS staged_alias_gone",
    "DROP TABLE IF EXISTS staged",
)


SCHEMA_VERSION = 3

_ADDED_BY_3 = {"events": 1, "usage": 1, "decisions": 1}
"""Columns at the end of tables that version 2 did not have."""


def _columns_of_2(table: str) -> tuple[str, ...]:
    names = COLUMNS[table]
    return names[: len(names) - _ADDED_BY_3.get(table, 0)]


def _to_version_2(db: sqlite3.Connection) -> None:
    _run(db, VERSION_2)
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
        db.execute(f"UPDATE {table} SET crc = {crc_sql(_columns_of_2(table))}")
    next_node, next_event = db.execute(
        "SELECT ifnull(max(node), -1) + 1, ifnull(max(event_id), 0) + 1 FROM events"
    ).fetchone()
    _set_meta(db, uuid=uuid.uuid4().hex, next_node=next_node, next_event=next_event)


def _to_version_3(db: sqlite3.Connection) -> None:
    _run(db, VERSION_3)
    reach("migrate.widened")
    for table in _ADDED_BY_3:
        # A row that was damaged before stays what it is: only a right checksum is carried on.
        db.execute(
            f"UPDATE {table} SET crc = {crc_sql(COLUMNS[table])}"
            f" WHERE crc = {crc_sql(_columns_of_2(table))}"
        )
    fulltext.create(db)
    fulltext.refill(db)
    next_decision, written = db.execute(
        "SELECT (SELECT ifnull(max(decision_id), -1) + 1 FROM decisions),"
        " max((SELECT ifnull(max(recorded), 0) FROM events),"
        " (SELECT ifnull(max(recorded), 0) FROM journal))"
    ).fetchone()
    # Before this version, counts and models were overwritten without a trace of what they were.
    _set_meta(db, next_decision=next_decision, whole_since=written)


def _set_meta(db: sqlite3.Connection, **values: object) -> None:
    db.executemany(
        "INSERT INTO meta VALUES (?, ?)", [(name, str(value)) for name, value in values.items()]
    )


_STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    lambda db: _run(db, VERSION_1),
    _to_version_2,
    _to_version_3,
)


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


def drop_staged(db: sqlite3.Connection) -> None:
    """Take away the table in which older versions kept the vectors of a move."""
    for statement in _DROP_STAGED:
        db.execute(statement)


class Foreign(NamedTuple):
    """A table, index, trigger or view that a record does not have, or has differently.

    Attributes
    ----------
    kind : str
        "table", "index", "trigger" or "view".
    name : str
        Its name.
    what : str
        What is wrong with it.
    sql : str or None
        How a record makes it; None where it has no such part.
    """

    kind: str
    name: str
    what: str
    sql: str | None


_Parts = Mapping[tuple[str, str], str | None]
_SHADOW = re.compile(r"events_(words|pairs)_(data|idx|docsize|config)")
"""Tables that FTS5 keeps for itself, each version of it in its own way."""


def foreign(db: sqlite3.Connection, version: int) -> list[Foreign]:
    """Name what a database has beside the tables and indexes of a version, or has otherwise.

    A trigger would run with everything that is written, a view stand in for a table, an index
    refuse rows: a file from somebody else may hold any of them.
    """
    there = _parts(db)
    expected, optional = _expected(version)
    known, out = {**optional, **expected}, []
    for (kind, name), sql in there.items():
        if name.startswith("sqlite_") and kind in ("table", "index"):
            continue
        own = known.get((kind, name))
        if (kind, name) not in known:
            out.append(Foreign(kind, name, f"the {kind} is none of cvx", None))
        elif _plain(sql) != _plain(own) and not _SHADOW.fullmatch(name):
            out.append(Foreign(kind, name, f"the {kind} is not as cvx makes it", own))
    out += [
        Foreign(kind, name, f"the {kind} is missing", own)
        for (kind, name), own in expected.items()
        if (kind, name) not in there and not name.startswith("sqlite_")
    ]
    return out


def version_of(db: sqlite3.Connection, where: str, *, to_examine: bool = False) -> int:
    """Return the version of a record, 0 for an empty file.

    Parameters
    ----------
    db : sqlite3.Connection
        The database.
    where : str
        Its path, for messages.
    to_examine : bool, default False
        Let pass what does not stand in for a table of the record: it is there to be named.

    Raises
    ------
    StoreVersionError
        It is none.
    DamagedStoreError
        It is of this version or an older one, and consists of something else.
    """
    try:
        there = _parts(db)
        version = _told_version(db, there) if there else 0
    except (TypeError, ValueError) as error:
        raise StoreVersionError(
            f"{where} is no record of cvx ({error}): give another file"
        ) from error
    if 0 < version <= SCHEMA_VERSION:
        _check(db, version, where, to_examine=to_examine)
    return version


def check_version(version: int, where: str) -> None:
    """Refuse to examine or repair a record of another version.

    Raises
    ------
    StoreVersionError
        It is older, or newer.
    """
    if version != SCHEMA_VERSION:
        cure = (
            "open it once with its embedder, which brings it to this version"
            if version < SCHEMA_VERSION
            else "examine and repair it with the cvx that wrote it"
        )
        raise StoreVersionError(
            f"{where} has schema version {version}, this examines {SCHEMA_VERSION}: {cure}"
        )


def _told_version(db: sqlite3.Connection, there: _Parts) -> int:
    meta = ("table", "meta")
    if _plain(there.get(meta)) != _plain(_expected(1)[0][meta]):
        raise ValueError("it has no table meta, or another one")
    found = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    version = int(found[0])
    if version < 1:
        raise ValueError(f"schema version {version}")
    return version


def _check(db: sqlite3.Connection, version: int, where: str, *, to_examine: bool) -> None:
    found = foreign(db, version)
    if to_examine:
        # Where a table of the record is another one, nothing can be read.
        found = [one for one in found if one.kind == "table" and one.sql is not None]
    if found:
        named = "; ".join(f"{one.name}: {one.what}" for one in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise DamagedStoreError(
            f"{where} is not as cvx made it ({named}{more}): restore a copy, or save what is sound "
            "with `cvx doctor --repair NEW_FOLDER`"
        )


def _parts(db: sqlite3.Connection) -> _Parts:
    found = db.execute("SELECT type, name, sql FROM sqlite_master")
    return {(str(kind), str(name)): sql for kind, name, sql in found}


@lru_cache(maxsize=SCHEMA_VERSION)
def _expected(version: int) -> tuple[_Parts, _Parts]:
    """Return the parts that a record of a version has, and those that it may have."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.create_function("cvx_crc", -1, row_crc, deterministic=True)
        for step in _STEPS[:version]:
            step(db)
        expected = _parts(db)
        if version == 2:
            _run(db, WORDS_2)
        if version >= 2:
            for statement in _CREATE_STAGED:
                db.execute(statement)
        db.execute(SET_ASIDE)
        optional = {part: sql for part, sql in _parts(db).items() if part not in expected}
        return expected, optional


def _plain(sql: object) -> str:
    return re.sub(r"[\s\"'`]+", "", str(sql))
