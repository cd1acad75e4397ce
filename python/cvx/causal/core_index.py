"""Which earlier events are near: the vector index beside a core's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from cvx.causal.core_event import CoreEvent
from cvx.errors import DimensionError, InvalidParameterError
from cvx.index import TemporalIndex
from cvx.types import Vector


@dataclass(frozen=True, slots=True)
class CauseSearch:
    """Which earlier events are looked at as causes.

    Parameters
    ----------
    most : int, default 5
        How many are judged, the most similar and the most recent in turn; at least 1.
    threshold : float, default 0.5
        What is less similar comes in as recent only; in [-1, 1].
    window_s : float, default 86400
        How old, in seconds, what is recent may be.
    latest : int, default 50
        How many of the latest events count as recent.
    """

    most: int = 5
    threshold: float = 0.5
    window_s: float = 86_400.0
    latest: int = 50

    def __post_init__(self) -> None:
        bounds = {
            "most": self.most >= 1,
            "threshold": -1.0 <= self.threshold <= 1.0,
            "window_s": self.window_s >= 0.0,
            "latest": self.latest >= 0,
        }
        for name, good in bounds.items():
            if not good:
                raise InvalidParameterError(
                    f"{name} is {getattr(self, name)}: give most >= 1, threshold in [-1, 1], "
                    "window_s and latest >= 0"
                )


class CoreIndex:
    """What a core's events say and where they lie, in RAM, built anew at every opening.

    No other process can write to the file, other cores of this one can: ``missing`` tells what.

    Parameters
    ----------
    events : sequence of CoreEvent
        What is stored already.
    """

    def __init__(self, events: Sequence[CoreEvent]) -> None:
        self._index: TemporalIndex | None = None
        self._rows: list[tuple[int, datetime, str]] = []
        if events:
            self.add(events)

    def __len__(self) -> int:
        return len(self._rows)

    def missing(self, ids: Sequence[int]) -> list[int] | None:
        """Return which of the ids in the file are not here; None if more are here than there."""
        known = {row[0] for row in self._rows}
        return [one for one in ids if one not in known] if known <= set(ids) else None

    def check(self, embedding: Vector) -> None:
        """See to it that a vector can be compared.

        Raises
        ------
        DimensionError
            Another dimension than that of the vectors before.
        """
        if self._index is not None and len(embedding) != self._index.dim:
            raise DimensionError(
                f"the vector has {len(embedding)} dimensions, those of the file "
                f"{self._index.dim}: give the embedding model that it was made with"
            )

    def add(self, events: Sequence[CoreEvent]) -> None:
        """Take in events."""
        if self._index is None:
            self._index = TemporalIndex(len(events[0].embedding))
        # A vector of zeros has no direction: nothing is similar to it.
        rows: list[Any] = [e.embedding if e.embedding.any() else None for e in events]
        whole = all(row is not None for row in rows)
        places = np.arange(len(self._rows), len(self._rows) + len(events))
        self._index.bulk_insert(
            np.zeros(len(events), dtype=np.int64), places, np.stack(rows) if whole else rows
        )
        self._rows += [(event.event_id, event.timestamp, event.effect_text) for event in events]

    def similar(self, embedding: Vector, most: int, threshold: float) -> list[CoreEvent]:
        """Return events at least so similar, the most similar first; their causes are left out.

        Raises
        ------
        DimensionError
            As for ``check``.
        """
        if self._index is None or not embedding.any():
            return []
        self.check(embedding)
        nodes, distances = self._index.search(embedding, most)
        return [
            self._event(node)
            for node, distance in zip(nodes.tolist(), distances.tolist(), strict=True)
            if 1.0 - distance >= threshold
        ]

    def latest(self, most: int, since: datetime) -> Iterator[CoreEvent]:
        """Yield the events recorded last, the last one first; their causes are left out."""
        last = len(self._rows)
        for node in range(last - 1, max(last - most, 0) - 1, -1):
            if self._rows[node][1] >= since:
                yield self._event(node)

    def _event(self, node: int) -> CoreEvent:
        assert self._index is not None
        vector = self._index.vector(node)
        return CoreEvent(
            *self._rows[node], np.zeros(self._index.dim, np.float32) if vector is None else vector
        )
