"""What weights are learned from: features of what was followed, and how it ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import wrong
from cvx.errors import InvalidParameterError, LengthMismatchError
from cvx.scoring.logistic import Floats
from cvx.scoring.selection import checked_propensities


def floats(name: str, value: npt.ArrayLike) -> Floats:
    """Return numbers as an array of float64.

    Raises
    ------
    InvalidParameterError
        Something else than numbers, or rows of different lengths.
    """
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(name, value, f"numbers, in rows of one length ({error})") from error


class Samples(NamedTuple):
    """Rows of features with their outcomes.

    Attributes
    ----------
    features : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        1 for success, 0 for failure.
    propensities : ndarray of shape (n,)
        The chance each had to be put where it was; NaN where the order was not sampled.
    """

    features: Floats
    labels: Floats
    propensities: Floats

    @classmethod
    def none(cls, d: int) -> Samples:
        """Return no sample of d features."""
        return cls(np.zeros((0, d)), np.zeros(0), np.zeros(0))

    @classmethod
    def checked(
        cls,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        propensities: npt.ArrayLike | None,
        d: int,
    ) -> Samples:
        """Return samples of d features, or refuse them.

        Raises
        ------
        LengthMismatchError
            Shapes that do not fit together.
        InvalidParameterError
            Rows of different lengths, something else than numbers, a value that is not finite, a
            label other than 0 and 1, a propensity outside (0, 1].
        """
        x = floats("features", features)
        y = floats("labels", labels)
        if x.size == 0 and y.size == 0:
            return cls.none(d)
        if x.ndim != 2 or y.ndim != 1 or x.shape != (len(y), d):
            raise LengthMismatchError(
                f"features have shape {x.shape} and labels {y.shape}: give (n, {d}) and (n,)"
            )
        if not np.isfinite(x).all():
            raise InvalidParameterError("a feature is NaN or infinite: give finite numbers")
        if not np.isin(y, (0.0, 1.0)).all():
            raise InvalidParameterError("a label is neither 0 nor 1: threshold outcomes first")
        if propensities is None:
            return cls(x, y, np.full(len(y), np.nan))
        p = floats("propensities", propensities)
        if p.shape != y.shape:
            raise LengthMismatchError(
                f"propensities have shape {p.shape} and labels {y.shape}: give one each"
            )
        return cls(x, y, checked_propensities(p))

    def then(self, more: Samples, window: int) -> Samples:
        """Return the latest ``window`` of these and more."""
        pairs = zip(self, more, strict=True)
        return Samples(*(np.concatenate(pair)[-window:] for pair in pairs))
