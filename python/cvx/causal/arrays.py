"""Memories and events as the arrays that a fusion rule sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cvx.causal.events import CausalEvent, EventId
from cvx.causal.fusion import Ancestors, Candidates
from cvx.causal.stream import ScoredMemory
from cvx.causal.vectors import unit
from cvx.errors import DimensionError
from cvx.types import Vector


def as_candidates(scored: Sequence[ScoredMemory], dim: int) -> Candidates:
    """Return memories for a fusion rule; one without a vector gets a row of zeros.

    Raises
    ------
    DimensionError
        Vectors of different lengths.
    """
    return Candidates(
        vectors=_rows([one.memory.embedding for one in scored], dim),
        similarity=np.array([one.relevance for one in scored]),
        recency=np.array([one.recency for one in scored]),
        importance=np.array([one.importance for one in scored]),
    )


def as_ancestors(
    events: Sequence[CausalEvent],
    dim: int,
    depths: Mapping[EventId, int],
    weights: Mapping[EventId, float],
) -> Ancestors:
    """Return events for a fusion rule, with the depth and the path weight of each by its id.

    Raises
    ------
    DimensionError
        Vectors of different lengths.
    """
    return Ancestors(
        vectors=_rows([event.embedding for event in events], dim),
        depths=np.array([depths[event.id] for event in events], dtype=np.int64),
        weights=np.array([weights[event.id] for event in events], dtype=np.float64),
        times=np.array([event.tick for event in events], dtype=np.int64),
    )


def _rows(vectors: Sequence[Vector | None], dim: int) -> Vector:
    if not vectors:
        return np.zeros((0, dim), dtype=np.float32)
    return _stacked([np.zeros(dim, np.float32) if v is None else unit(v) for v in vectors])


def _stacked(rows: list[Vector]) -> Vector:
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise DimensionError(
            f"vectors of {sorted(lengths)} dimensions cannot be compared: embed all with one model"
        )
    return np.stack(rows)
