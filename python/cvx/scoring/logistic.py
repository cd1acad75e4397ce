"""A logistic regression that cannot run away: standardised, bounded, with an intercept."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import ConstantFeatureWarning, OneOutcomeWarning

Floats: TypeAlias = npt.NDArray[np.float64]

_CONSTANT = 1e-9
"""Spread below which, relative to its mean, a column says nothing but rounding noise."""


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
        odds = math.log((wins + 1.0) / (total - wins + 1.0))
        never = np.zeros(d, dtype=bool)
        return LogisticFit(
            np.zeros(d), np.ones(d), np.zeros(d), _cut(odds, bound), never, one_sided=True
        )
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    mean = weight @ x / total
    spread = np.sqrt(weight @ (x - mean) ** 2 / total)
    constant = spread <= _CONSTANT * np.maximum(1.0, np.abs(mean))
    scale = np.where(constant, 1.0, spread)
    standard = np.where(constant, 0.0, (x - mean) / scale)
    # So tight that equal data give equal weights, in pieces and at once.
    model = LogisticRegression(C=1.0 / strength, tol=1e-7, max_iter=1000)
    model.fit(standard, y, weight)
    coefficients = np.clip(model.coef_[0], -bound, bound)
    intercept = _cut(float(model.intercept_[0]), bound)
    return LogisticFit(mean, scale, coefficients, intercept, constant, one_sided=False)


def _cut(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def warn_of(fit: LogisticFit, n: int, names: Sequence[object]) -> None:
    """Warn the caller's caller of what n samples cannot teach, of the features by these names."""
    if fit.one_sided:
        warnings.warn(
            f"all {n} outcomes are alike: no feature has a weight until the other outcome is seen",
            OneOutcomeWarning,
            stacklevel=3,
        )
    elif fit.constant.any():
        constant = [name for name, never in zip(names, fit.constant, strict=True) if never]
        warnings.warn(
            f"{constant} never vary in these samples: they have no weight until they do",
            ConstantFeatureWarning,
            stacklevel=3,
        )
