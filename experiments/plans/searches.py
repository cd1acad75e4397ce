"""Exploration for missing things: where to look, learned from where things were found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from experiments.plans.demonstration import Observation
from experiments.plans.words import shape, unnumbered

ORIGIN, EXPLORED = "origin", "explored"
"""Metadata of attempts: how the game began, and the trials made in it."""

# How many trials a prior is worth. What a game that began the same showed is hardly doubted,
# as far as such games turn out alike. 5 and 1 of the former were as good on tuning games.
_STRENGTH, _HERE = 2.0, 0.1


class Trial(NamedTuple):
    """One explored command, and what came of it.

    Attributes
    ----------
    need : str
        What was missing: the verb of the next step and the kinds of its things, see `Wish`.
    command : str
    led : bool
        Whether the plan could go on then, or after what this made possible.
    first : bool
        Whether it was the first time in its game, for this need.
    """

    need: str
    command: str
    led: bool
    first: bool


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
    """

    def __init__(self, seen: Observation) -> None:
        text = seen.text.encode(errors="surrogatepass")
        self.origin = blake2b(text, digest_size=8).hexdigest()
        self._known = set(seen.admissible_commands)
        self._opened: frozenset[str] = frozenset()
        self._way: list[tuple[str, str, bool]] = []
        self._trials: list[Trial] = []
        self._met: set[tuple[str, str]] = set()

    def explored(self, need: str, command: str) -> None:
        """Note a command that is about to be explored; without a plan nothing is missing."""
        if need:
            self._way.append((need, command, command in self._opened))

    def saw(self, commands: Collection[str], *, explored: bool) -> None:
        """Note what is possible after a command, and whether that was explored."""
        self._opened = frozenset(commands).difference(self._known if explored else commands)
        self._known.update(commands)

    def led(self) -> None:
        """Take in that the plan can go on: by the last command, and by what opened that."""
        first = len(self._way) - 1
        while first > 0 and self._way[first][2]:
            first -= 1
        self._end(first)

    def gave_up(self) -> None:
        """Take in that nothing explored since led on."""
        self._end(len(self._way))

    def _end(self, first: int) -> None:
        for place, (need, command, _) in enumerate(self._way):
            known = (need, command) in self._met
            self._trials.append(Trial(need, command, place >= first, not known))
            self._met.add((need, command))
        self._way = []

    def told(self) -> dict[str, Any]:
        """Return, as metadata of an attempt, the trials that were not returned before."""
        trials, self._trials = self._trials, []
        return {ORIGIN: self.origin, EXPLORED: [list(trial) for trial in trials]}


class _Rates:
    """How often commands led on, of how often they were tried, on several levels."""

    def __init__(self) -> None:
        self._led: defaultdict[object, Counter[str]] = defaultdict(Counter)
        self._all: defaultdict[object, Counter[str]] = defaultdict(Counter)

    def note(self, level: object, what: str, led: bool) -> None:
        """Count one trial."""
        self._led[level][what] += led
        self._all[level][what] += 1

    def ever(self, level: object, what: str) -> bool:
        """Whether it ever led on."""
        return level in self._led and self._led[level][what] > 0

    def mean(self, level: object, what: str, prior: float, strength: float) -> float:
        """Return the mean of a Beta posterior whose prior has this mean and is worth so much."""
        if level not in self._all:
            return prior
        return (self._led[level][what] + strength * prior) / (self._all[level][what] + strength)


class Searches:
    """How likely a command leads to what is missing, by what was explored before.

    Four Beta posteriors, each the prior of the next: of all commands; of those of this shape; of
    those with these names (without numbers) when a step of this verb was missing; of those when
    its things were these. Then the very command in games that began just as this one, as far as
    that is to be trusted: as often as what led on in earlier such games did so again, for steps of
    this verb. Rooms stay where they are, things may not.

    What failed tells as much as what succeeded: where nothing was found is not looked for again.

    References
    ----------
    Stone 1975, Theory of Optimal Search: a look in vain lowers the chance of finding something
    there, and the next look goes where that is best.
    """

    def __init__(self) -> None:
        self._rates, self._again = _Rates(), _Rates()

    def note(self, origin: str, trials: Iterable[Trial]) -> None:
        """Take in what was explored in a game.

        Parameters
        ----------
        origin : str
            See `Search`.
        trials : iterable of Trial
        """
        rates = self._rates
        for need, command, led, first in trials:
            verb, name = need.partition(" ")[0], unnumbered(command)
            if first and rates.ever(("game", origin, need), command):
                self._again.note("all", "", led)
                self._again.note("verb", verb, led)
            rates.note("all", "", led)
            rates.note("shape", shape(command), led)
            rates.note(("verb", verb), name, led)
            rates.note(("need", need), name, led)
            rates.note(("game", origin, need), command, led)

    def trust(self, verb: str) -> float:
        """Return how often what led to a step of this verb did so again where games began so."""
        return self._again.mean("verb", verb, self._again.mean("all", "", 0.5, 1.0), 1.0)

    def chance(self, origin: str, need: str, command: str) -> float:
        """Return the chance that a command leads to what is missing.

        Parameters
        ----------
        origin : str
            See `Search`.
        need : str
            See `Trial`.
        command : str
        """
        rates, verb, name = self._rates, need.partition(" ")[0], unnumbered(command)
        known = rates.mean("all", "", 0.5, 1.0)
        known = rates.mean("shape", shape(command), known, _STRENGTH)
        known = rates.mean(("verb", verb), name, known, _STRENGTH)
        known = rates.mean(("need", need), name, known, _STRENGTH)
        here, trust = rates.mean(("game", origin, need), command, known, _HERE), self.trust(verb)
        return trust * here + (1 - trust) * known
