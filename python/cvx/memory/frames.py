"""Events as a polars frame."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cvx.types import Event

if TYPE_CHECKING:
    import polars as pl

_FRAME = (
    "event_id",
    "timestamp",
    "text",
    "entity",
    "namespace",
    "kind",
    "action",
    "reward",
    "salience",
    "source",
    "trust",
    "visibility",
    "state",
    "episode",
    "tags",
    "metadata",
    "recorded",
)
_ATTRIBUTES = [{"entity": "entity_id", "episode": "episode_id"}.get(n, n) for n in _FRAME]


def _schema() -> dict[str, Any]:
    import polars as pl

    numbers = {"event_id", "timestamp", "entity", "episode", "recorded"}
    reals = {"reward", "salience", "trust"}
    types: dict[str, Any] = dict.fromkeys(numbers, pl.Int64) | dict.fromkeys(reals, pl.Float64)
    return {
        name: pl.List(pl.String) if name == "tags" else types.get(name, pl.String)
        for name in _FRAME
    }


def events_frame(events: Iterable[Event]) -> pl.DataFrame:
    """Return events as a frame, one row each, in their order; ``Memory.events`` lists the columns.

    Metadata are JSON.
    """
    import polars as pl

    columns: dict[str, list[Any]] = {name: [] for name in _FRAME}
    for event in events:
        for name, attribute in zip(_FRAME, _ATTRIBUTES, strict=True):
            value = getattr(event, attribute)
            if name == "metadata":
                value = json.dumps(value)
            columns[name].append(list(value) if name == "tags" else value)
    return pl.DataFrame(columns, schema=_schema())
