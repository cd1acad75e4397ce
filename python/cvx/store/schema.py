"""The way from each older version of the record to this one, and what a record may consist of."""

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
from cvx.store import staging, text
from cvx.store.failpoints import reach
from cvx.store.rows import COLUMNS, crc_sql, row_crc
from cvx.store.versions import SET_ASIDE, VERSION_1, VERSION_2, VERSION_3, WORDS_2

SCHEMA_VERSION = 3

_ADDED_BY_3 = {"events": 1, "usage": 1, "decisions": 1}
"""Columns at the end of tables that version 2 did not have."""


def _columns_of_2(table: str) -> tuple[str, ...]:
    names = COLUMNS[table]
    return names[: len(names) - _ADDED_BY_3.get(table, 0)]


def _to_version_1(db: sqlite3.Connection) -> None:
    _run(db, VERSION_1)


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
    text.create(db)
    text.refill(db)
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
    _to_version_1,
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


class Foreign(NamedTuple):
    """A part of a database that is none of a record, or not as a record has it.

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
    missing : bool
        Whether it is not there at all.
    """

    kind: str
    name: str
    what: str
    sql: str | None
    missing: bool = False

    @property
    def unreadable(self) -> bool:
        """Whether a table of the record is another one: nothing can be read that way."""
        return self.kind == "table" and self.sql is not None


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
    out = []
    for (kind, name), sql in there.items():
        if name.startswith("sqlite_") and kind in ("table", "index"):
            continue
        known = (kind, name) in expected or (kind, name) in optional
        own = expected.get((kind, name), optional.get((kind, name)))
        if not known:
            out.append(Foreign(kind, name, f"the {kind} is none of cvx", None))
        elif _plain(sql) != _plain(own) and not _SHADOW.fullmatch(name):
            out.append(Foreign(kind, name, f"the {kind} is not as cvx makes it", own))
    out += [
        Foreign(kind, name, f"the {kind} is missing", own, missing=True)
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
        told = f"{where} is no record of cvx ({error}): give another file"
        raise StoreVersionError(told) from error
    if 0 < version <= SCHEMA_VERSION:
        _check(db, version, where, to_examine=to_examine)
    return version


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
    found = [one for one in foreign(db, version) if one.unreadable or not to_examine]
    if found:
        named = "; ".join(f"{one.name}: {one.what}" for one in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        cure = (
            "restore a copy, or save what can be read with `cvx doctor --salvage NEW_FOLDER`"
            if any(one.unreadable for one in found)
            else "`cvx doctor` names them all, `cvx doctor --repair` takes them away"
        )
        raise DamagedStoreError(f"{where} is not as cvx made it ({named}{more}): {cure}")


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
            staging.create(db)
        db.execute(SET_ASIDE)
        optional = {part: sql for part, sql in _parts(db).items() if part not in expected}
        return expected, optional


def _plain(sql: object) -> str:
    return re.sub(r"[\s\"'`]+", "", str(sql))
