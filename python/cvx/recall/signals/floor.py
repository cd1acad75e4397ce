"""When to answer nothing: a calibrated probability that the memory holds an answer at all.

Similarities of nonsense are as spread out among themselves as those of sense, so a ranking always
has a first place. Four numbers tell the two apart: how near the nearest event is and the nearest
window of events, and how much of what the question speaks of occurs in the memory at all and in the
best window. Whether a name in the question is known is none of them: it would tell whose memory is
asked, not whether it knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.recall.signals.view import Candidates, FloatArray
from cvx.scoring.logistic import maximum_likelihood

FLOOR_FEATURES = ("dense", "dense_window", "coverage_store", "coverage_window")
"""Columns of which the highest value among the candidates counts."""


def floor_features(columns: Mapping[str, FloatArray]) -> npt.NDArray[np.float64]:
    """Return the four numbers of a table of candidates, unscaled; zeros for an empty table.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        What the signals made, before any scaling.

    Returns
    -------
    ndarray of shape (4,), float64
        In the order of ``FLOOR_FEATURES``.
    """
    best = [float(np.max(columns[name], initial=0.0)) for name in FLOOR_FEATURES]
    return np.array(best)


@dataclass(frozen=True)
class Answerable:
    """Probability that a memory answers, by logistic regression, and the least that is enough.

    Parameters
    ----------
    coefficients : tuple of four floats
        In the order of ``FLOOR_FEATURES``.
    intercept : float
        As the regression found it.
    threshold : float
        Probability below which nothing is returned, in [0, 1].

    Raises
    ------
    InvalidInputError
        Not four coefficients, a number that is not finite, a threshold outside [0, 1].

    Examples
    --------
    >>> floor = Answerable((4.0, 2.0, 3.0, 2.0), intercept=-5.0, threshold=0.5)
    >>> floor.probability({name: np.array([0.9, 0.1]) for name in FLOOR_FEATURES}) > 0.9
    True
    """

    coefficients: tuple[float, ...]
    intercept: float
    threshold: float

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(FLOOR_FEATURES):
            raise InvalidInputError(
                f"{len(self.coefficients)} coefficients: give {len(FLOOR_FEATURES)}, "
                f"for {', '.join(FLOOR_FEATURES)}"
            )
        if not all(math.isfinite(x) for x in (*self.coefficients, self.intercept)):
            raise InvalidInputError("a coefficient is not finite: calibrate the floor again")
        if not 0.0 <= self.threshold <= 1.0:
            raise InvalidInputError(f"threshold is {self.threshold}: give one in [0, 1]")

    def probability(self, columns: Mapping[str, FloatArray]) -> float:
        """Return the probability, in [0, 1], that one of the candidates answers."""
        z = float(np.dot(self.coefficients, floor_features(columns))) + self.intercept
        return 0.5 * (1.0 + math.tanh(z / 2.0))

    def __call__(self, _view: object, candidates: Candidates) -> float:
        """Return the probability for a table that holds the signals' columns."""
        return self.probability(candidates.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "features": list(FLOOR_FEATURES),
            "coefficients": list(self.coefficients),
            "intercept": self.intercept,
            "threshold": self.threshold,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` gave.

        Raises
        ------
        InvalidInputError
            It was calibrated on other features.
        """
        if list(stored.get("features", ())) != list(FLOOR_FEATURES):
            raise InvalidInputError(
                f"the floor was calibrated on {stored.get('features')}, this version measures "
                f"{list(FLOOR_FEATURES)}: calibrate it again"
            )
        return cls(
            tuple(float(x) for x in stored["coefficients"]),
            float(stored["intercept"]),
            float(stored["threshold"]),
        )


def calibrated(
    answered: npt.ArrayLike, foreign: npt.ArrayLike, *, most_empty: float = 0.03
) -> Answerable:
    """Fit a floor to questions that the memory answers, and to questions from elsewhere.

    Parameters
    ----------
    answered, foreign : array-like of shape (n, 4)
        ``floor_features`` of either; at least 10 of each.
    most_empty : float, default 0.03
        Share of the answered questions that may come back empty, in [0, 1): it sets the threshold.

    Returns
    -------
    Answerable
        Both kinds count alike, however many there are of each, so that the probability is that of
        an even chance beforehand.

    Raises
    ------
    InvalidInputError
        Fewer than 10 questions of one kind, or a share outside [0, 1).
    """
    yes, no = np.asarray(answered, dtype=np.float64), np.asarray(foreign, dtype=np.float64)
    for name, rows in (("answered", yes), ("foreign", no)):
        if len(rows) < 10:
            raise InvalidInputError(f"{len(rows)} {name} questions: give at least 10")
    if not 0.0 <= most_empty < 1.0:
        raise InvalidInputError(f"most_empty is {most_empty}: give a share in [0, 1)")
    sizes = np.array([len(yes), len(no)])
    coefficients, intercept = maximum_likelihood(
        np.vstack([yes, no]),
        np.repeat([1, 0], sizes),
        np.repeat(sizes.sum() / (2.0 * sizes), sizes),
        penalty=0.01,
    )
    open_to_all = Answerable(tuple(coefficients.tolist()), intercept, threshold=0.0)
    passed = _probabilities(open_to_all, yes)
    # At a threshold that is one of the probabilities, the question it belongs to still passes.
    threshold = float(np.quantile(passed, most_empty, method="lower"))
    return Answerable(open_to_all.coefficients, open_to_all.intercept, threshold)


def _probabilities(floor: Answerable, features: npt.NDArray[np.float64]) -> Sequence[float]:
    return [
        floor.probability(dict(zip(FLOOR_FEATURES, row[:, None], strict=True))) for row in features
    ]
