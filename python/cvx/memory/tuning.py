"""The recall of a memory, as it was tuned on its own questions and stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvx.recall import Pipeline
from cvx.recall.signals import DEFAULT_WEIGHTS, Answerable, attentive
from cvx.store import Record

_NAME = "recall"


def tuning(
    record: Record, weights: Mapping[str, float] | None, answerable: Answerable | None
) -> tuple[str, dict[str, Any]]:
    """Return the name and value under which a tuning is stored."""
    return _NAME, {
        "weights": None if weights is None else dict(weights),
        "answerable": None if answerable is None else answerable.to_dict(),
        "embedder": record.meta("embedder"),
    }


def tuned(record: Record) -> Pipeline:
    """Return the pipeline of a record: the one that was stored, else the shipped one."""
    stored = record.state(_NAME)
    if stored is None:
        return attentive()
    floor = stored["answerable"]
    if floor is not None and stored["embedder"] != record.meta("embedder"):
        floor = None
    return attentive(
        DEFAULT_WEIGHTS if stored["weights"] is None else stored["weights"],
        None if floor is None else Answerable.from_dict(floor),
    )
