"""Learns ranking weights from feedback, and uses them only where feedback proves reliable."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

_MOST_HELPED = 10_000
_ALIKE, _AGAIN, _REMEMBERED = 0.5, 4.0, 256
"""A question with so great a share of words in common with an earlier one is asked again; so many
log-odds what helped then gets; of so many lists."""

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

    What helped comes higher where the question is asked again, at once: by the words that both
    have in common, shared among those that helped. That too ends where the feedback of the last 25
    lists does not agree with the shipped score.

    Parameters
    ----------
    names : tuple of str
        The columns.
    shipped : ndarray of shape (d,), float64
        Their weights, of which a difference of 1 is one of log-odds.
    weights : ndarray of shape (d,), float64
        What they became; at first as shipped.
    precision : ndarray of shape (d, d), float64
        How sure that is; at first 1 a weight.
    waiting : list of ndarray of shape (p, d)
        Differences between what helped and what did not, a list each, not yet learned from.
    judged : list of (float, float)
        Of the last lists: the share of pairs that the shipped score, and the learned one before it
        knew the list, have in the right order.
    asked : list of (list of str, list of int)
        Of the last 256 lists: the words of the question, and the events that helped.
    helped : list of int
        The 10,000 events that helped last, the latest at the end.
    """

    names: tuple[str, ...]
    shipped: Floats
    weights: Floats
    precision: Floats
    waiting: list[Floats] = field(default_factory=list)
    judged: list[tuple[float, float]] = field(default_factory=list)
    asked: list[tuple[list[str], list[int]]] = field(default_factory=list)
    helped: list[int] = field(default_factory=list)

    @property
    def trusted(self) -> bool:
        """Whether what was learned is to be used."""
        if len(self.judged) < _FEWEST:
            return False
        shipped, learned = np.array(self.judged[-_BETTER:]).T
        return self.agrees and _at_least(learned - shipped, 1.0) > 0.0

    @property
    def agrees(self) -> bool:
        """Whether the shipped score agrees with the feedback, as far as that can be told."""
        if len(self.judged) < _FEWEST:
            return True
        return _at_least(np.array(self.judged[-_AGREES:])[:, 0], _SURE) > 0.5

    def fits(self, weights: Mapping[str, float]) -> bool:
        """Return whether it was learned beside these weights, whatever their scale."""
        return self.names == tuple(weights) and np.allclose(self.shipped, _in_odds(weights))

    @classmethod
    def beside(cls, weights: Mapping[str, float]) -> Self:
        """Return one that has learned nothing yet."""
        shipped = _in_odds(weights)
        return cls(tuple(weights), shipped, shipped.copy(), _RIDGE * np.eye(len(weights)))

    def offsets(
        self, columns: Mapping[str, Floats], words: Collection[str], events: npt.NDArray[np.int64]
    ) -> Floats:
        """Return what is added to the shipped scores, in log-odds; see `ODDS`.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n,)
            Of the candidates, as they are weighed.
        words : collection of str
            Of the question.
        events : ndarray of shape (n,), int64
            The candidates.
        """
        out = self.helped_before(words, events)
        if self.trusted:
            out += rows_of(self.names, columns) @ (self.weights - self.shipped)
        return out

    def helped_before(self, words: Collection[str], events: npt.NDArray[np.int64]) -> Floats:
        """Return what those get that helped when the question was asked before; else 0."""
        again, now = np.zeros(len(events)), set(words)
        for before, helped in self.asked if self.agrees and now else ():
            alike = len(now.intersection(before)) / len(now.union(before))
            if alike >= _ALIKE:
                worth = _AGAIN * alike / len(helped)
                again = np.maximum(again, worth * np.isin(events, helped))
        return again

    def without(self, events: Collection[int]) -> Self:
        """Return it without what some events taught.

        Questions for which one of them helped are no longer known; the weights are as shipped,
        since nobody can say what of them came from where.
        """
        asked = [one for one in self.asked if not {*one[1]} & {*events}]
        return replace(self, weights=self.shipped, asked=asked)

    def learn(
        self,
        good: Floats,
        bad: Floats,
        unseen: Floats,
        words: Sequence[str] = (),
        helped: Sequence[int] = (),
        *,
        weigh: bool = True,
    ) -> None:
        """Take in one list.

        Parameters
        ----------
        good, bad : ndarray of shape (g, d), (b, d)
            Columns of what was shown and helped, and of what was shown and did not.
        unseen : ndarray of shape (u, d)
            Of what ranked too low to be shown.
        words : sequence of str
            Of the question.
        helped : sequence of int
            The events that did.
        weigh : bool, default True
            Whether the weights learn from it, too.
        """
        new = dict.fromkeys(helped)
        self.helped = [*(one for one in self.helped if one not in new), *new][-_MOST_HELPED:]
        if words and helped:
            self.asked = [*self.asked[1 - _REMEMBERED :], ([*words], [*helped])]
        if not weigh:
            return
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

    def take_back(
        self,
        good: Floats,
        bad: Floats,
        unseen: Floats,
        words: Sequence[str],
        helped: Sequence[int],
    ) -> bool:
        """Take out what ``learn`` was given of one list, and say whether the weights forgot it.

        They do while it waits. Once they learned from it nobody can say what of them came from
        where: then only the question is forgotten. ``helped`` keeps what they, or another of the
        last questions, rest on.
        """
        question = ([*words], [*helped])
        self.asked = [one for one in self.asked if (list(one[0]), list(one[1])) != question]
        pairs = _differences(good, np.concatenate([bad, unseen]))
        waits = [at for at, one in enumerate(self.waiting) if np.array_equal(one, pairs)]
        if not waits:
            return not len(pairs)
        del self.waiting[waits[0]]
        elsewhere = {event for _, events in self.asked for event in events}
        gone = {*helped} - elsewhere
        self.helped = [one for one in self.helped if one not in gone]
        shown = _differences(good, bad)
        if len(shown):
            # Of the lists that wait, those judged last; equal ones are as good as each other.
            judged = _in_order(shown @ self.shipped), _in_order(shown @ self.weights)
            places = [at for at, one in enumerate(self.judged) if tuple(one) == judged]
            if places:
                del self.judged[places[-1]]
        return True

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
            "asked": [list(one) for one in self.asked],
            "helped": self.helped,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` gave.

        Raises
        ------
        TypeError, ValueError, LookupError, OverflowError
            Something else, as a file from elsewhere may hold.
        """
        d = len(stored["names"])
        precision = _numbers(stored["precision"], d, d)
        # It must be positive definite: what is learned next is divided by it.
        np.linalg.cholesky(precision)
        return cls(
            tuple(stored["names"]),
            _numbers(stored["shipped"], d),
            _numbers(stored["weights"], d),
            precision,
            [_numbers(pairs, len(pairs), d) for pairs in stored["waiting"]],
            [(float(a), float(b)) for a, b in stored["judged"]],
            [
                ([*map(str, words)], [*map(int, helped)])
                for words, helped in stored.get("asked", ())
                if helped
            ],
            [*map(int, stored.get("helped", ()))][-_MOST_HELPED:],
        )


def _numbers(told: Any, *shape: int) -> Floats:
    """Return finite numbers of a shape, or raise a ValueError or TypeError."""
    out = np.array(told, dtype=np.float64)
    if out.shape != shape or not np.isfinite(out).all():
        raise ValueError(f"not {shape} finite numbers")
    return out


def rows_of(names: Sequence[str], columns: Mapping[str, Floats]) -> Floats:
    """Return columns as rows, of shape (n, d); 0 where one is missing."""
    missing = np.zeros(len(next(iter(columns.values()), ())))
    made: Floats = np.array([columns.get(name, missing) for name in names]).T
    made[~np.isfinite(made)] = 0.0
    return made


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
