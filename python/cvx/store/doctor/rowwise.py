"""Rows against their checksums, pages and secondary indexes against the rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cvx.errors import InvalidInputError
from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.reads import event_of
from cvx.validation import check_event, storable_text, storable_vector

_MOST = 1000
_OF_AN_INDEX = re.compile(r"missing from index|entries in index|non-unique entry in index")
_OF_A_ROW = re.compile(r"CHECK constraint failed|NULL value in|non-\w+ value in")


def damaged_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that is not what was written."""
    for table in rows.COLUMNS:
        try:
            for damage in rows.damaged(db, (table,)):
                yield Finding(
                    Check.ROW,
                    f"{damage.table} {_shown(damage.key)}",
                    "the row is not what was written: its checksum does not hold",
                    damage.table,
                    damage.key,
                )
        except sqlite3.DatabaseError as error:
            yield Finding(Check.PAGE, table, f"the table cannot be read to its end ({error})")


def unstorable_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every event and alias that is whole and that no index or reader could take."""
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('dim', 'metric')"))
    dim, metric = int(meta.get("dim", 0)), str(meta.get("metric"))
    for table, refusal in (("events", event_refused), ("aliases", alias_refused)):
        names = rows.COLUMNS[table]
        key = names.index(rows.KEYS[table][0])
        for row in db.execute(f"SELECT {', '.join(names)}, crc FROM {table}"):
            what = refusal(row[:-1], dim, metric) if rows.whole(row) else None
            if what is not None:
                where = f"{table} {_shown((row[key],))}"
                yield Finding(Check.VALUE, where, what, table, (row[key],))


def event_refused(row: Sequence[Any], dim: int, metric: str) -> str | None:
    """Return why a row of events could not have been added, None where it could."""
    try:
        event = event_of(row)
        check_event(event)
        if event.vector is not None and dim:
            storable_vector("the vector", event.vector, dim, metric)
    except (InvalidInputError, ValueError, TypeError, RecursionError) as error:
        return str(error)
    return None


def alias_refused(row: Sequence[Any], dim: int, metric: str) -> str | None:
    """Return why a row of aliases could not have been added, None where it could."""
    try:
        storable_text("the text", row[2])
        if dim:
            storable_vector("the vector", np.frombuffer(row[3], dtype="<f4"), dim, metric)
    except (InvalidInputError, ValueError, TypeError) as error:
        return str(error)
    return None


def damaged_pages(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name what SQLite itself finds wrong with its pages and indexes."""
    try:
        said = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({_MOST})")]
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    for text in said:
        # What concerns the content of a row is found, and named better, by its checksum.
        if text == "ok" or _OF_A_ROW.search(text):
            continue
        check = Check.SECONDARY_INDEX if _OF_AN_INDEX.search(text) else Check.PAGE
        yield Finding(check, "memory.db", text)


def count_rows(db: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each checked table has; those that cannot be read have none."""
    out = {}
    for table in rows.COLUMNS:
        try:
            out[table] = int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.DatabaseError:
            out[table] = 0
    return out


def _shown(key: tuple[object, ...]) -> str:
    return str(list(key)).encode("ascii", "backslashreplace").decode()
