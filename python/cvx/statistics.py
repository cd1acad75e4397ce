"""Confidence intervals (Wilson, bootstrap by group) and beliefs about chances (Beta, Dirichlet).

Things of one group, such as the questions on one conversation, resemble each other: whole groups
are drawn, never single things.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_STEPS, _MOST_TERMS, _TINY = 200, 10_000, 1e-300
_AT_ONCE = 64
"""Resamples that are drawn together: many groups would need much memory."""


class Estimate(NamedTuple):
    """A figure with its 95 % interval; the bounds are nan where nothing can be said of them."""

    value: float
    low: float
    high: float


class Beta(NamedTuple):
    """The belief about a chance of success.

    Attributes
    ----------
    alpha, beta : float
        Successes and failures, those that the prior is worth included; above 0.

    Examples
    --------
    >>> belief = Beta(3.0, 1.0)
    >>> belief.mean
    0.75
    >>> [round(end, 3) for end in belief.interval()]
    [0.292, 0.992]
    """

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The chance to expect, in [0, 1]."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, share: float = 0.95) -> tuple[float, float]:
        """Return the ends of the central interval that holds this share of the belief.

        Raises
        ------
        InvalidInputError
            A share outside (0, 1).
        """
        if not 0.0 < share < 1.0:
            raise InvalidInputError(f"share is {share}: give one between 0 and 1")
        tail = (1.0 - share) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, share: float) -> float:
        """Return the chance below which this share of the belief lies, to 1e-12.

        Newton's steps on the distribution function, kept between bounds that always hold it.
        """
        a, b = float(self.alpha), float(self.beta)
        log_scale = _log_beta(a, b)
        low, high = 0.0, 1.0
        at = min(max(self.mean, _TINY), 1.0 - 2.0**-53)
        for _ in range(_MOST_STEPS):
            missed = _beta_below(a, b, at) - share
            low, high = (low, at) if missed > 0 else (at, high)
            slope = math.exp((a - 1) * math.log(at) + (b - 1) * math.log1p(-at) - log_scale)
            step = missed / slope if slope else math.inf
            before, at = at, at - step
            if not low < at < high:
                at = (low + high) / 2.0
            if abs(at - before) <= 1e-13 * at or at < _TINY:
                break
        return at

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a chance that the belief allows."""
        return float(rng.beta(self.alpha, self.beta))


class Dirichlet(NamedTuple):
    """The belief about where an action leads.

    Attributes
    ----------
    alphas : mapping of int to float
        By region or end: how often it was reached, with what the prior is worth.

    Examples
    --------
    >>> belief = Dirichlet({4: 3.0, 9: 1.0})
    >>> belief.mean(4), belief.mean(5)
    (0.75, 0.0)
    """

    alphas: Mapping[int, float]

    def mean(self, there: int) -> float:
        """Return the chance to expect of one place; 0 for a place that is not in it."""
        total = sum(self.alphas.values())
        return self.alphas.get(there, 0.0) / total if total else 0.0

    def sample(self, rng: np.random.Generator) -> dict[int, float]:
        """Draw chances that the belief allows."""
        places = list(self.alphas)
        drawn = rng.dirichlet([self.alphas[place] for place in places])
        return dict(zip(places, drawn.tolist(), strict=True))


def backed_off(cells: Sequence[tuple[float, float]], strength: float) -> Beta:
    """Return what is believed of the success rate of the last of nested contexts.

    The prior of each context is the mean of the context before it, from the trials that the
    next one does not hold: with ``p_i = (wins_i + s * p_(i-1)) / (trials_i + s)``,
    ``p_(-1) = 1/2`` and ``s = strength``, the belief about the last one is
    ``Beta(wins + s * p, losses + s * (1 - p))``. So each trial counts once, however many
    contexts it was counted in: one success in ten nested contexts is one success.

    Parameters
    ----------
    cells : sequence of (trials, wins)
        From the most general context to the most specific, each holding those after it.
    strength : float
        How many trials the mean of a context is worth as the prior of the next one.
    """
    p = 0.5
    trials = wins = 0.0
    for (n, won), (inner, inner_won) in zip(cells, [*cells[1:], (0.0, 0.0)], strict=True):
        p = (wins + strength * p) / (trials + strength)
        # Regions of two levels need not nest exactly: never fewer than none.
        trials = max(n - inner, 0)
        wins = min(max(won - inner_won, 0), trials)
    return Beta(wins + strength * p, trials - wins + strength * (1.0 - p))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _beta_below(a: float, b: float, x: float) -> float:
    """Return P(X < x) for X of Beta(a, b)."""
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _lower_tail(b, a, 1.0 - x, x)
    return _lower_tail(a, b, x, 1.0 - x)


def _lower_tail(a: float, b: float, x: float, rest: float) -> float:
    """Return the same below the mean, by Lentz's continued fraction (DLMF 8.17.22)."""
    front = math.exp(a * math.log(x) + b * math.log(rest) - _log_beta(a, b)) / a
    # As they are after the fraction's first term, which is 1.
    fraction = c = 2.0
    d = 1.0
    for i in range(1, _MOST_TERMS):
        m = i // 2
        if i % 2 == 0:
            term = m * (b - m) * x / ((a + (i - 1.0)) * (a + i))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + (i - 1.0)) * (a + i))
        d = 1.0 / (1.0 + term * d or _TINY)
        c = 1.0 + term / c or _TINY
        fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return front * (fraction - 1.0)


def wilson(rate: float, n: int) -> Estimate:
    """Return a rate with its 95 % interval by Wilson's score, which is never a point.

    Parameters
    ----------
    rate : float
        In [0, 1].
    n : int
        How many independent trials it rests on, at least 1.

    References
    ----------
    Wilson 1927, Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> [round(figure, 2) for figure in wilson(1.0, 4)]
    [1.0, 0.51, 1.0]
    """
    z2 = 1.959963984540054**2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Estimate(rate, max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half)))


def bootstrap(
    sums: npt.ArrayLike,
    figures: Callable[[Floats], Floats],
    *,
    resamples: int,
    seed: int,
    level: float = 0.95,
) -> tuple[Floats, Floats]:
    """Return percentile bounds of figures that are made of sums over groups.

    Groups are drawn with replacement, as many as there are. One group has no spread, so its
    bounds are nan. With fewer than about ten the bounds are too narrow: a percentile of few
    groups' resamples knows neither of their small number nor of the tails that are not among them.

    Parameters
    ----------
    sums : array-like of shape (groups, ...)
        What is added up, of each group.
    figures : callable
        From totals of shape (draws, ...) to figures of shape (draws, n); nan where a draw tells
        nothing, which is then left out.
    resamples : int
        How often groups are drawn.
    seed : int
        The same seed gives the same bounds.
    level : float, default 0.95
        Share of the figures within the bounds.

    Returns
    -------
    low, high : ndarray of shape (n,), float64

    References
    ----------
    Field & Welsh 2007, Bootstrapping clustered data.

    Examples
    --------
    >>> hits_and_trials = np.array([[1.0, 4.0], [3.0, 4.0], [2.0, 4.0], [4.0, 4.0]])
    >>> low, high = bootstrap(hits_and_trials, ratio, resamples=500, seed=0)
    >>> bool(low[0] < 10 / 16 < high[0])
    True
    """
    parts = np.asarray(sums, dtype=np.float64)
    n = len(parts)
    if n < 2:
        nothing = np.full(figures(parts).shape[1], math.nan)
        return nothing, nothing
    rng = np.random.default_rng(seed)
    found = []
    for start in range(0, resamples, _AT_ONCE):
        some = min(_AT_ONCE, resamples - start)
        drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=some).astype(np.float64)
        found.append(figures(np.tensordot(drawn, parts, axes=1)))
    tail = (1.0 - level) / 2.0
    bounds = [_quantiles(column, (tail, 1.0 - tail)) for column in np.concatenate(found).T]
    low, high = np.array(bounds).T
    return low, high


def ratio(totals: Floats) -> Floats:
    """Return sums over sizes, of shape (draws, 1), from totals of both, of shape (draws, 2)."""
    sums, sizes = totals.T
    out = np.full((len(totals), 1), math.nan)
    np.divide(sums, sizes, out=out[:, 0], where=sizes > 0)
    return out


def _quantiles(values: Floats, at: tuple[float, float]) -> Floats:
    told = values[~np.isnan(values)]
    return np.asarray(np.quantile(told, at) if len(told) else np.full(2, math.nan))
