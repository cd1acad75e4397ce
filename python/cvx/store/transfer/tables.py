"""The columns of an export, in an order in which nothing refers to what comes later."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cvx.errors import DamagedStoreError, ExportError
from cvx.store import rows
from cvx.store.rowcheck import RowCheck
from cvx.store.suspicion import tags_with_mark

_TEXT, _TAGS = (rows.COLUMNS["events"].index(name) for name in ("text", "tags"))
ORDER = (
    "episodes", "events", "aliases", "links", "usage", "decays", "decisions", "model_state",
    "journal",
)  # fmt: skip
Row = tuple[Any, ...]
Batch = tuple[str, list[Row]]
Progress = Callable[[int, int], None] | None

_BATCH = 5_000


def columns(table: str) -> tuple[str, ...]:
    """Return the columns of a table in an export, the checksum last."""
    return (*rows.COLUMNS[table], "crc")


def types(db: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return the declared type of each column: INTEGER, REAL, TEXT or BLOB."""
    declared = {row[1]: row[2] for row in db.execute(f"PRAGMA table_info({table})")}
    return {name: declared[name] for name in columns(table)}


def batches(db: sqlite3.Connection) -> Iterator[Batch]:
    """Yield every row of a record with its checksum, table by table, some thousand at once.

    Raises
    ------
    DamagedStoreError
        A row is not what was written.
    """
    for table in ORDER:
        key = ", ".join(rows.KEYS[table])
        cursor = db.execute(f"SELECT {', '.join(columns(table))} FROM {table} ORDER BY {key}")
        while some := cursor.fetchmany(_BATCH):
            for row in some:
                if rows.row_crc(*row[:-1]) != row[-1]:
                    raise DamagedStoreError(
                        f"row {key_of(table, row)} of {table} is not what was written: run "
                        "`cvx doctor --repair` before you export"
                    )
            yield table, some


def check_rows(some: Iterable[Row], table: str, where: str) -> None:
    """Hold rows against their checksums.

    Raises
    ------
    ExportError
        One, named, is not what was written.
    """
    for place, row in enumerate(some):
        if not rows.whole(row):
            raise ExportError(
                f"{where}, row {place} (key {key_of(table, row)}) is not what was written: export "
                "again. Nothing was taken in"
            )


def key_of(table: str, row: Row) -> list[Any]:
    """Return the primary key of a row."""
    names = rows.COLUMNS[table]
    return [row[names.index(name)] for name in rows.KEYS[table]]


def checked(found: Iterable[Batch], check: RowCheck) -> Iterator[Batch]:
    """Pass batches on in which every row could have been written by cvx.

    An event that reads like an order is marked as one, whatever the export says of it.

    Raises
    ------
    ExportError
        A row, named, could not.
    """
    for table, some in found:
        for row in some:
            why = check.refusal(table, row[:-1])
            if why is not None:
                raise ExportError(
                    f"row {key_of(table, row)} of {table} could not have been written by cvx "
                    f"({why}): export again. Nothing was taken in"
                )
        yield table, [_marked(row) for row in some] if table == "events" else some


def _marked(row: Row) -> Row:
    """Return an event's row with the mark that it would have got here."""
    tags = json.loads(row[_TAGS])
    marked = tags_with_mark(tags, row[_TEXT])
    if len(marked) == len(tags):
        return row
    changed = (*row[:_TAGS], json.dumps(marked, separators=(",", ":")), *row[_TAGS + 1 : -1])
    return (*changed, rows.row_crc(*changed))


def counted(found: Iterable[Batch], total: int, progress: Progress) -> Iterator[Batch]:
    """Pass batches on, and say how far they are."""
    done = 0
    for table, some in found:
        yield table, some
        done += len(some)
        if progress is not None:
            progress(done, total)
