"""When to answer nothing: a calibrated probability that the memory holds an answer at all.

Similarities of nonsense are as spread out among themselves as those of sense, so a ranking always
has a first place. Four numbers tell the two apart: how near the nearest event is, and how much of
what the question speaks of occurs in the best event, in the memory at all, and in the best window.
Whether a name in the question is known is none of them: it would tell whose memory is
asked, not whether it knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.recall.floor import fullness
from cvx.recall.signals.view import Candidates, FloatArray
from cvx.recall.signals.weights import COLUMNS
from cvx.recall.view import View
from cvx.scoring.logistic import maximum_likelihood

FLOOR_FEATURES = ("dense", "coverage", "coverage_store", "coverage_window")
"""Columns of which the highest value among the candidates counts."""
_KNOWN = frozenset((*COLUMNS, "coverage_store"))


def floor_features(
    columns: Mapping[str, FloatArray], names: Sequence[str] = FLOOR_FEATURES
) -> npt.NDArray[np.float64]:
    """Return the highest values of some columns, unscaled; zeros for an empty table.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        What the signals made, before any scaling.
    names : sequence of str, default ``FLOOR_FEATURES``
        Which ones.

    Returns
    -------
    ndarray of shape (m,), float64
        In their order.
    """
    return np.array([float(np.max(columns[name], initial=0.0)) for name in names])


@dataclass(frozen=True)
class Answerable:
    """Probability that a memory answers, by logistic regression, and the least that is enough.

    Parameters
    ----------
    coefficients : tuple of floats
        In the order of ``features``.
    intercept : float
        As the regression found it.
    threshold : float
        Probability below which nothing is returned, in [0, 1].
    leniency : float, default 0.0
        Added to the log-odds in an empty memory, and ever less of it up to 300 events: in a small
        one most words of a question are new, whether it knows the answer or not.
    features : tuple of str, default ``FLOOR_FEATURES``
        Columns of which the highest value counts.

    Raises
    ------
    InvalidInputError
        A feature that is no column, not a coefficient for each, a number that is not finite, a
        threshold outside [0, 1].

    Examples
    --------
    >>> floor = Answerable((4.0, 2.0, 3.0, 2.0), intercept=-5.0, threshold=0.5)
    >>> floor.probability({name: np.array([0.9, 0.1]) for name in FLOOR_FEATURES}) > 0.9
    True
    """

    coefficients: tuple[float, ...]
    intercept: float
    threshold: float
    leniency: float = 0.0
    features: tuple[str, ...] = FLOOR_FEATURES

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.features) - _KNOWN):
            raise InvalidInputError(
                f"the floor was calibrated on {', '.join(unknown)}, which this version does not "
                "measure: calibrate it again"
            )
        if len(self.coefficients) != len(self.features):
            raise InvalidInputError(
                f"{len(self.coefficients)} coefficients: give {len(self.features)}, "
                f"for {', '.join(self.features)}"
            )
        if not all(math.isfinite(x) for x in (*self.coefficients, self.intercept, self.leniency)):
            raise InvalidInputError("a coefficient is not finite: calibrate the floor again")
        if not 0.0 <= self.threshold <= 1.0:
            raise InvalidInputError(f"threshold is {self.threshold}: give one in [0, 1]")

    def probability(self, columns: Mapping[str, FloatArray], size: int | None = None) -> float:
        """Return the probability, in [0, 1], that one of the candidates answers.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n,)
            Of the candidates.
        size : int, optional
            Events of the memory; by default enough.
        """
        z = float(np.dot(self.coefficients, floor_features(columns, self.features)))
        z += self.intercept
        z += self.leniency * (0.0 if size is None else 1.0 - fullness(size))
        return 0.5 * (1.0 + math.tanh(z / 2.0))

    def __call__(self, view: View, candidates: Candidates) -> float:
        """Return the probability for a table that holds the signals' columns."""
        return self.probability(candidates.columns, view.size)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "features": list(self.features),
            "coefficients": list(self.coefficients),
            "intercept": self.intercept,
            "threshold": self.threshold,
            "leniency": self.leniency,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` gave.

        Raises
        ------
        InvalidInputError
            It was calibrated on other features.
        """
        return cls(
            tuple(float(x) for x in stored["coefficients"]),
            float(stored["intercept"]),
            float(stored["threshold"]),
            float(stored.get("leniency", 0.0)),
            tuple(stored["features"]),
        )


LEXICAL_FLOOR = Answerable((1.4, 3.0, 2.0, 4.0), -5.5, threshold=0.124, leniency=3.4)
SEMANTIC_FLOOR = Answerable((14.4, 2.4, 0.7, 2.2), -9.0, threshold=0.15, leniency=4.0)
"""Of the lexical embedder and of MiniLM: rounded from fits to questions of three conversations."""

_LIKE_MINILM = re.compile(r"minilm|^local/384/mean/9977d53604db81fa", re.IGNORECASE)
_USUAL = 0.24, 0.135
"""Mean and standard deviation of MiniLM's cosines of two events of one memory, at random."""


def shipped_floor(embedder: str | None) -> Answerable | Learned | None:
    """Return the floor that a memory of this embedder has, None where nothing is embedded.

    Parameters
    ----------
    embedder : str or None
        The ``id`` that it says.
    """
    if embedder is None:
        return None
    if embedder.startswith("cvx-lexical-1/"):
        return LEXICAL_FLOOR
    return SEMANTIC_FLOOR if _LIKE_MINILM.search(embedder) else Learned()


@dataclass(frozen=True)
class Learned:
    """The floor of MiniLM, on the scale of another embedder.

    How like two events of the memory are that have nothing to do with each other, as most of its
    pairs have not, says where the scale begins and how wide it is. No question is asked for that,
    and nothing embedded.

    Parameters
    ----------
    fewest : int, default 50
        Events with a vector that it takes; with fewer, nothing is known.
    """

    fewest: int = 50
    threshold: float = SEMANTIC_FLOOR.threshold

    def __call__(self, view: View, candidates: Candidates) -> float | None:
        """Return the probability for a table that holds the signals' columns, if it is known."""
        usual = view.background(self.fewest)
        if usual is None or usual[1] <= 0.0:
            return None
        columns = dict(candidates.columns)
        columns["dense"] = _USUAL[0] + (columns["dense"] - usual[0]) * _USUAL[1] / usual[1]
        return SEMANTIC_FLOOR.probability(columns, view.size)


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
