"""Exploration for missing things: what was tried, and whether the plan could go on then."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any, NamedTuple

from experiments.plans.demonstration import Observation

ORIGIN, EXPLORED = "origin", "explored"
"""Metadata of attempts: how the game began, and the trials made in it."""


class Trial(NamedTuple):
    """One explored command, and what came of it.

    Attributes
    ----------
    need : str
        What was missing: the verb of the next step and the kinds of its things, see `Wish`.
    command : str
    moment : str
        In which it was given, see `moment`.
    led : bool
        Whether the plan could go on then, or after what this made possible.
    """

    need: str
    command: str
    moment: str
    led: bool


class Search:
    """What is explored in one game.

    Parameters
    ----------
    seen : Observation
        The first: games that begin with the same text may be the same.

    Attributes
    ----------
    origin : str
        A short name for that text: a hash of it.
    known : set of str
        The commands that were possible at any time.
    """

    def __init__(self, seen: Observation) -> None:
        text = seen.text.encode(errors="surrogatepass")
        self.origin = blake2b(text, digest_size=8).hexdigest()
        self.known = set(seen.admissible_commands)
        self._opened: frozenset[str] = frozenset()
        self._way: list[tuple[str, str, str, bool]] = []
        self._trials: list[Trial] = []

    def explored(self, need: str, command: str, moment: str) -> None:
        """Note a command that is about to be explored; without a plan nothing is missing."""
        if need:
            self._way.append((need, command, moment, command in self._opened))

    def saw(self, commands: Collection[str], *, explored: bool) -> None:
        """Note what is possible after a command, and whether that was explored."""
        self._opened = frozenset(commands).difference(self.known if explored else commands)
        self.known.update(commands)

    def led(self) -> None:
        """Take in that the plan can go on: by the last command, and by what opened that."""
        first = len(self._way) - 1
        while first > 0 and self._way[first][-1]:
            first -= 1
        self._end(first)

    def gave_up(self) -> None:
        """Take in that nothing explored since led on."""
        self._end(len(self._way))

    def _end(self, first: int) -> None:
        for place, (need, command, moment, _) in enumerate(self._way):
            self._trials.append(Trial(need, command, moment, place >= first))
        self._way = []

    def told(self) -> dict[str, Any]:
        """Return, as metadata of an attempt, the trials that were not returned before."""
        trials, self._trials = self._trials, []
        return {ORIGIN: self.origin, EXPLORED: [list(trial) for trial in trials]}
