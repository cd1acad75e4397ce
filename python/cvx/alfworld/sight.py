"""What the agent keeps in mind: the game as it is seen, and the plan it is carrying out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cvx.alfworld.language import (
    Binding,
    Lexicon,
    arguments,
    shape,
    signature,
    variables_of,
    words,
)
from cvx.types import Hit, Vector

if TYPE_CHECKING:
    from cvx.alfworld.engine import Observation
    from cvx.episodes import OpenEpisode

PLAN, SUBGOAL, MOMENT, FIND = "goal", "subgoal", "explore", "found"
_INSTANCE = re.compile(r"([a-z]+) \d+")


class Game(Protocol):
    """Anything that is played by commands."""

    def reset(self) -> Observation:
        """Start an episode."""
        ...

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; return what is seen, the reward and whether it is over."""
        ...


class Result(NamedTuple):
    """How one game went."""

    won: bool
    steps: int
    attempts: int
    decisions: int
    seconds: float


def plan_of(hit: Hit) -> tuple[str, ...]:
    """Return the subgoals that follow the start of an episode."""
    return tuple(s.action for s in hit.successors if s.action and variables_of(s.action))


def use_key(hit: Hit, task_type: str | None) -> Hashable:
    """Return what the success of advice is counted for: a plan for a goal, or a kind of command."""
    if hit.action is None:
        return ("plan", task_type, signature(plan_of(hit)))
    return ("moment", hit.action)


@dataclass(slots=True)
class Sight:
    """What the agent keeps in mind during one game.

    Attributes
    ----------
    seen : Observation
        The latest.
    before : frozenset of str
        The commands that were admissible one step earlier.
    heard : set of str
        The words that admissible commands named so far.
    done : list of str
        The commands given.
    tried : Counter
        How often each was.
    met : Counter
        How many different commands of a shape named a word.
    ways : dict of str to list of str
        The last commands before an instance of a goal's noun was seen.
    rejected : dict of str to frozenset of str
        Plans that were in vain, with their verbs where the plan itself was wrong.
    """

    seen: Observation
    before: frozenset[str] = frozenset()
    heard: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: dict[str, list[str]] = field(default_factory=dict)
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def commands(self) -> tuple[str, ...]:
        """The admissible commands."""
        return self.seen.admissible_commands

    def do(self, command: str) -> None:
        """Note a command that is about to be given."""
        if not self.tried[command]:
            self.met.update((shape(command), a.word) for a in arguments(command))
        self.tried[command] += 1
        self.before = frozenset(self.commands)
        self.done.append(command)

    def listen(self, lexicon: Lexicon) -> tuple[str, ...]:
        """Take in what is seen and what can be done; return the nouns of the goal."""
        self.heard.update(a.word for c in self.commands for a in arguments(c))
        slots = lexicon.slots(self.seen.goal, self.heard)
        if self.done:
            for found in _INSTANCE.finditer(self.seen.text.lower()):
                if found[1] in slots:
                    self.ways[found[0]] = self.done[-2:]
        return slots

    def moment(self, subgoal: str | None) -> str:
        """Return what is possible now, what is newly so, and what was done last, without names."""
        can = {shape(c) for c in self.commands}
        new = {shape(c) for c in self.commands if c not in self.before}
        last = shape(self.done[-1]) if self.done else "nothing"
        named = [f"last {last}", *(f"new {s}" for s in sorted(new))]
        named += [f"can {s}" for s in sorted(can)]
        if subgoal:
            named.append(f"need {words(subgoal)[0]}")
        return " ".join(re.sub(r"\W", "_", name.replace("#", "x")) for name in named)


@dataclass(slots=True)
class Attempt:
    """One plan, and how far it is carried out.

    Attributes
    ----------
    run : OpenEpisode
        Its episode.
    binding : Binding
        What the plan's variables stand for.
    plan : tuple of str
        Subgoals; empty without a plan.
    place : int
        How many of them are done.
    doubts : int
        Signs that the next one cannot be reached.
    explored : bool
        Whether the last command was an explored one.
    steps : list of (text, subgoal, vector)
        The subgoals as they were recorded.
    """

    run: OpenEpisode
    binding: Binding
    plan: tuple[str, ...]
    place: int = 0
    doubts: int = 0
    explored: bool = False
    steps: list[tuple[str, str, Vector]] = field(default_factory=list)

    @property
    def subgoal(self) -> str | None:
        """The next step of the plan, None without a plan or after its end."""
        return self.plan[self.place] if self.place < len(self.plan) else None

    def next_command(self, sight: Sight, rng: Random) -> str | None:
        """Return the command that does the next subgoal, most like it was shown, if there is one.

        A subgoal that may have been a means is passed over if what comes after it can be done.
        Among equals it is the command given least often; ``rng`` decides the rest.
        """
        for place in range(self.place, len(self.plan)):
            subgoal = self.plan[place]
            ready = [c for c in sight.commands if self.binding.fits(c, subgoal)]
            if ready:
                self.place, shown = place, set(words(subgoal))
                return max(
                    ready,
                    key=lambda c: (len(shown & set(words(c))), -sight.tried[c], rng.random()),
                )
            if not self.binding.lexicon.may_be_means(shape(subgoal)):
                return None
        return None


def verbs(plan: Iterable[str]) -> frozenset[str]:
    """Return the first words of a plan's commands."""
    return frozenset(words(p)[0] for p in plan)
