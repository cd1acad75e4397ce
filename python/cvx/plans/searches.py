"""What was explored for what was missing, and whether it led on: where to look, and where not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from cvx.plans.words import shape, unnumbered

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
        What was missing: the verb of the next step and the names of its things, see `Wish`.
    command : str
    led : bool
        Whether that step was possible then, or after what this made possible.
    """

    need: str
    command: str
    led: bool


class Search:
    """What is explored in one game.

    Parameters
    ----------
    text : str
        What was told first: games that begin with the same text may be the same.

    Attributes
    ----------
    origin : str
        A short name for that text: a hash of it.
    opened : collection of str
        What the last command made possible.
    """

    def __init__(self, text: str) -> None:
        self.origin = blake2b(text.encode(), digest_size=8).hexdigest()
        self.opened: Collection[str] = ()
        self._way: list[tuple[str, str, bool]] = []
        self._trials: list[Trial] = []

    def explored(self, need: str, command: str) -> None:
        """Note a command that is about to be explored."""
        self._way.append((need, command, command in self.opened))

    def led(self) -> None:
        """Take in that what was missing is possible: by the last command, and by what opened it."""
        first = len(self._way) - 1
        while first > 0 and self._way[first][2]:
            first -= 1
        self._end(first)

    def gave_up(self) -> None:
        """Take in that nothing explored since led on."""
        self._end(len(self._way))

    def _end(self, first: int) -> None:
        way = enumerate(self._way)
        self._trials += [Trial(need, command, i >= first) for i, (need, command, _) in way]
        self._way = []

    def told(self) -> dict[str, Any]:
        """Return, as metadata of an attempt, the trials that were not returned before."""
        trials, self._trials = self._trials, []
        return {ORIGIN: self.origin, EXPLORED: [list(trial) for trial in trials]}


class _Rates:
    """How often something led on, of how often it was tried, in each of several places."""

    def __init__(self) -> None:
        self._led: defaultdict[object, Counter[str]] = defaultdict(Counter)
        self._all: defaultdict[object, Counter[str]] = defaultdict(Counter)

    def note(self, place: object, what: str, led: bool) -> None:
        """Count one trial."""
        self._led[place][what] += led
        self._all[place][what] += 1

    def ever(self, place: object, what: str) -> bool:
        """Whether it ever led on."""
        return place in self._led and self._led[place][what] > 0

    def mean(self, place: object, what: str, prior: float, strength: float) -> float:
        """Return the mean of a Beta posterior whose prior has this mean and is worth so much."""
        if place not in self._all:
            return prior
        return (self._led[place][what] + strength * prior) / (self._all[place][what] + strength)


class Searches:
    """How likely a command leads to what is missing, by what was explored before.

    Four Beta posteriors, each the prior of the next: of all commands; of those of this shape; of
    those with these names (without numbers) when a step of this verb was missing; of those when
    its things were these. Then the very command in games that began just as this one, as far as
    that is to be trusted: as often as what led on in such games before did so again, for steps of
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
        for need, command, led in trials:
            verb, name = need.partition(" ")[0], unnumbered(command)
            if rates.ever((origin, need), command):
                self._again.note("", "", led)
                self._again.note("", verb, led)
            rates.note("", "", led)
            rates.note("", shape(command), led)
            rates.note(("", verb), name, led)
            rates.note(("", need), name, led)
            rates.note((origin, need), command, led)

    def trust(self, verb: str) -> float:
        """Return how often what led to a step of this verb did so again where games began so."""
        return self._again.mean("", verb, self._again.mean("", "", 0.5, 1.0), 1.0)

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
        known = rates.mean("", "", 0.5, 1.0)
        known = rates.mean("", shape(command), known, _STRENGTH)
        known = rates.mean(("", verb), name, known, _STRENGTH)
        known = rates.mean(("", need), name, known, _STRENGTH)
        here, trust = rates.mean((origin, need), command, known, _HERE), self.trust(verb)
        return trust * here + (1 - trust) * known
