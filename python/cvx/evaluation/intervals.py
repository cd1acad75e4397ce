"""How far a mean could be off: a bootstrap over clusters.

Questions about one conversation resemble each other, so whole groups are drawn, not questions.
With one group nothing is known of the spread, and with fewer than about ten the interval is too
narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.statistics import bootstrap, ratio


class Interval(NamedTuple):
    """A mean and where it may lie.

    Attributes
    ----------
    mean : float
        Of all values.
    low, high : float
        Percentile bounds; nan where all values are of one group.
    n : int
        Values.
    """

    mean: float
    low: float
    high: float
    n: int


def interval(
    values: npt.ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the mean of values with a percentile interval, groups drawn with replacement.

    Parameters
    ----------
    values : array-like of shape (n,)
        One a question, at least one.
    groups : sequence of str
        What each belongs to.
    level : float, default 0.95
        Share of the resampled means within the bounds, in (0, 1).
    resamples : int, default 2000
        How often groups are drawn, at least 1.
    seed : int, default 0
        The same seed gives the same bounds.

    References
    ----------
    Field & Welsh 2007, Bootstrapping clustered data.

    Examples
    --------
    >>> interval([1.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"]).mean
    0.75
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 1 or not rows.size or len(groups) != rows.size:
        raise InvalidInputError(
            f"{rows.size} values, {len(groups)} groups: give a group for each value, at least one"
        )
    if not 0.0 < level < 1.0 or resamples < 1:
        raise InvalidInputError(
            f"level is {level}, resamples {resamples}: give a level in (0, 1), at least 1 resample"
        )
    group = np.unique(np.asarray(groups), return_inverse=True)[1]
    sums = np.column_stack([np.bincount(group, weights=rows), np.bincount(group)])
    low, high = bootstrap(sums, ratio, resamples=resamples, seed=seed, level=level)
    return Interval(float(rows.mean()), low.item(), high.item(), rows.size)
