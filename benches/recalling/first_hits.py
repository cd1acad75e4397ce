"""Calibration of the first hit's relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvx.evaluation import Label
from cvx.memory import Memory

_BINS = 10


@dataclass(frozen=True)
class First:
    """One question: whether nothing came back, and what of the first hit, if it is wanted."""

    group: str
    empty: bool
    answerable: float
    relevance: float
    wanted: bool


def asked_once(memory: Memory, labels: Sequence[Label]) -> list[First]:
    """Ask each question of a memory as it is shipped."""
    out = []
    for label in labels:
        hits = memory.recall(label.query, 1, namespace=label.namespace)
        first = next(iter(hits or hits.nearest), None)
        known = None if first is None or first.event is None else first.event.event_id
        out.append(
            First(
                label.group or "",
                not hits,
                1.0 if hits.trace.answerable is None else hits.trace.answerable,
                0.0 if first is None or first.relevance is None else first.relevance,
                known in label.gold,
            )
        )
    return out


def calibrated_to(found: Sequence[First]) -> tuple[float, float]:
    """Return the expected calibration error in ten bins, and the Brier skill over the base rate."""
    said = np.array([one.relevance for one in found])
    true = np.array([one.wanted for one in found], dtype=float)
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    error = sum(
        np.mean(bins == at) * abs(said[bins == at].mean() - true[bins == at].mean())
        for at in set(bins.tolist())
    )
    brier = np.mean((said - true) ** 2)
    return float(error), float(1.0 - brier / (true.mean() * (1.0 - true.mean())))
