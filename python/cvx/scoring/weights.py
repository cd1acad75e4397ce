"""Weights learned from outcomes by logistic regression, kept as plain floats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidParameterError, LengthMismatchError

Matrix = npt.NDArray[np.float64]


class LearnedWeights:
    """P(success | features of what was recalled), by regularised logistic regression.

    Features are standardised before the fit, coefficients bounded after it, and an intercept
    takes up the base rate. While all outcomes are alike there is nothing to weigh: the
    coefficients stay 0, and only the intercept moves. scikit-learn is imported for fitting only.

    Parameters
    ----------
    names : sequence of str
        The features, in the order of the columns.
    strength : float, default 1.0
        L2 regularisation, the inverse of scikit-learn's C; above 0.
    bound : float, default 5.0
        No standardised coefficient leaves [-bound, bound].
    window : int, default 4096
        How many of the latest samples ``update`` fits on.

    Examples
    --------
    >>> learned = LearnedWeights(["similarity", "reward"])
    >>> learned.predict([[0.5, 0.5]]).tolist()
    [0.5]
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        strength: float = 1.0,
        bound: float = 5.0,
        window: int = 4096,
    ) -> None:
        if not names:
            raise InvalidParameterError("names is empty: give at least one feature")
        if not strength > 0 or not bound > 0 or window < 2:
            raise InvalidParameterError(
                f"strength {strength}, bound {bound}, window {window}: "
                "give strength > 0, bound > 0, window >= 2"
            )
        self.names = tuple(names)
        self.strength = strength
        self.bound = bound
        self.window = window
        n = len(self.names)
        self.mean: list[float] = [0.0] * n
        self.scale: list[float] = [1.0] * n
        self.coefficients: list[float] = [0.0] * n
        self.intercept = 0.0
        self.samples = 0
        self._features: Matrix = np.zeros((0, n))
        self._labels: Matrix = np.zeros(0)

    def fit(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> LearnedWeights:
        """Learn from these samples alone.

        Parameters
        ----------
        features : array of shape (n, len(names))
        labels : array of shape (n,)
            1 for success, 0 for failure.

        Raises
        ------
        LengthMismatchError
            Shapes that do not fit together.
        InvalidParameterError
            A value that is not finite, or a label other than 0 and 1.
        """
        self._features, self._labels = self._checked(features, labels)
        self.samples = len(self._labels)
        self._fit()
        return self

    def update(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> LearnedWeights:
        """Learn from these samples and the latest ones before them, at most ``window`` together.

        Parameters and errors are those of ``fit``.
        """
        new, outcomes = self._checked(features, labels)
        self._features = np.concatenate([self._features, new])[-self.window :]
        self._labels = np.concatenate([self._labels, outcomes])[-self.window :]
        self.samples += len(outcomes)
        self._fit()
        return self

    def refill(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> LearnedWeights:
        """Put samples that were learned from before back into the window; nothing is fitted.

        ``to_dict`` leaves them out, since a record has them with its decisions.

        Parameters and errors are those of ``fit``.
        """
        x, y = self._checked(features, labels)
        self._features, self._labels = x[-self.window :], y[-self.window :]
        return self

    def _checked(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Matrix, Matrix]:
        x = np.asarray(features, dtype=np.float64)
        y = np.asarray(labels, dtype=np.float64)
        if x.size == 0 and y.size == 0:
            return np.zeros((0, len(self.names))), np.zeros(0)
        if x.ndim != 2 or y.ndim != 1 or x.shape != (len(y), len(self.names)):
            raise LengthMismatchError(
                f"features have shape {x.shape} and labels {y.shape}: "
                f"give (n, {len(self.names)}) and (n,)"
            )
        if not np.isfinite(x).all():
            raise InvalidParameterError("a feature is NaN or infinite: give finite numbers")
        if not np.isin(y, (0.0, 1.0)).all():
            raise InvalidParameterError("a label is neither 0 nor 1: threshold outcomes first")
        return x, y

    def _fit(self) -> None:
        x, y = self._features, self._labels
        wins = float(y.sum())
        if wins in (0.0, float(len(y))):
            # One class only: Laplace's rule for the base rate, and no opinion on the features.
            self.coefficients = [0.0] * len(self.names)
            self.intercept = self._bounded(math.log((wins + 1.0) / (len(y) - wins + 1.0)))
            return
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

        mean, scale = x.mean(axis=0), x.std(axis=0)
        # A constant column says nothing, and its rounding noise must not be blown up.
        scale[scale <= 1e-9 * np.maximum(1.0, np.abs(mean))] = np.inf
        model = LogisticRegression(C=1.0 / self.strength, max_iter=500)
        model.fit((x - mean) / scale, y)
        self.mean = mean.tolist()
        self.scale = np.where(np.isinf(scale), 1.0, scale).tolist()
        self.coefficients = [self._bounded(float(c)) for c in model.coef_[0]]
        self.intercept = self._bounded(float(model.intercept_[0]))

    def _bounded(self, value: float) -> float:
        return max(-self.bound, min(self.bound, value))

    def snapshot(self) -> dict[str, Any]:
        """Return everything, the samples of the window too, for ``restore``."""
        return dict(vars(self))

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot."""
        vars(self).update(snapshot)

    def weights(self) -> dict[str, float]:
        """Return the weight of each feature in its own unit: coefficient / spread."""
        return {
            name: c / s
            for name, c, s in zip(self.names, self.coefficients, self.scale, strict=True)
        }

    def blend(self, prior: Mapping[str, float], trust_after: float = 500.0) -> dict[str, float]:
        """Return weights that move from ``prior`` to the learned ones as samples come in.

        ``(1 - t) * prior + t * learned`` with ``t = samples / (samples + trust_after)``. Learned
        weights are cut at 0, since every feature is made so that higher is better, and scaled to
        the sum of the prior. Nothing learned: the prior.

        Parameters
        ----------
        prior : mapping of str to float
            By feature.
        trust_after : float, default 500.0
            Number of samples at which both count alike.
        """
        learned = {name: max(0.0, w) for name, w in self.weights().items() if name in prior}
        total = sum(learned.values())
        if not total:
            return dict(prior)
        t = self.samples / (self.samples + trust_after)
        size = sum(abs(prior[name]) for name in learned) / total
        return {
            name: (1 - t) * w + t * size * learned[name] if name in learned else w
            for name, w in prior.items()
        }

    def predict(self, features: npt.ArrayLike) -> Matrix:
        """Return the probability of success.

        Parameters
        ----------
        features : array of shape (n, len(names))

        Returns
        -------
        ndarray of shape (n,), float64
        """
        x = np.asarray(features, dtype=np.float64)
        z = (x - np.array(self.mean)) / np.array(self.scale) @ np.array(self.coefficients)
        return np.asarray(1.0 / (1.0 + np.exp(-(z + self.intercept))), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as plain numbers, without the samples of the window."""
        return {
            "names": list(self.names),
            "strength": self.strength,
            "bound": self.bound,
            "window": self.window,
            "mean": list(self.mean),
            "scale": list(self.scale),
            "coefficients": list(self.coefficients),
            "intercept": self.intercept,
            "samples": self.samples,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LearnedWeights:
        """Rebuild it from ``to_dict``: it predicts the same; ``refill`` gives it its samples."""
        made = cls(
            data["names"],
            strength=data["strength"],
            bound=data["bound"],
            window=data["window"],
        )
        made.mean = list(data["mean"])
        made.scale = list(data["scale"])
        made.coefficients = list(data["coefficients"])
        made.intercept = float(data["intercept"])
        made.samples = int(data["samples"])
        return made
