"""Reading the events of a Causal Memory Core from its DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cvx.errors import ExportError, InputFileError
from cvx.store.transfer.duck import opened

_COLUMNS = ("event_id", "timestamp", "effect_text", "embedding", "cause_id", "relationship_text")
_BATCH = 2_000


class CoreEvent(NamedTuple):
    """A row of the blueprint's table.

    Attributes
    ----------
    event_id : int
        There.
    timestamp : int
        Microseconds since 1970-01-01 UTC.
    effect_text : str
        What it says.
    embedding : list of float
        Of a model that the file does not name.
    cause_id : int or None
        Its cause.
    relationship_text : str or None
        How that led to it.
    """

    event_id: int
    timestamp: int
    effect_text: str
    embedding: list[float]
    cause_id: int | None
    relationship_text: str | None


def core_events(path: Path) -> Iterator[tuple[list[CoreEvent], int]]:
    """Yield batches of events in the order of their ids, each with the number of all.

    Raises
    ------
    InputFileError
        There is no such file, or it is none of DuckDB's.
    ExportError
        It has no table ``events`` with the blueprint's columns.
    MissingExtraError
        The package duckdb is not installed.
    """
    if not path.is_file():
        raise InputFileError(f"{path} cannot be read: there is no such file")
    with opened(path, read_only=True) as db:
        found = db.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = 'events'"
        ).fetchall()
        missing = set(_COLUMNS) - {row[0] for row in found}
        if missing:
            raise ExportError(
                f"{path} has no table events with {', '.join(sorted(missing))}: give the file of "
                "a CausalMemoryCore"
            )
        count = db.execute("SELECT count(*) FROM events").fetchone()
        total = 0 if count is None else int(count[0])
        cursor = db.execute(
            "SELECT event_id, epoch_us(timestamp), effect_text, embedding, cause_id,"
            " relationship_text FROM events ORDER BY event_id"
        )
        while rows := cursor.fetchmany(_BATCH):
            yield [CoreEvent(*row) for row in rows], total
