"""Reading the events of a Causal Memory Core from its DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cvx.errors import ExportError, InputFileError
from cvx.store.transfer.duck import opened

_COLUMNS = ("event_id", "timestamp", "effect_text", "embedding", "cause_id", "relationship_text")
_BATCH = 2_000
_PLAIN = (
    "SELECT event_id, epoch_us(timestamp), effect_text, embedding, cause_id, relationship_text"
    " FROM events ORDER BY event_id"
)
# A row of events is never updated: a cause that was confirmed later stands beside it.
_RETRIED = """
SELECT event_id, epoch_us(events.timestamp), effect_text, embedding,
    coalesce(events.cause_id, later.cause_id), coalesce(relationship_text, explanation)
FROM events LEFT JOIN (
    SELECT effect_id, arg_max(cause_id, judgement_id) AS cause_id,
        arg_max(coalesce(explanation, ''), judgement_id) AS explanation
    FROM judgements WHERE verdict = 'yes' GROUP BY effect_id
) AS later ON later.effect_id = event_id
ORDER BY event_id
"""


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
        found = db.execute("SELECT table_name, column_name FROM duckdb_columns()").fetchall()
        missing = set(_COLUMNS) - {column for table, column in found if table == "events"}
        if missing:
            raise ExportError(
                f"{path} has no table events with {', '.join(sorted(missing))}: give the file of "
                "a CausalMemoryCore"
            )
        count = db.execute("SELECT count(*) FROM events").fetchone()
        total = 0 if count is None else int(count[0])
        retried = any(table == "judgements" for table, _ in found)
        cursor = db.execute(_RETRIED if retried else _PLAIN)
        while rows := cursor.fetchmany(_BATCH):
            yield [CoreEvent(*row) for row in rows], total
