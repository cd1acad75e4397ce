"""Scores of many candidates at once: named columns, weights, and how they join."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from cvx.arguments import among
from cvx.errors import InvalidInputError, UnknownError
from cvx.types import Factor

Column = npt.NDArray[np.float64]
Mode = Literal["sum", "log-product"]
MODES = ("sum", "log-product")

# What Factor._make does, less its count of the fields: a recall makes hundreds of them.
_factor = partial(tuple.__new__, Factor)


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of n candidates, and what made them.

    Parameters
    ----------
    names : tuple of str
        The m features that weigh something.
    values, shares : ndarray of shape (n, m), float64
        What each feature was, and what it contributed.
    weights : ndarray of shape (n, m), float64
        What each feature weighed for each candidate.
    """

    names: tuple[str, ...]
    values: Column
    weights: Column
    shares: Column

    @property
    def total(self) -> Column:
        """The scores: the sum of the shares, of shape (n,)."""
        return np.asarray(self.shares.sum(axis=1))

    def times(self, factor: Column) -> Scored:
        """Return the scores multiplied, each by a factor of its own of shape (n,)."""
        by = factor[:, None]
        return Scored(self.names, self.values, self.weights * by, self.shares * by)

    def less(self, name: str, doubt: Column) -> Scored:
        """Return scores that lose a share, of shape (n,), as one more factor below 0."""
        off = -np.abs(self.total) * (doubt > 0)
        return Scored(
            (*self.names, name),
            np.column_stack([self.values, doubt]),
            np.column_stack([self.weights, off]),
            np.column_stack([self.shares, off * doubt]),
        )

    def factors(self, place: int) -> tuple[Factor, ...]:
        """Return the factors of one candidate; what is not known of it contributes nothing.

        Doubts that it is spared are left out.
        """
        rows = (self.values[place], self.weights[place], self.shares[place])
        every = zip(self.names, *(row.tolist() for row in rows), strict=True)
        return tuple(_factor(one) for one in every if one[1] or one[2])


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights that are no finite numbers.

    Raises
    ------
    InvalidInputError
        No weight at all, or one that is NaN or infinite.
    """
    if not weights:
        raise InvalidInputError("weights are empty: give at least one feature its weight")
    for name, weight in weights.items():
        if not math.isfinite(weight):
            raise InvalidInputError(f"the weight of {name!r} is {weight}: give a finite number")


def score_columns(
    columns: Mapping[str, Column],
    weights: Mapping[str, float],
    *,
    mode: Mode = "sum",
    bias: float = 0.0,
    floor: float = 1e-6,
    trust: Column | None = None,
) -> Scored:
    """Join columns into scores whose shares add up.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        The features. NaN is not known: it contributes nothing.
    weights : mapping of str to float
        By feature, finite; a negative one is evidence against. One of 0 is left out.
    mode : {"sum", "log-product"}, default "sum"
        Add weight * value, or weight * log(value): a product of powers, in which a value near 0
        vetoes.
    bias : float, default 0.0
        Added to every score, as the factor "bias".
    floor : float, default 1e-6
        Smallest value whose logarithm is taken.
    trust : ndarray of shape (n,), optional
        In the source of each candidate, in [0, 1]. In a sum it multiplies a score above 0 and its
        shares, and 2 - trust one below; in a product it is one more factor.

    Raises
    ------
    UnknownError
        A weight without its column.
    InvalidInputError
        A weight that is not finite, or an unknown mode.

    Examples
    --------
    >>> columns = {"similarity": np.array([0.9, 0.5]), "salience": np.array([0.0, 1.0])}
    >>> score_columns(columns, {"similarity": 1.0, "salience": 0.5}).total.tolist()
    [0.9, 1.0]
    """
    check_weights(weights)
    among(*MODES)("mode", mode)
    if trust is not None and mode == "log-product":
        columns, weights = {**columns, "trust": trust}, {**weights, "trust": 1.0}
    names = tuple(name for name, weight in weights.items() if weight)
    missing = [name for name in names if name not in columns]
    if missing:
        raise UnknownError(
            f"there is no column {missing[0]!r} to weigh: there are {', '.join(columns)}"
        )
    n = len(next(iter(columns.values()))) if columns else 0
    values = np.empty((n, len(names)))
    for place, name in enumerate(names):
        values[:, place] = columns[name]
    each = np.array([weights[name] for name in names])
    joined = values if mode == "sum" else np.log(np.maximum(values, floor))
    shares = joined * each
    # Faster than nan_to_num, which looks for infinities too.
    shares[np.isnan(shares)] = 0.0
    spread = np.broadcast_to(each, shares.shape)
    if bias:
        ones = np.ones((n, 1))
        names = (*names, "bias")
        values = np.hstack([values, ones])
        spread = np.hstack([spread, ones * bias])
        shares = np.hstack([shares, ones * bias])
    scored = Scored(names, values, spread, shares)
    if trust is None or mode == "log-product" or not n:
        return scored
    return scored.times(np.where(scored.total >= 0, trust, 2.0 - trust))


def scale(values: Column, how: Literal["min-max", "max", "none"] = "min-max") -> Column:
    """Bring one column of a pool to a common range; NaN becomes 0, unless it is left as it is.

    Parameters
    ----------
    values : ndarray of shape (n,)
    how : {"min-max", "max", "none"}, default "min-max"
        To [0, 1] by the smallest and largest value; divided by the largest where that is above 0;
        or left. A column that is constant becomes 0 under "min-max".

    Examples
    --------
    >>> scale(np.array([2.0, 4.0, np.nan])).tolist()
    [0.0, 1.0, 0.0]
    """
    if how == "none":
        return values
    known = np.isfinite(values)
    whole = bool(known.all())
    some = values if whole else values[known]
    low = float(some.min(initial=np.inf)) if how == "min-max" else 0.0
    reach = float(some.max(initial=-np.inf)) - low
    if not reach > 0.0:
        return np.zeros_like(values) if how == "min-max" else np.where(known, values, 0.0)
    scaled = (values - low) / reach
    return scaled if whole else np.where(known, scaled, 0.0)


def stretched(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Scale several columns as ``scale`` does by "min-max", in one pass.

    Examples
    --------
    >>> found = stretched({"a": np.array([2.0, 4.0]), "b": np.array([3.0, 3.0])})
    >>> {name: column.tolist() for name, column in found.items()}
    {'a': [0.0, 1.0], 'b': [0.0, 0.0]}
    """
    rows = np.array(list(columns.values()))
    if not np.isfinite(rows).all():
        return {name: scale(column) for name, column in columns.items()}
    low = rows.min(axis=-1, keepdims=True, initial=np.inf)
    reach = rows.max(axis=-1, keepdims=True, initial=-np.inf) - low
    # A constant column has nothing above its lowest value: whatever divides it, it is 0.
    return dict(zip(columns, (rows - low) / np.where(reach > 0.0, reach, 1.0), strict=True))
