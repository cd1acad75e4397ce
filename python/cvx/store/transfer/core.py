"""Reading the events of a Causal Memory Core from its DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cvx.errors import ExportError
from cvx.store.transfer.duck import base_tables, opened

_COLUMNS = ("event_id", "timestamp", "effect_text", "embedding", "cause_id", "relationship_text")
_BATCH = 2_000
_PLAIN = (
    "SELECT event_id, epoch_us(timestamp), effect_text, embedding, cause_id, relationship_text"
    " FROM main.events ORDER BY event_id"
)
# A row of events is never updated: a cause that was confirmed later stands beside it.
_RETRIED = """
SELECT event_id, epoch_us(events.timestamp), effect_text, embedding,
    coalesce(events.cause_id, later.cause_id), coalesce(relationship_text, explanation)
FROM main.events LEFT JOIN (
    SELECT effect_id, arg_max(cause_id, judgement_id) AS cause_id,
        arg_max(coalesce(explanation, ''), judgement_id) AS explanation
    FROM main.judgements WHERE verdict = 'yes' GROUP BY effect_id
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
    FileError
        There is no such file, or it is none of DuckDB's.
    ExportError
        It has no table ``events`` with the blueprint's columns.
    MissingExtraError
        The package duckdb is not installed.
    """
    with opened(path) as db:
        tables = base_tables(db)
        found = db.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = 'events'"
            " AND schema_name = 'main'"
        ).fetchall()
        missing = set(_COLUMNS) - {column for (column,) in found}
        if missing or "events" not in tables:
            raise ExportError(
                f"{path} has no table events with {', '.join(sorted(missing or _COLUMNS))}: give "
                "the file of a CausalMemoryCore"
            )
        total = tables["events"]
        retried = "judgements" in tables
        cursor = db.execute(_RETRIED if retried else _PLAIN)
        while rows := cursor.fetchmany(_BATCH):
            yield [CoreEvent(*row) for row in rows], total
