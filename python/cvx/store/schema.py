"""The way from each older version of the record to this one."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable

from cvx.store import text
from cvx.store.failpoints import reach
from cvx.store.rows import COLUMNS, crc_sql
from cvx.store.versions import VERSION_1, VERSION_2, VERSION_3

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
