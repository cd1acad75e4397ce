"""Rows of the record as polars frames, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.store import Record

if TYPE_CHECKING:
    import polars as pl

_INTEGERS = ("event_id", "timestamp", "entity", "episode", "recorded", "episode_id", "decision_id")
_REALS = ("reward", "salience", "trust", "weight", "outcome")
_OF_EVENTS = (
    "event_id", "timestamp", "text", "entity", "namespace", "kind", "action", "reward",
    "salience", "source", "trust", "visibility", "state", "episode", "tags", "metadata",
    "recorded", "key",
)  # fmt: skip


def events_frame(
    record: Record, namespace: str | None, state: str | None, dim: int | None
) -> pl.DataFrame:
    """Return events, with vectors of this dimension unless it is None; see ``Memory.events``."""
    import polars as pl

    columns = record.columns(
        "events",
        "WHERE (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR state = ?2) ORDER BY event_id",
        (namespace, state),
    )
    frame = _frame(columns, _OF_EVENTS).with_columns(
        pl.col("tags").str.json_decode(pl.List(pl.String))
    )
    return frame if dim is None else frame.with_columns(_vectors(columns["embedding"], dim))


def links_frame(record: Record) -> pl.DataFrame:
    """Return links between events; see ``Memory.links``."""
    import polars as pl

    frame = _frame(
        record.columns("links", "ORDER BY from_node, to_node, kind"),
        ("from_node", "to_node", "kind", "weight", "why", "evidence", "recorded"),
    )
    owners = pl.DataFrame(
        record.query(
            "SELECT node, event_id FROM events WHERE node IS NOT NULL"
            " UNION ALL SELECT node, event_id FROM aliases"
        ),
        schema={"node": pl.Int64, "event": pl.Int64},
        orient="row",
    )
    for end in ("from", "to"):
        named = owners.rename({"event": f"{end}_event"})
        frame = frame.join(
            named, left_on=f"{end}_node", right_on="node", how="left", maintain_order="left"
        )
    return frame.select("from_event", "to_event", "kind", "weight", "why", "evidence", "recorded")


def episodes_frame(record: Record) -> pl.DataFrame:
    """Return closed episodes; see ``Memory.episodes``."""
    import polars as pl

    columns = record.columns("episodes", "ORDER BY episode_id")
    steps = pl.DataFrame(
        record.query("SELECT episode, count(*) FROM events WHERE episode NOT NULL GROUP BY 1"),
        schema={"episode_id": pl.Int64, "steps": pl.Int64},
        orient="row",
    )
    frame = _frame(columns, tuple(columns))
    counted = frame.join(steps, on="episode_id", how="left", maintain_order="left")
    return counted.with_columns(pl.col("steps").fill_null(0))


def decisions_frame(record: Record) -> pl.DataFrame:
    """Return what was asked, and what became of it; see ``Memory.decisions``."""
    import polars as pl

    columns = record.columns("decisions", "ORDER BY decision_id")
    return _frame(columns, tuple(columns)).with_columns(
        pl.col("followed").str.json_decode(pl.List(pl.Int64))
    )


def _frame(columns: dict[str, Sequence[Any]], names: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    def kind(name: str) -> type[pl.DataType]:
        if name in _INTEGERS or name.endswith("_node"):
            return pl.Int64
        return pl.Float64 if name in _REALS else pl.String

    return pl.DataFrame([pl.Series(name, columns[name], dtype=kind(name)) for name in names])


def _vectors(blobs: Sequence[bytes | None], dim: int) -> pl.Series:
    import polars as pl

    nothing = bytes(4 * dim)
    # One buffer for all of them, which the column then shares.
    joined = b"".join(nothing if blob is None else blob for blob in blobs)
    rows = np.frombuffer(joined, dtype="<f4").reshape(len(blobs), dim)
    column = pl.Series("vector", rows, dtype=pl.Array(pl.Float32, dim))
    missing = pl.Series([blob is None for blob in blobs], dtype=pl.Boolean)
    return column if not missing.any() else column.set(missing, None)
