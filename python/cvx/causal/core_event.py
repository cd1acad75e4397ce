"""One event of a causal memory core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from cvx.types import Vector

COLUMNS = (
    "event_id",
    "timestamp",
    "effect_text",
    "embedding",
    "cause_id",
    "relationship_text",
)
"""Of ``events``, in the order of the blueprint; a file may have more behind them."""


@dataclass(frozen=True, slots=True)
class CoreEvent:
    """A row of ``events``.

    Parameters
    ----------
    event_id : int
        From 1 up, in the order of writing.
    timestamp : datetime
        When it was recorded, in UTC, without a zone.
    effect_text : str
        What happened.
    embedding : ndarray of shape (dim,), float32
    cause_id : int, optional
        What led to it; ``None`` for the root of a chain.
    relationship_text : str, optional
        How; ``None`` exactly where ``cause_id`` is.
    """

    event_id: int
    timestamp: datetime
    effect_text: str
    embedding: Vector = field(repr=False, compare=False)
    cause_id: int | None = None
    relationship_text: str | None = None

    @property
    def id(self) -> int:
        """The same as ``event_id``."""
        return self.event_id

    @property
    def text(self) -> str:
        """The same as ``effect_text``."""
        return self.effect_text


def core_event(row: Sequence[Any]) -> CoreEvent:
    """Return an event from the first columns of its row."""
    event_id, timestamp, text, embedding, cause_id, relationship = row[: len(COLUMNS)]
    vector = np.asarray(embedding, dtype=np.float32)
    return CoreEvent(int(event_id), timestamp, text, vector, cause_id, relationship)
