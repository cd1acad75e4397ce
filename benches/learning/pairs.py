"""Pairwise accuracy: how often a success is ranked above a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cvx.scoring.logistic import Floats

_RESAMPLES = 2000


class Interval(NamedTuple):
    """A figure with its 95 % interval, by resampling tasks."""

    value: float
    low: float
    high: float


def pair_auc(
    outcomes: Floats, predict: Callable[[Sequence[int], Sequence[int]], Floats]
) -> Interval:
    """Return the AUC over pairs of tasks, each predicted from all tasks but the two.

    Predictions of left-out tasks made one at a time cannot be compared: the better a task ended,
    the lower the base rate of the others. Trials of one task are told apart by nothing, and count
    as ties.

    Parameters
    ----------
    outcomes : ndarray of shape (tasks, trials)
    predict : callable
        From the known tasks and the pair to the chances of the two.

    References
    ----------
    Airola et al. 2011, An experimental comparison of cross-validation techniques for estimating
    the area under the ROC curve.
    """
    n = len(outcomes)
    above = np.full((n, n), 0.5)
    for one in range(n):
        for other in range(one + 1, n):
            known = [task for task in range(n) if task not in (one, other)]
            first, second = predict(known, [one, other]).tolist()
            above[one, other] = 0.5 if first == second else float(first > second)
            above[other, one] = 1.0 - above[one, other]
    wins, losses = outcomes.sum(axis=1), (1.0 - outcomes).sum(axis=1)
    compared = np.outer(wins, losses)
    return _resampled(above * compared, compared)


def pooled_auc(outcomes: Floats, chances: Floats) -> Interval:
    """Return the AUC of given predictions of every trial, both of shape (tasks, trials)."""
    higher = chances[:, :, None, None] > chances[None, None]
    same = chances[:, :, None, None] == chances[None, None]
    each = (higher + 0.5 * same) * outcomes[:, :, None, None] * (1.0 - outcomes)[None, None]
    compared = np.outer(outcomes.sum(axis=1), (1.0 - outcomes).sum(axis=1))
    return _resampled(each.sum(axis=(1, 3)), compared)


def _resampled(above: Floats, compared: Floats) -> Interval:
    """Return sum(above) / sum(compared) over pairs of tasks, tasks drawn with replacement."""
    n = len(above)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=_RESAMPLES).astype(np.float64)

    def total(values: Floats) -> Floats:
        # A task drawn twice is not compared with its copy, which would tell nothing apart.
        within = np.diag(values)
        across = values - np.diag(within)
        return np.asarray(((drawn @ across) * drawn).sum(axis=1) + drawn @ within)

    low, high = np.quantile(total(above) / total(compared), [0.025, 0.975])
    return Interval(float(above.sum() / compared.sum()), float(low), float(high))
