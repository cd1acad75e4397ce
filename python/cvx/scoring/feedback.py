"""Learns ranking weights from feedback, and uses them only where feedback proves reliable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EVERY = 5
"""Lists between two steps of learning."""
_STEPS = 4
_RIDGE = 1.0
_AGREES, _BETTER = 25, 60
_FEWEST = 12
_SURE = 1.64

ODDS = 39.0
"""Log-odds of a score of 1: what the shipped weights add up to before they are divided by it."""


@dataclass
class FeedbackRanker:
    """What feedback adds to the weights of a ranking.

    Weights are learned from pairs, of what helped and what did not, by logistic regression with a
    normal prior around the shipped weights; every five lists the posterior becomes the prior of
    the next five. They are used only where trusted: over the last 25 lists, the shipped score
    agrees with the feedback (whoever flips it disagrees), and over the last 60 what had been
    learned before each list ordered it better than the shipped score, by a standard error.

    Parameters
    ----------
    names : tuple of str
        The columns.
    shipped : ndarray of shape (d,), float64
        Their weights, of which a difference of 1 is one of log-odds.
    weights : ndarray of shape (d,), float64
        What they became; by default as shipped.
    precision : ndarray of shape (d, d), float64
        How sure that is; by default 1 a weight.
    waiting : list of ndarray of shape (p, d)
        Differences between what helped and what did not, a list each, not yet learned from.
    judged : list of (float, float)
        Of the last lists: the share of pairs that the shipped score, and the learned one before it
        knew the list, have in the right order.
    """

    names: tuple[str, ...]
    shipped: Floats
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    precision: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    waiting: list[Floats] = field(default_factory=list)
    judged: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.weights.size:
            self.weights = self.shipped.copy()
            self.precision = _RIDGE * np.eye(len(self.names))

    @property
    def trusted(self) -> bool:
        """Whether what was learned is to be used."""
        if len(self.judged) < _FEWEST:
            return False
        shipped, learned = np.array(self.judged[-_BETTER:]).T
        return bool(
            _at_least(shipped[-_AGREES:], _SURE) > 0.5 and _at_least(learned - shipped, 1.0) > 0.0
        )

    def fits(self, weights: Mapping[str, float]) -> bool:
        """Return whether it was learned beside these weights, whatever their scale."""
        return self.names == tuple(weights) and np.allclose(self.shipped, _in_odds(weights))

    @classmethod
    def beside(cls, weights: Mapping[str, float]) -> Self:
        """Return one that has learned nothing yet."""
        return cls(tuple(weights), _in_odds(weights))

    def offsets(self, columns: Mapping[str, Floats]) -> Floats:
        """Return what is added to the shipped scores, in log-odds; see `ODDS`.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n,)
            Of the candidates, as they are weighed.
        """
        out: Floats = rows_of(self.names, columns) @ (self.weights - self.shipped)
        return out

    def learn(self, good: Floats, bad: Floats, unseen: Floats) -> None:
        """Take in one list.

        Parameters
        ----------
        good, bad : ndarray of shape (g, d), (b, d)
            Columns of what was shown and helped, and of what was shown and did not.
        unseen : ndarray of shape (u, d)
            Of what ranked too low to be shown.
        """
        shown = _differences(good, bad)
        if len(shown):
            self.judged = [
                *self.judged[1 - _BETTER :],
                (_in_order(shown @ self.shipped), _in_order(shown @ self.weights)),
            ]
        pairs = _differences(good, np.concatenate([bad, unseen]))
        if len(pairs):
            self.waiting.append(pairs)
        if len(self.waiting) >= EVERY:
            self._step(np.concatenate(self.waiting))
            self.waiting = []

    def _step(self, pairs: Floats) -> None:
        before, weights, hessian = self.weights, self.weights, self.precision
        for _ in range(_STEPS):
            chance = 0.5 * (1.0 - np.tanh(pairs @ weights / 2.0))
            gradient = pairs.T @ chance - self.precision @ (weights - before)
            hessian = self.precision + (pairs * (chance * (1.0 - chance))[:, None]).T @ pairs
            weights = weights + np.linalg.solve(hessian, gradient)
        self.weights, self.precision = weights, hessian

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "names": list(self.names),
            "shipped": self.shipped.tolist(),
            "weights": self.weights.tolist(),
            "precision": self.precision.tolist(),
            "waiting": [pairs.tolist() for pairs in self.waiting],
            "judged": [list(one) for one in self.judged],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` gave."""
        return cls(
            tuple(stored["names"]),
            np.array(stored["shipped"]),
            np.array(stored["weights"]),
            np.array(stored["precision"]),
            [np.array(pairs) for pairs in stored["waiting"]],
            [(float(a), float(b)) for a, b in stored["judged"]],
        )


def rows_of(names: Sequence[str], columns: Mapping[str, Floats]) -> Floats:
    """Return columns as rows, of shape (n, d); 0 where one is missing."""
    missing = np.zeros(len(next(iter(columns.values()), ())))
    made: Floats = np.stack([columns.get(name, missing) for name in names], axis=1)
    return np.nan_to_num(made)


def _differences(good: Floats, bad: Floats) -> Floats:
    """Return every good row minus every bad one, of shape (g * b, d)."""
    out: Floats = (good[:, None] - bad[None]).reshape(-1, good.shape[-1])
    return out


def _at_least(values: Floats, errors: float) -> float:
    """Return the mean less so many standard errors."""
    return float(values.mean() - errors * values.std(ddof=1) / math.sqrt(len(values)))


def _in_order(margins: Floats) -> float:
    """Return the share of pairs in the right order, ties half."""
    return float(np.mean((margins > 0) + 0.5 * (margins == 0)))


def _in_odds(weights: Mapping[str, float]) -> Floats:
    values = np.array([*weights.values()], dtype=np.float64)
    scaled: Floats = values * ODDS / (values[values > 0].sum() or 1.0)
    return scaled
