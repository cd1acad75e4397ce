"""Signals that the formulas of the source documents weigh: likeness, age, salience, use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cvx.recall.candidates import Candidates, Column
from cvx.recall.view import View
from cvx.scoring.formulas import NEUTRAL_REWARD
from cvx.scoring.recency import Decay
from cvx.types import IntArray

Columns = Mapping[str, npt.NDArray[np.floating[Any]]]
SignalOf = Callable[[Any, Candidates, View], Columns]

NEUTRAL_SALIENCE = 0.5


def similarity(kind: Literal["cosine", "clamped", "exponential"] = "cosine") -> SignalOf:
    """Return the column ``similarity``: as it is, 0 where negative, or exp(-distance).

    0 without a vector.
    """
    return partial(similarity_column, kind=kind)


def similarity_column(_question: Any, table: Candidates, view: View, *, kind: str) -> Columns:
    """Compute ``similarity``."""
    values = table["dense"]
    if kind == "exponential":
        far = 1.0 / values - 1.0 if view.index.metric == "l2" else 1.0 - values
        values = np.exp(-far)
    elif kind == "clamped":
        values = np.clip(values, 0.0, 1.0)
    return {"similarity": np.nan_to_num(values, nan=0.0)}


def recency(
    decay: Decay,
    since: Literal["used", "happened"] = "used",
    *,
    slowed_by_salience: bool = False,
) -> SignalOf:
    """Return the column ``recency``: decay since an event was last used, or since it happened.

    Parameters
    ----------
    decay : Decay
        In the unit of the timestamps.
    since : {"used", "happened"}, default "used"
        What was never used was last used when it happened.
    slowed_by_salience : bool, default False
        What matters more fades more slowly; see `Decay.slowed`.
    """
    return partial(recency_column, decay=decay, since=since, slowed=slowed_by_salience)


def recency_column(
    _question: Any, table: Candidates, view: View, *, decay: Decay, since: str, slowed: bool
) -> Columns:
    """Compute ``recency``."""
    times = view.last_used(table.rows) if since == "used" else view.timestamps[table.rows]
    age = (view.now - times).astype(np.float64)
    return {"recency": decay.slowed(_salience(table), age) if slowed else decay(age)}


def salience(_question: Any, table: Candidates, _view: View) -> Columns:
    """Return the column ``salience``: how much it mattered; 0.5 where nobody said."""
    return {"salience": _salience(table)}


def _salience(table: Candidates) -> Column:
    return np.nan_to_num(table["salience"], nan=NEUTRAL_SALIENCE)


def reward(_question: Any, table: Candidates, _view: View) -> Columns:
    """Return the column ``reward``: how it ended; 0.5 where that is not known."""
    return {"reward": np.nan_to_num(table["reward"], nan=NEUTRAL_REWARD)}


def usage_success(
    mode: Literal["beta", "ratio"] = "beta", strength: float = 0.3, mean: float = 0.5
) -> SignalOf:
    """Return the column ``usage_success``: how well following it went, from ``feedback``.

    The mean of a Beta posterior, or helped / (helped + followed) as RFC-013 has it.
    """
    return partial(usage_column, mode=mode, strength=strength, mean=mean)


def usage_column(
    _question: Any, table: Candidates, view: View, *, mode: str, strength: float, mean: float
) -> Columns:
    """Compute ``usage_success``."""
    followed, helped = view.use(table.rows)
    if mode == "ratio":
        return {"usage_success": helped / np.maximum(helped + followed, 1.0)}
    return {"usage_success": (helped + strength * mean) / (followed + strength)}


def region_match(level: int) -> SignalOf:
    """Return the column ``region_match``: 1 where a candidate lies in the region of the cue.

    It reads the regions of all nodes: O(n) a recall.
    """
    return partial(region_column, level=level)


def region_column(_question: Any, table: Candidates, view: View, *, level: int) -> Columns:
    """Compute ``region_match``."""
    nodes, regions = view.index.region_assignments(level)
    if view.vector is None or not len(nodes):
        return {"region_match": np.zeros(len(table))}
    own = int(view.index.assign_region(view.vector.tolist(), level))
    inside: IntArray = nodes[regions == own]
    return {"region_match": np.isin(view.corpus.nodes[table.rows], inside).astype(np.float64)}
