"""`HistoryEvidence`: whether the actions before tell states of a task apart that look the same."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cvx.learn.advisor.types import Key, digest

_MATTERS = 0.1
"""How likely a history matters after a text and an action, before anything was seen."""

_BEFORE = (1.0, 1.0), (0.5, 4.0)
"""Wins and losses that episodes without and with a history are taken for to begin with: where both
do as well, few are played with it."""


class HistoryEvidence:
    """Evidence on whether the actions before tell states apart that look the same.

    Two things speak for a history. It foretells better what follows: of each text and action both
    foretell every outcome from how often it came before, by a Dirichlet of .5 an outcome, and each
    is weighed by itself, since a history may matter after few of them and only spread the counts of
    the others (as in context tree weighting; Willems et al. 1995). And episodes that are played by
    it earn more, which decides while nothing that a history would foretell was ever seen.

    Attributes
    ----------
    gain : float
        The log of the odds that it foretells better.
    """

    def __init__(self) -> None:
        self.gain = 0.0
        # By digests: of what was known, and of that with what followed. Those that were saved, in
        # ascending order, and what came on top: to make a dictionary of a million takes longer
        # than to look up the few that the next episodes ask for.
        self._saved = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self._counts = Counter[int]()
        self._kinds: set[int] = set()
        # By how much the history is ahead in foretelling what follows a text and an action.
        self._ahead: dict[int, float] = {}
        # Of episodes without and with it: how many, and what they earned.
        self._earned = np.zeros((2, 2))
        self._range = (0.0, 0.0)

    def see(self, short: Key, long: Key, outcome: Key) -> None:
        """Take in what followed, known by the last text alone and by the history as well."""
        kind = digest(outcome)
        self._kinds.add(kind)
        of = digest("short", short)
        before = ahead = self._ahead.get(of, 0.0)
        for sign, known in ((-1.0, of), (1.0, digest("long", long))):
            both = (31 * known + kind) % 2**64
            chance = (self._count(both) + 0.5) / (self._count(known) + 0.5 * (len(self._kinds) + 1))
            ahead += sign * math.log(chance)
            self._counts[known] += 1
            self._counts[both] += 1
        self._ahead[of] = ahead
        self.gain += _log_odds(ahead) - _log_odds(before)

    def _count(self, known: int) -> int:
        """Return how often something came."""
        there, counts = self._saved
        at = int(np.searchsorted(there, np.uint64(known))) if len(there) else 0
        before = int(counts[at]) if at < len(there) and there[at] == known else 0
        return before + self._counts[known]

    def earn(self, by_history: bool, total: float) -> None:
        """Take in what an episode earned that was played by the history, or without it."""
        self._earned[int(by_history)] += 1.0, total
        self._range = min(self._range[0], total), max(self._range[1], total)

    def draw(self, rng: random.Random) -> bool:
        """Draw whether an episode is played by the history: how likely it pays."""
        if rng.random() > 0.5 * (1.0 + math.tanh(self.gain / 2.0)):
            return False
        low, high = self._range
        without, by_history = (
            rng.betavariate(won + share, lost + n - share)
            for (n, total), (won, lost) in zip(self._earned.tolist(), _BEFORE, strict=True)
            for share in [(total - n * low) / (high - low) if high > low else 0.0]
        )
        return by_history > without

    def saved(self) -> dict[str, Any]:
        """Return all of it as numbers and arrays."""
        before, often = self._saved
        new = np.array([*self._counts], dtype=np.uint64)
        more = np.array([*self._counts.values()], dtype=np.int64)
        known, at = np.unique(np.concatenate([before, new]), return_inverse=True)
        counts = np.zeros(len(known), dtype=np.int64)
        np.add.at(counts, at, np.concatenate([often, more]))
        return {
            "gain": self.gain,
            "kinds": np.array([*self._kinds], dtype=np.uint64),
            "known": known,
            "counts": counts,
            "of": np.array([*self._ahead], dtype=np.uint64),
            "ahead": np.array([*self._ahead.values()], dtype=np.float64),
            "earned": self._earned,
            "range": self._range,
        }

    @classmethod
    def restored(cls, told: Mapping[str, Any]) -> Self:
        """Return what was saved.

        Raises
        ------
        ValueError
            What was counted is not in order.
        """
        made = cls()
        made.gain, made._kinds = float(told["gain"]), set(told["kinds"].tolist())
        known, counts = made._saved = told["known"], told["counts"]
        if len(known) != len(counts) or not (known[1:] > known[:-1]).all():
            raise ValueError("what was counted is not in order")
        made._ahead = dict(zip(told["of"].tolist(), told["ahead"].tolist(), strict=True))
        made._earned, (low, high) = np.array(told["earned"]), told["range"]
        made._range = float(low), float(high)
        return made


def _log_odds(ahead: float) -> float:
    """Return the log odds that a history matters after a text, from how far it is ahead there."""
    return float(np.logaddexp(math.log1p(-_MATTERS), math.log(_MATTERS) + ahead))
