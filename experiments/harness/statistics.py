"""Paired differences over seeds and games, many comparisons."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError

Grid = npt.NDArray[np.float64]


class Difference(NamedTuple):
    """A mean paired difference, its 95% interval, and the chance of one as large by accident."""

    mean: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two values for each of several games, as two arms had them.

    Parameters
    ----------
    first, second : sequence of float
        One value a pair.
    seeds, games : sequence of hashable
        Where each pair belongs. Pairs of one seed share their demonstrations, pairs of one game
        its difficulty: neither are independent.
    weights : sequence of float, optional
        How much each pair counts; default all alike.

    Raises
    ------
    InvalidInputError
        Sequences of different lengths, or empty ones.
    """

    first: Sequence[float]
    second: Sequence[float]
    seeds: Sequence[Hashable]
    games: Sequence[Hashable]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        parts = [self.first, self.second, self.seeds, self.games]
        lengths = [len(part) for part in (*parts, self.weights or self.first)]
        if len(set(lengths)) > 1 or not lengths[0]:
            raise InvalidInputError(
                f"{lengths[0]} and {lengths[1]} values, {lengths[2]} seeds, {lengths[3]} games and "
                f"{lengths[4]} weights: give equally many of each, at least one"
            )

    def grids(self) -> tuple[Grid, Grid]:
        """Return the sums of weighted differences and of weights, by seed (row) and game."""
        rows = {seed: i for i, seed in enumerate(dict.fromkeys(self.seeds))}
        columns = {game: i for i, game in enumerate(dict.fromkeys(self.games))}
        sums = np.zeros((len(rows), len(columns)))
        sizes = np.zeros_like(sums)
        at = [rows[s] for s in self.seeds], [columns[g] for g in self.games]
        weights = np.ones(len(self.first)) if self.weights is None else np.array(self.weights)
        difference = np.subtract(self.first, self.second, dtype=np.float64)
        np.add.at(sums, at, weights * difference)
        np.add.at(sizes, at, weights)
        return sums, sizes


def paired_difference(pairs: Pairs, *, draws: int = 10_000, seed: int = 0) -> Difference:
    """Return the weighted mean of ``first - second``, pair by pair.

    Two things are looked at, and the more cautious is told, for few seeds make either too sure:

    - Seeds and games are drawn with replacement, independently of each other (percentile bootstrap
      of crossed factors). Its p is how often these draws fall on the other side of zero, or how
      often the difference is as large when each game changes sign as a whole at random, whichever
      is larger.
    - A t test over the means of the seeds, weighted as the pairs are, with one degree of freedom
      less than there are seeds. It knows nothing of games that are hard for every seed.

    The interval reaches from the lower of the two lower bounds to the higher of the upper ones,
    and ``p``, two-sided, is the largest. A single seed has no spread to test: both then speak of
    games alone, under that one draw of demonstrations.

    Parameters
    ----------
    pairs : Pairs
    draws : int, default 10,000
    seed : int, default 0

    References
    ----------
    Owen 2007, The pigeonhole bootstrap. Cameron & Miller 2015, A practitioner's guide to
    cluster-robust inference, on t with few clusters.
    """
    sums, sizes = pairs.grids()
    rng = np.random.default_rng(seed)
    seeds, games = sums.shape
    rows = rng.multinomial(seeds, [1 / seeds] * seeds, draws)
    columns = rng.multinomial(games, [1 / games] * games, draws)
    totals = ((rows @ sums) * columns).sum(axis=1)
    counts = ((rows @ sizes) * columns).sum(axis=1)
    # A seed's games may be its own: a draw that holds none of them says nothing.
    means = totals[counts > 0] / counts[counts > 0]
    beyond = 2 * min((means <= 0).sum(), (means >= 0).sum())
    signs = rng.integers(0, 2, (draws, games)) * 2 - 1
    by_chance = (np.abs(signs @ sums.sum(axis=0)) >= abs(sums.sum()) - 1e-9).sum()
    low, high = np.quantile(means, [0.025, 0.975])
    p = max(min(1.0, (beyond + 1) / (len(means) + 1)), (by_chance + 1) / (draws + 1))
    mean = float(sums.sum() / sizes.sum())
    if seeds > 1:
        over_seeds = _t_test(sums.sum(axis=1), sizes.sum(axis=1))
        low, high, p = min(low, over_seeds.low), max(high, over_seeds.high), max(p, over_seeds.p)
    return Difference(mean, float(low), float(high), float(p))


def _t_test(sums: Grid, sizes: Grid) -> Difference:
    """Return a mean over seeds by Student's t: of each, its sum of values and what they weigh.

    The error is that of a ratio of sums; with seeds of one size it is the t test of their means.
    """
    from scipy.stats import t as student  # type: ignore[import-untyped]

    n = len(sums)
    mean = sums.sum() / sizes.sum()
    off = sums - mean * sizes
    error = math.sqrt(n / (n - 1) * float(off @ off)) / sizes.sum()
    reach = error * student.ppf(0.975, n - 1)
    # Seeds that agree to the last bit leave no error: only a mean of zero is then like chance.
    p = 2 * student.sf(abs(mean) / error, n - 1) if error else float(mean == 0)
    return Difference(float(mean), float(mean - reach), float(mean + reach), float(p))


def corrected(p: Sequence[float]) -> list[float]:
    """Return the p-values of a family of comparisons, corrected by Holm's method.

    References
    ----------
    Holm 1979, A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> corrected([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if not p:
        return []
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    return [float(value) for value in multipletests(p, method="holm")[1]]


def area_weights(rounds: Sequence[int]) -> dict[int, float]:
    """Return what each point of a curve weighs in the area under it, by the trapezoid rule.

    The weights add up to 1, so that the area of a curve that is 1 everywhere is 1.

    Parameters
    ----------
    rounds : sequence of int
        Where the points lie, rising.

    Examples
    --------
    >>> area_weights([0, 2, 10])
    {0: 0.1, 2: 0.5, 10: 0.4}
    """
    at = np.array(rounds, dtype=float)
    if len(at) == 1:
        return {rounds[0]: 1.0}
    gaps = np.diff(at) / (at[-1] - at[0])
    halves = (np.append(gaps, 0.0) + np.insert(gaps, 0, 0.0)) / 2
    return {number: round(float(half), 12) for number, half in zip(rounds, halves, strict=True)}
