"""How good a ranking is, and how honest a probability.

Relevance is binary: an event answers, or does not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidParameterError


def recall_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the share of the gold that is among the first k.

    Parameters
    ----------
    ranked : sequence
        Best first, each once.
    gold : collection
        What answers, not empty.
    k : int
        How many count, at least 1.

    Examples
    --------
    >>> recall_at([3, 1, 2], {1, 9}, 2)
    0.5
    """
    _check(gold, k)
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def ndcg_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the discounted gain of the first k as a share of the best one possible.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques; log base 2.

    Examples
    --------
    >>> ndcg_at([3, 1], {3}, 2), round(ndcg_at([1, 3], {3}, 2), 3)
    (1.0, 0.631)
    """
    _check(gold, k)
    wanted = set(gold)
    gain = sum(
        1.0 / math.log2(place + 2) for place, item in enumerate(ranked[:k]) if item in wanted
    )
    best = sum(1.0 / math.log2(place + 2) for place in range(min(k, len(wanted))))
    return gain / best


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 / place of the first that answers, 0 if none does.

    Examples
    --------
    >>> reciprocal_rank([4, 7], {7})
    0.5
    """
    _check(gold, 1)
    wanted = set(gold)
    return next((1.0 / at for at, item in enumerate(ranked, start=1) if item in wanted), 0.0)


def brier(probabilities: npt.ArrayLike, happened: npt.ArrayLike) -> float:
    """Return the mean squared distance between probabilities and what happened; 0 is perfect.

    Examples
    --------
    >>> brier([1.0, 0.5], [True, False])
    0.125
    """
    p, y = _pairs(probabilities, happened)
    return float(np.mean((p - y) ** 2))


def calibration_error(
    probabilities: npt.ArrayLike, happened: npt.ArrayLike, bins: int = 10
) -> float:
    """Return the expected calibration error over bins of equal width.

    Parameters
    ----------
    probabilities : array-like of shape (n,)
        In [0, 1].
    happened : array-like of shape (n,), bool
        Whether it did.
    bins : int, default 10
        How many, at least 1; a probability on a border belongs to the upper bin, 1 to the last.

    Returns
    -------
    float
        Sum over bins of |mean probability - share that happened|, weighted by size, in [0, 1].

    References
    ----------
    Naeini, Cooper & Hauskrecht 2015, Obtaining well calibrated probabilities using Bayesian
    binning.

    Examples
    --------
    >>> round(calibration_error([0.9, 0.9, 0.1], [True, False, False]), 3)
    0.3
    """
    p, y = _pairs(probabilities, happened)
    if bins < 1:
        raise InvalidParameterError(f"bins is {bins}: give at least 1")
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    apart = np.bincount(which, weights=p - y, minlength=bins)
    return float(np.abs(apart).sum() / p.size)


def _check(gold: Collection[Hashable], k: int) -> None:
    if not gold:
        raise InvalidParameterError("gold is empty: such a question has no ranking to measure")
    if k < 1:
        raise InvalidParameterError(f"k is {k}: give at least 1")


def _pairs(
    probabilities: npt.ArrayLike, happened: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1 or not p.size:
        raise InvalidParameterError(
            f"probabilities have shape {p.shape}, outcomes {y.shape}: give two lists of one length"
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidParameterError("a probability is outside [0, 1]: scale it to that range")
    return p, y
