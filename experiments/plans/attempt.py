"""One plan while it is carried out, step by step."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random

from cvx.learn.episode_recorder import OpenEpisode
from cvx.types import Hit
from experiments.plans.binding import Binding, signature
from experiments.plans.searches import Search
from experiments.plans.words import arguments, kind, shape, variables_of, words


@dataclass(slots=True)
class Attempt:
    """One plan, and how far it is carried out.

    Attributes
    ----------
    run : OpenEpisode
        Its episode.
    binding : Binding
        What the plan's variables stand for.
    search : Search
        What is explored in its game.
    plan : tuple of str
        Subgoals; empty without a plan.
    place : int
        How many of them are done.
    doubts : float
        Signs that the next one cannot be reached.
    earned : float
        Rewards since it began.
    idle : bool
        Whether there is nothing to do.
    holds : bool
        Whether that is because what is to be reached is so already.
    explored : bool
        Whether the last command was an explored one.
    steps : list of (command, subgoal)
        What was recorded as a step of the plan.
    spent : list of str
        Subgoals that were not possible any more once they were done.
    redo : str, optional
        The command that does one of them anew, where exploring has undone it.
    commands : int
        How many were given for it, or for the stuck attempt that it goes on with.
    lasted : str
        What lasted of it and earlier attempts, as a plan, if it was rewarded.
    """

    run: OpenEpisode
    binding: Binding
    search: Search
    plan: tuple[str, ...]
    place: int = 0
    doubts: float = 0
    earned: float = 0.0
    idle: bool = False
    holds: bool = False
    explored: bool = False
    steps: list[tuple[str, str]] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)
    redo: str | None = None
    commands: int = 0
    lasted: str = ""

    @property
    def subgoal(self) -> str | None:
        """The next step of the plan, None without a plan or after its end."""
        return self.plan[self.place] if self.place < len(self.plan) else None

    @property
    def done(self) -> bool:
        """Whether there was a plan, and all of it was carried out."""
        return bool(self.plan) and self.subgoal is None

    def noted(self, commands: Iterable[str]) -> None:
        """Take in what is possible after a step of the plan: what it undid itself was its aim."""
        once = [*self.spent, self.plan[self.place - 1]]
        self.spent = [s for s in once if not any(self.binding.fits(c, s) for c in commands)]

    def again(self, commands: Iterable[str]) -> str | None:
        """Return the first of these commands that does the first subgoal that was spent, if any."""
        can = list(commands)
        return next((c for s in self.spent for c in can if self.binding.fits(c, s)), None)

    def next_command(
        self, commands: Iterable[str], tried: Mapping[str, int], rng: Random
    ) -> str | None:
        """Return the command that does the next subgoal, most like it was shown, if there is one.

        A subgoal that may have been a means is passed over if what comes after it can be done.
        Among equals it is the command given least often; ``rng`` decides the rest.
        """
        place, ready = self._ready(commands)
        if not ready:
            return None
        self.place, shown = place, set(words(self.plan[place]))
        return max(ready, key=lambda c: (len(shown & set(words(c))), -tried[c], rng.random()))

    def goes_on(self, commands: Iterable[str]) -> bool:
        """Whether one of these commands does the next subgoal."""
        return bool(self._ready(commands)[1])

    @property
    def open(self) -> list[str]:
        """The next step of the plan, and those after it up to the first that is no means."""
        means = self.binding.lexicon.may_be_means
        left = self.plan[self.place :]
        passed = sum(1 for _ in takewhile(lambda subgoal: means(shape(subgoal)), left))
        return list(left[: passed + 1])

    def _ready(self, commands: Iterable[str]) -> tuple[int, list[str]]:
        for place, subgoal in enumerate(self.open, self.place):
            ready = [c for c in commands if self.binding.fits(c, subgoal)]
            if ready:
                return place, ready
        return self.place, []


@dataclass(slots=True)
class Wish:
    """What the next subgoal of an attempt needs.

    Attributes
    ----------
    things : set of str
        Names and instances that are wanted.
    unbound : set of str
        Names of which any instance will do that the plan has not used.
    shown : set of str
        What else the subgoal names, as it was shown.
    known : set of str
        The instances that the plan has used.
    need : str
        The verb of the subgoal and the kinds of things that are wanted, chosen ones too.
    """

    things: set[str]
    unbound: set[str]
    shown: set[str]
    known: set[str]
    need: str

    @classmethod
    def of(cls, attempt: Attempt) -> Wish:
        """Return what an attempt needs next, past the steps that may have been means."""
        binding, need = attempt.binding, "".join(attempt.open[-1:])
        if not attempt.plan:
            return cls(set(binding.slots), set(), set(), set(), "")
        bound = {name: thing for thing, name in binding.names.items()}
        names = variables_of(need)
        # A thing once chosen is wanted itself; before that, any other of its kind.
        unbound = {n for v in names if v not in bound and (n := binding.noun(v))}
        things = unbound | {bound[v] for v in names if v in bound}
        shown, known = {a.word for a in arguments(need)}, set(binding.names)
        said = " ".join([*words(need)[:1], *sorted({kind(thing) for thing in things})])
        return cls(things, unbound, shown, known, said)

    @classmethod
    def nothing(cls) -> Wish:
        """Return that nothing is wanted."""
        return cls(set(), set(), set(), set(), "")

    def about(self, command: str) -> int:
        """Return how many things a command names that are wanted."""
        return sum(a.word in self.things or a.instance in self.things for a in arguments(command))

    def wants(self, instance: str) -> bool:
        """Whether an instance is a thing that is wanted."""
        fresh = kind(instance) in self.unbound and instance not in self.known
        return instance in self.things or fresh


def plan_of(hit: Hit) -> tuple[str, ...]:
    """Return the subgoals that follow the start of an episode."""
    return tuple(s.action for s in hit.successors if s.action and variables_of(s.action))


def use_key(hit: Hit, task_type: str | None) -> Hashable:
    """Return what the success of advice is counted for: a plan for a goal."""
    return ("plan", task_type, signature(plan_of(hit)))
