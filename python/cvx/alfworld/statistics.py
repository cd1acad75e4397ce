"""Intervals for success and for paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from cvx.errors import LengthMismatchError

_Z = 1.959963984540054  # two-sided 95% of a normal distribution


class Interval(NamedTuple):
    """An estimate with its 95% interval."""

    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    """A mean paired difference, its 95% interval, and the chance of one as large by accident."""

    mean: float
    low: float
    high: float
    p: float


def wilson(wins: int, n: int) -> Interval:
    """Return a rate of success with Wilson's score interval.

    References
    ----------
    Wilson 1927, Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> [round(x, 3) for x in wilson(9, 10)]
    [0.9, 0.596, 0.982]
    """
    if n == 0:
        return Interval(math.nan, 0.0, 1.0)
    rate, scale = wins / n, 1 + _Z**2 / n
    middle = (rate + _Z**2 / (2 * n)) / scale
    half = _Z * math.sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n * n)) / scale
    return Interval(rate, max(0.0, middle - half), min(1.0, middle + half))


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Return the mean of ``first - second``, pair by pair.

    Whole clusters are drawn with replacement for the interval (percentile bootstrap), and whole
    clusters change sign for p (two-sided randomisation test).

    Parameters
    ----------
    first, second : sequence of float
        One value a pair.
    clusters : sequence of hashable
        Pairs of the same cluster, such as the same game with several seeds, are not independent.
    draws : int, default 10,000
    seed : int, default 0

    Raises
    ------
    LengthMismatchError
        Sequences of different lengths, or empty ones.
    """
    if not len(first) == len(second) == len(clusters) > 0:
        raise LengthMismatchError(
            f"{len(first)} and {len(second)} values in {len(clusters)} clusters: "
            "give equally many of each, at least one"
        )
    sums: dict[Hashable, list[float]] = {}
    for a, b, cluster in zip(first, second, clusters, strict=True):
        cell = sums.setdefault(cluster, [0.0, 0.0])
        cell[0] += float(a) - float(b)
        cell[1] += 1.0
    total, size = np.array(list(sums.values())).T
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(total), (draws, len(total)))
    means = total[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    mean = float(total.sum() / size.sum())
    signs = rng.integers(0, 2, (draws, len(total))) * 2 - 1
    by_chance = np.abs(signs @ total) >= abs(total.sum()) - 1e-9
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(mean, float(low), float(high), float((by_chance.sum() + 1) / (draws + 1)))
