"""Counts of choices by context, with leave-one-episode-out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

Counts: TypeAlias = Counter[tuple[str, ...]]
_WEAK = 1.0
"""How many choices the share at large is worth, where a context is rare."""


class Choice(NamedTuple):
    """What was chosen, and under which named contexts."""

    episode: int
    chosen: str
    contexts: Mapping[str, str]


class Shares:
    """Counts of choices.

    Parameters
    ----------
    choices : iterable of Choice
        What is in memory.
    apart : sequence of collection of int
        By episode: which episodes are not known where it is predicted, its own among them.
    """

    def __init__(self, choices: Iterable[Choice], apart: Mapping[int, Collection[int]]) -> None:
        self._of_episode: dict[int, Counts] = defaultdict(Counter)
        for episode, chosen, contexts in choices:
            counts = self._of_episode[episode]
            for name, context in [*contexts.items(), ("", "")]:
                counts[name, context, chosen] += 1
                counts[name, context] += 1
        self._apart = {episode: self.within(others) for episode, others in apart.items()}

    def within(self, episodes: Collection[int]) -> Counts:
        """Return the counts of these episodes."""
        total: Counts = Counter()
        for episode in episodes:
            total.update(self._of_episode.get(episode, {}))
        return total

    def known(self, total: Counts, episode: int) -> Known:
        """Return what an episode may know of a total."""
        return Known(total, self._apart[episode])


class Known(NamedTuple):
    """Counts, less those that are not to be known."""

    total: Counts
    hidden: Counts

    def log_share(self, name: str, context: str, option: str) -> float:
        """Return the logarithm of an option's share in a context; rare contexts lean on all."""
        options = self._less("", "", option) + 0.1
        at_large = options / (self._less("", "") + 1.0)
        there = self._less(name, context, option)
        return math.log((there + _WEAK * at_large) / (self._less(name, context) + _WEAK))

    def _less(self, *key: str) -> int:
        return self.total[key] - self.hidden[key]
