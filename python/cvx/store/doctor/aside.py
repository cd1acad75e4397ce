"""The table of rows that were taken out of the record because nothing else could be done."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from cvx.store import rows
from cvx.store.record import Record
from cvx.store.versions import SET_ASIDE

TABLE = "set_aside"


def read(db: sqlite3.Connection, table: str, key: Sequence[object]) -> Row | None:
    """Return a row with its checksum, however damaged; None where it is gone."""
    names = (*rows.COLUMNS[table], "crc")
    condition, values = where(table, key)
    found: Row | None = db.execute(
        f"SELECT {', '.join(names)} FROM {table} WHERE {condition}", values
    ).fetchone()
    return found


Row = tuple[Any, ...]


def move(
    db: sqlite3.Connection, table: str, key: Sequence[object], why: str, recorded: int
) -> None:
    """Move one row into the table ``set_aside``, as it reads now."""
    row = read(db, table, key)
    if row is None:
        return
    names = (*rows.COLUMNS[table], "crc")
    kept = {name: _plain(value) for name, value in zip(names, row, strict=True)}
    db.execute(SET_ASIDE)
    db.execute(
        f"INSERT INTO {TABLE} (recorded, why, from_table, row) VALUES (?, ?, ?, ?)",
        (recorded, why, table, json.dumps(kept)),
    )
    condition, values = where(table, key)
    db.execute(f"DELETE FROM {table} WHERE {condition}", values)


def set_aside(record: Record) -> int:
    """Return how many rows repairs have moved here."""
    if not record.query("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)):
        return 0
    return int(record.query(f"SELECT count(*) FROM {TABLE}")[0][0])


def discard(record: Record) -> int:
    """Throw away for good what repairs have moved here; returns how many rows that were."""
    number = set_aside(record)
    if number:
        with record.transaction() as write:
            write.connection.execute(f"DROP TABLE {TABLE}")
        record.compact()
    return number


def where(table: str, key: Sequence[object]) -> tuple[str, list[object]]:
    """Return the condition for one primary key, damaged text included."""
    conditions, values = list[str](), list[object]()
    for name, value in zip(rows.KEYS[table], key, strict=True):
        if isinstance(value, str):
            conditions.append(f"CAST({name} AS BLOB) = ?")
            values.append(value.encode("utf-8", "surrogateescape"))
        else:
            conditions.append(f"{name} IS ?")
            values.append(value)
    return " AND ".join(conditions), values


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value
