"""What the agent keeps track of in the game it plays: observations, commands, places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.plans import Observation, PlaceMap, arguments, mentions, moment, shape


@dataclass(slots=True)
class GameState:
    """What was seen and done in one game.

    Attributes
    ----------
    seen : Observation
        The latest.
    atlas : PlaceMap
        The places.
    before : tuple of str
        The commands that were admissible one step earlier.
    heard : set of str
        The names that admissible commands named so far.
    texts : list of str
        What was told.
    done : list of str
        The commands given.
    tried : Counter
        How often each was.
    looked, since : Counter
        How often each was explored, and if it moves, where: by what was missing; since the last
        step of a plan, whatever was missing.
    met : Counter
        How many different commands of a shape that named something were explored for a need.
    known, fresh : set of str
        The commands that were admissible at any time; those that are for the first time.
    barren : Counter
        How often commands of a shape, explored for a need, led to nothing that was not known.
    need : str
        What was missing when something was explored last.
    undid : set of str
        The shapes of commands that undid what was done for the goal.
    ways : dict of str to list of str
        The last commands before an instance of one of the goal's things was seen.
    """

    seen: Observation
    atlas: PlaceMap
    before: tuple[str, ...] = ()
    heard: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    looked: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    since: Counter[tuple[str, str]] = field(default_factory=Counter)
    met: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    barren: Counter[tuple[str, str]] = field(default_factory=Counter)
    need: str = ""
    undid: set[str] = field(default_factory=set)
    ways: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.see(self.seen)

    @property
    def commands(self) -> tuple[str, ...]:
        """The admissible commands."""
        return self.seen.admissible_commands

    @property
    def last(self) -> str | None:
        """The command given last."""
        return self.done[-1] if self.done else None

    def do(self, command: str) -> None:
        """Note a command that is about to be given."""
        self.tried[command] += 1
        self.before = self.commands
        self.done.append(command)

    def see(self, seen: Observation) -> None:
        """Take in what is seen."""
        self.fresh = set(seen.admissible_commands) - self.known
        if self.last is not None:
            self.barren[self.need, shape(self.last)] += not self.fresh
        self.known.update(seen.admissible_commands)
        self.heard.update(a.word for c in seen.admissible_commands for a in arguments(c))
        self.seen = seen
        self.texts.append(seen.text)
        self.atlas.note(self.last, seen.text, seen.admissible_commands)

    def look(self, need: str, command: str) -> None:
        """Note a command that is about to be explored, for something that is missing."""
        if not self.repeated(need, command):
            self.met.update((need, shape(command), a.word) for a in arguments(command))
        self.looked[need, *self._here(command)] += 1
        self.since[self._here(command)] += 1
        self.need = need

    def repeated(self, need: str, command: str) -> int:
        """Return how often a command was explored for something, or since a step of a plan."""
        return max(self.looked[need, *self._here(command)], self.since[self._here(command)])

    def _here(self, command: str) -> tuple[str, str]:
        return self.atlas.here if shape(command) in self.atlas.moves else "", command

    def notice(self, names: Iterable[str]) -> None:
        """Remember how what is seen with one of these names came into sight."""
        if self.done:
            self.ways.update(dict.fromkeys(mentions(self.seen.text, names), self.done[-2:]))

    def moment(self) -> str:
        """Return what was done last, and what is newly possible, without names."""
        return moment(self.commands, self.before, self.last)
