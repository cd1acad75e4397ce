"""What was seen and done in the game that is played, and how promising commands are by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.plans import (
    Consulted,
    Lexicon,
    Observation,
    PlaceMap,
    arguments,
    kind,
    mentions,
    moment,
    shape,
)


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


class Explorer:
    """Weighs commands on the way to what is wanted.

    Parameters
    ----------
    sight : GameState
    told : Consulted
        What memory says about this moment.
    lexicon : Lexicon
    """

    def __init__(self, sight: GameState, told: Consulted, lexicon: Lexicon) -> None:
        self.sight, self.told, self.lexicon = sight, told, lexicon
        here, wish = {a.word for c in sight.commands for a in arguments(c)}, told.wish
        self.ways = sight.atlas.toward(({kind(t) for t in wish.things} | wish.shown) - here)

    def worth(self, command: str) -> float:
        """Return how promising a command is.

        The chance that its shape leads to what is missing in such a moment, times the chance that
        such a command does, times factors for commands about what is wanted, or on the way to where
        it was seen; less for what is done for other ends, for what undid something, for words met
        often and commands explored before. The factors were set by hand.
        """
        sight, told, wish, lexicon = self.sight, self.told, self.told.wish, self.lexicon
        form, named = shape(command), {a.word for a in arguments(command)}
        about, shown = wish.about(command), bool(named & wish.shown)
        value = told.kinds.get(form, 1.0)
        # What only this place offers would cost the way back later.
        value *= (1 + 3 * about + 2 * shown) * (1 + (command in sight.fresh))
        # What nobody was shown to do with a thing that was chosen may undo what was done to it.
        chosen = any(a.instance in wish.known for a in arguments(command))
        if lexicon.aimed(form, unused=chosen) and not lexicon.may_be_means(form):
            value *= 0.1
        seen_there = any(command in way for thing, way in sight.ways.items() if wish.wants(thing))
        if (seen_there and command != sight.last) or command in self.ways:
            value *= 5
        value *= told.chances.get(command, 1.0)
        value /= 1 + sight.barren[wish.need, form]
        if form in sight.undid:
            value *= 0.01
        met = max((sight.met[wish.need, form, w] for w in named), default=0)
        return float(value / (1 + met) ** 0.5 / (1 + sight.repeated(wish.need, command)) ** 2)
