"""A map of places, for games in which the same command leads elsewhere from each place."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable

from experiments.plans.clauses import clauses, names_in
from experiments.plans.words import shape


def moving(told: Iterable[tuple[str, str]]) -> set[str]:
    """Return the shapes of commands that name something and lead to different places.

    Parameters
    ----------
    told : iterable of (command, text)
        Commands in order, and what was told after each.

    Examples
    --------
    >>> moving([("walk left", "Hall. A peg."), ("walk left", "Attic."), ("wait", "So.")])
    {'walk #'}
    """
    first: dict[str, str] = {}
    found = set()
    for command, text in told:
        place = place_of(text)
        if "#" in shape(command) and first.setdefault(command, place) != place:
            found.add(shape(command))
    return found


def place_of(text: str) -> str:
    """Return the first clause of a text: in a text told on arrival, the place."""
    return next(iter(clauses(text)), "")


class PlaceMap:
    """The places of one game, what was told in each, and which command leads from which to which.

    Where no commands are known to move, there is one place, and nothing leads anywhere.

    Parameters
    ----------
    moves : collection of str
        The shapes of commands that move, see `moving`.
    """

    def __init__(self, moves: Collection[str]) -> None:
        self.moves = moves
        self.here = ""
        self._told: dict[str, list[str]] = defaultdict(list)
        self._ways: dict[str, dict[str, str]] = defaultdict(dict)
        self._open: dict[str, set[str]] = defaultdict(set)

    def note(self, command: str | None, text: str, commands: Iterable[str]) -> None:
        """Take in what a command led to.

        Parameters
        ----------
        command : str or None
            None at the start.
        text : str
            What was told then.
        commands : iterable of str
            What can be done there.
        """
        if command is None or shape(command) in self.moves:
            there = place_of(text)
            if command is not None:
                self._ways[self.here][command] = there
            self.here = there
        self._told[self.here].append(text)
        self._open[self.here] = {c for c in commands if shape(c) in self.moves}

    def toward(self, names: Collection[str]) -> Collection[str]:
        """Return the commands that lead on to where things with these names may be.

        The first of the shortest way to the place where most of them were told of; failing that,
        those from here that may lead somewhere new, or the first of the shortest way to such.
        """
        if not names:
            return ()
        first = self._routes()
        told = {place: self._tells(place, names) for place in first}
        most = max(told.values(), default=0)
        if most > self._tells(self.here, names):
            return (next(first[place] for place in first if told[place] == most),)
        places = [place for place in first if self._new(place)]
        return self._new(self.here) or [first[place] for place in places[:1]]

    def _tells(self, place: str, names: Collection[str]) -> int:
        return len({name for text in self._told[place] for name in names_in(text, names)})

    def _new(self, place: str) -> set[str]:
        return self._open[place].difference(self._ways[place])

    def _routes(self) -> dict[str, str]:
        """Return the first commands on the ways to other places, the nearest first."""
        first: dict[str, str] = {}
        queue = deque([self.here])
        while queue:
            place = queue.popleft()
            for command, there in self._ways[place].items():
                if there not in first and there != self.here:
                    first[there] = first.get(place, command)
                    queue.append(there)
        return first
