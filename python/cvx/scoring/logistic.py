"""Logistic regression with standardised columns, a penalty and bounded coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import LearningWarning, warn

Floats: TypeAlias = npt.NDArray[np.float64]

_CONSTANT = 1e-9
"""Spread below which, relative to its mean, a column says nothing but rounding noise."""
_MOST_STEPS = 100
_STILL = 1e-11
"""A step as small as this, relative to where it ends, is the last one."""


class LogisticFit(NamedTuple):
    """P(1 | x) = sigmoid(intercept + coefficients . (x - mean) / scale).

    Attributes
    ----------
    mean, scale : ndarray of shape (d,)
        Of the columns; the scale of a constant one is 1.
    coefficients : ndarray of shape (d,)
        A standard deviation of a feature changes the log odds by this; 0 for a constant one.
    intercept : float
        Log odds at the mean.
    constant : ndarray of shape (d,), bool
        Which columns did not vary.
    one_sided : bool
        Whether all outcomes were alike, so that no feature has a weight.
    """

    mean: Floats
    scale: Floats
    coefficients: Floats
    intercept: float
    constant: npt.NDArray[np.bool_]
    one_sided: bool

    def log_odds(self, x: Floats) -> Floats:
        """Return the log odds of the rows of x, of shape (n,)."""
        return np.asarray((x - self.mean) / self.scale @ self.coefficients + self.intercept)


def sigmoid(log_odds: Floats) -> Floats:
    """Return the probabilities of log odds, without overflow.

    Examples
    --------
    >>> sigmoid(np.array([-1e4, 0.0, 1e4])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(log_odds))
    return np.asarray(np.where(log_odds >= 0, 1.0, small) / (1.0 + small))


def fit_logistic(
    x: Floats, y: Floats, sample_weight: Floats, *, strength: float = 1.0, bound: float = 5.0
) -> LogisticFit:
    """Fit by penalised maximum likelihood on standardised columns, then cut at the bound.

    While all outcomes are alike there is nothing to weigh: the coefficients are 0, and the
    intercept follows Laplace's rule, (wins + 1) / (n + 2).

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Finite.
    y : ndarray of shape (n,)
        1 or 0.
    sample_weight : ndarray of shape (n,)
        At least 0; a row of weight 2 counts as two rows.
    strength : float, default 1.0
        L2 penalty of the coefficients, the inverse of scikit-learn's C.
    bound : float, default 5.0
        No coefficient, nor the intercept, leaves [-bound, bound].
    """
    known = sample_weight > 0
    x, y, weight = x[known], y[known], sample_weight[known]
    total, wins = float(weight.sum()), float(weight @ y)
    d = x.shape[1]
    if not len(y) or y.min() == y.max():
        odds = float(np.clip(math.log((wins + 1.0) / (total - wins + 1.0)), -bound, bound))
        never = np.zeros(d, dtype=bool)
        return LogisticFit(np.zeros(d), np.ones(d), np.zeros(d), odds, never, one_sided=True)
    mean = weight @ x / total
    spread = np.sqrt(weight @ (x - mean) ** 2 / total)
    constant = spread <= _CONSTANT * np.maximum(1.0, np.abs(mean))
    scale = np.where(constant, 1.0, spread)
    varying = ((x - mean) / scale)[:, ~constant]
    likeliest, intercept = maximum_likelihood(varying, y, weight, penalty=strength)
    coefficients = np.zeros(d)
    coefficients[~constant] = np.clip(likeliest, -bound, bound)
    intercept = float(np.clip(intercept, -bound, bound))
    return LogisticFit(mean, scale, coefficients, intercept, constant, one_sided=False)


def maximum_likelihood(
    x: Floats, y: npt.ArrayLike, sample_weight: Floats | None = None, *, penalty: float
) -> tuple[Floats, float]:
    """Return coefficients of shape (d,) and the intercept that make 0/1 outcomes likeliest.

    Less half the penalty times the coefficients' sum of squares; the intercept is free. It is the
    optimum of scikit-learn's ``LogisticRegression(C=1 / penalty)``, by Newton's method.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Finite, of columns of like size.
    y : array-like of shape (n,)
        0 and 1, both of them.
    sample_weight : ndarray of shape (n,), optional
        A row of weight 2 counts as two rows; by default each counts as one.
    penalty : float
        Above 0.
    """
    outcome = np.asarray(y, dtype=np.float64)
    weight = np.ones(len(outcome)) if sample_weight is None else sample_weight
    columns = np.column_stack([x, np.ones(len(x))])
    ridge = np.append(np.full(x.shape[1], penalty), 0.0)

    def loss(at: Floats) -> float:
        odds = columns @ at
        return float(weight @ (np.logaddexp(0.0, odds) - outcome * odds) + ridge @ (at * at) / 2)

    at = np.zeros(columns.shape[1])
    for _ in range(_MOST_STEPS):
        chance = sigmoid(columns @ at)
        slope = columns.T @ (weight * (chance - outcome)) + ridge * at
        bend = (columns.T * (weight * chance * (1.0 - chance))) @ columns + np.diag(ridge)
        # Least squares, since nothing bends where every chance is near 0 or 1.
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        worst = loss(at) * (1.0 + _STILL)
        while loss(at - step) > worst and np.abs(step).max() > _STILL:
            step /= 2.0
        at -= step
        if np.abs(step).max() <= _STILL * (1.0 + np.abs(at).max()):
            break
    return at[:-1], float(at[-1])


def warn_of(fit: LogisticFit, n: int, names: Sequence[object]) -> None:
    """Warn the caller's caller of what n samples cannot teach, of the features by these names."""
    if fit.one_sided:
        warn(
            f"all {n} outcomes are alike: no feature has a weight until the other outcome is seen",
            LearningWarning,
        )
    elif fit.constant.any():
        constant = [name for name, never in zip(names, fit.constant, strict=True) if never]
        warn(
            f"{constant} never vary in these samples: they have no weight until they do",
            LearningWarning,
        )
