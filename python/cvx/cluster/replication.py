"""Replication: captures the rows a primary changes, and applies them to its copies."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvx.store import Record, fulltext, rows
from cvx.store.database import connect, tail_of, take_back

Row = tuple[Any, ...]
_TABLES = {**rows.KEYS, "meta": ("key",)}


@dataclass(slots=True)
class Change:
    """The rows that one or more transactions changed, as they were left.

    Final values and never statements: to apply it twice does what applying it once does.

    Parameters
    ----------
    put : dict of str to list of tuple
        By table: whole rows as they are now, their checksums included.
    gone : dict of str to list of tuple
        By table: the keys of rows that are there no more.
    """

    put: dict[str, list[Row]] = field(default_factory=dict)
    gone: dict[str, list[Row]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.put or self.gone)

    @property
    def erases(self) -> bool:
        """Whether something was erased for good."""
        return any(row[2] == "erase" for row in self.put.get("journal", ()))

    def to_json(self) -> str:
        """Return it as text, as a bucket keeps it."""
        return json.dumps([self.put, self.gone], default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Change:
        """Return what ``to_json`` wrote."""
        put, gone = (
            {table: [tuple(map(_whole, row)) for row in some] for table, some in store.items()}
            for store in json.loads(text)
        )
        return cls(put, gone)


def _plain(value: object) -> object:
    assert isinstance(value, bytes)
    return {"bytes": base64.b64encode(value).decode()}


def _whole(value: Any) -> Any:
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value


class Capture:
    """Notes which rows of a record change, in temporary triggers of the connection that writes.

    They are store of each transaction: what is taken back is not noted, and nothing of them is in
    the file.

    Parameters
    ----------
    record : Record
        The record of a shard.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        with record.database.locked():
            db = record.database.connection()
            db.execute("CREATE TEMP TABLE IF NOT EXISTS touched (tab TEXT, key TEXT)")
            for table, keys in _TABLES.items():
                for verb, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
                    key = ", ".join(f"{row}.{name}" for name in keys)
                    db.execute(
                        f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{verb} AFTER {verb}"
                        f" ON main.{table} BEGIN"
                        f" INSERT INTO touched VALUES ('{table}', json_array({key})); END"
                    )

    def take(self) -> Change:
        """Return what was committed since the last time."""
        change = Change()
        with self._record.database.locked(), self._record.database.typed_errors():
            db = self._record.database.connection()
            touched = db.execute("SELECT DISTINCT tab, key FROM temp.touched").fetchall()
            for table, packed in touched:
                key = tuple(json.loads(packed))
                found = db.execute(_select(table), key).fetchone()
                if found is None:
                    change.gone.setdefault(table, []).append(key)
                else:
                    change.put.setdefault(table, []).append(found)
            db.execute("DELETE FROM temp.touched")
        return change


def _select(table: str) -> str:
    names = ("key", "value") if table == "meta" else rows.stored_columns(table)
    where = " AND ".join(f"{name} = ?" for name in _TABLES[table])
    return f"SELECT {', '.join(names)} FROM {table} WHERE {where}"


def apply(record: Record, *changes: Change) -> None:
    """Make the rows of a copy those of its shard, in one transaction that is synced.

    The copy refuses every other write. Its index and columns follow at the next read, by the
    journal, as they follow what another process wrote.

    Raises
    ------
    RecordIOError
        The disk is full or failed; nothing was stored.
    """
    database = record.database
    with database.locked(), database.typed_errors():
        db = database.connection()
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute("PRAGMA defer_foreign_keys = ON")
            for change in changes:
                _put(db, change)
            database.commit(db, tail_of(db))
        except BaseException:
            take_back(db)
            raise


def _put(db: sqlite3.Connection, change: Change) -> None:
    events = {row[0] for row in (*change.put.get("events", ()), *change.gone.get("events", ()))}
    events |= {row[1] for row in change.put.get("aliases", ())}
    for (node,) in change.gone.get("aliases", ()):
        events |= {
            row[0] for row in db.execute("SELECT event_id FROM aliases WHERE node = ?", (node,))
        }
    said = {event: fulltext.whole(db, event) for event in sorted(events)}
    for table in reversed(_TABLES):
        where = " AND ".join(f"{name} = ?" for name in _TABLES[table])
        db.executemany(f"DELETE FROM {table} WHERE {where}", change.gone.get(table, ()))
    for table in _TABLES:
        some = change.put.get(table, [])
        if table == "meta":
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", some)
        else:
            db.executemany(rows.insert_sql(table, replace=True), some)
    if change.erases:
        # Words that are taken out one by one stay in the segments of the index for a while.
        fulltext.refill(db)
        return
    for event, before in said.items():
        after = fulltext.whole(db, event)
        if before != after:
            fulltext.replace(db, event, before, after)


def copy_to(record: Record, path: Path) -> None:
    """Write a consistent copy of a record to a file, while others write.

    It is read in one view of the write-ahead log, which keeps nobody waiting.
    """
    with closing(connect(Path(record.path))) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
