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
    met : Counter
        How many different commands of a shape named something.
    known : set of str
        The commands that were admissible at any time.
    barren : Counter
        How often commands of a shape led to nothing that was not known.
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
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    barren: Counter[str] = field(default_factory=Counter)
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
        if not self.tried[command]:
            self.met.update((shape(command), a.word) for a in arguments(command))
        self.tried[command] += 1
        self.before = self.commands
        self.done.append(command)

    def see(self, seen: Observation) -> None:
        """Take in what is seen."""
        if self.last is not None:
            self.barren[shape(self.last)] += self.known.issuperset(seen.admissible_commands)
        self.known.update(seen.admissible_commands)
        self.heard.update(a.word for c in seen.admissible_commands for a in arguments(c))
        self.seen = seen
        self.texts.append(seen.text)
        self.atlas.note(self.last, seen.text, seen.admissible_commands)

    def repeated(self, command: str) -> int:
        """Return how often a command was given, or given here if it moves."""
        if shape(command) in self.atlas.moves:
            return self.atlas.given[self.atlas.here, command]
        return self.tried[command]

    def notice(self, names: Iterable[str]) -> None:
        """Remember how what is seen with one of these names came into sight."""
        if self.done:
            self.ways.update(dict.fromkeys(mentions(self.seen.text, names), self.done[-2:]))

    def moment(self, subgoal: str | None) -> str:
        """Return what is possible, what is newly so, and what was done last, without names."""
        return moment(self.commands, self.before, self.last, subgoal)
