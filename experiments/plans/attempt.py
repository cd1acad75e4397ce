"""Attempts: plans while they are carried out, and the clauses of a goal that they are made at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import NamedTuple

from cvx.learn.episode_recorder import OpenEpisode
from cvx.types import Hit
from experiments.plans.binding import Binding, PastCommand, signature
from experiments.plans.choices import Search
from experiments.plans.clauses import clauses
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
    """What the next subgoal of an attempt needs; by default nothing is wanted.

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

    things: set[str] = field(default_factory=set)
    unbound: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    need: str = ""

    @classmethod
    def of(cls, attempt: Attempt) -> Wish:
        """Return what an attempt needs next, past the steps that may have been means."""
        binding, need = attempt.binding, "".join(attempt.open[-1:])
        if not attempt.plan:
            return cls(set(binding.slots))
        bound = {name: thing for thing, name in binding.names.items()}
        names = variables_of(need)
        # A thing once chosen is wanted itself; before that, any other of its kind.
        unbound = {n for v in names if v not in bound and (n := binding.noun(v))}
        things = unbound | {bound[v] for v in names if v in bound}
        shown, known = {a.word for a in arguments(need)}, set(binding.names)
        said = " ".join([*words(need)[:1], *sorted({kind(thing) for thing in things})])
        return cls(things, unbound, shown, known, said)

    def about(self, command: str) -> int:
        """Return how many things a command names that are wanted."""
        return sum(a.word in self.things or a.instance in self.things for a in arguments(command))

    def wants(self, instance: str) -> bool:
        """Whether an instance is a thing that is wanted."""
        fresh = kind(instance) in self.unbound and instance not in self.known
        return instance in self.things or fresh


class Consulted(NamedTuple):
    """What memory says about exploring in a moment.

    Attributes
    ----------
    text : str
        The moment.
    kinds : mapping of str to float
        How likely commands of each shape lead to what is missing in such a moment; empty if
        nobody was asked.
    chances : mapping of str to float
        How likely each command does, by what was explored before; empty likewise.
    wish : Wish
        What was missing.
    """

    text: str
    kinds: Mapping[str, float]
    chances: Mapping[str, float]
    wish: Wish


def plan_of(hit: Hit) -> tuple[str, ...]:
    """Return the subgoals that follow the start of an episode."""
    return tuple(s.action for s in hit.successors if s.action and variables_of(s.action))


def use_key(hit: Hit, task_type: str | None) -> Hashable:
    """Return what the success of advice is counted for: a plan for a goal."""
    return ("plan", task_type, signature(plan_of(hit)))


@dataclass(slots=True)
class Item:
    """One clause of a goal.

    Attributes
    ----------
    clause : str
    over : bool
        Whether its plan was carried out.
    earned : bool
        Whether it was rewarded for that.
    rejected : dict of str to frozenset of str
        Plans that were in vain, by signature, with their verbs where the plan itself was wrong,
        or the step that could not be done.
    stuck : Attempt, optional
        The latest attempt, if it was broken off.
    done : Attempt, optional
        The latest attempt, if it was carried out.
    deeds : list of PastCommand
        What was done for it since it was begun, or last reached.
    """

    clause: str
    over: bool = False
    earned: bool = False
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)
    stuck: Attempt | None = None
    done: Attempt | None = None
    deeds: list[PastCommand] = field(default_factory=list)


class OpenClauses:
    """The clauses of a goal, in the order in which they are to be gone through.

    Parameters
    ----------
    goal : str
        As it was stated; one clause if it has a single sentence.
    """

    def __init__(self, goal: str) -> None:
        self.items = [Item(clause) for clause in clauses(goal)] or [Item(goal)]
        self._place = 0

    @property
    def current(self) -> Item:
        """The clause to go on with."""
        return self.items[self._place]

    @property
    def last(self) -> bool:
        """Whether all the other clauses are over."""
        return all(item.over for item in self.items if item is not self.current)

    def read(self, text: str) -> None:
        """Take in instructions: what they say comes after the clause that led to them."""
        known = {item.clause for item in self.items}
        told = clauses(text)
        if not known.issuperset(told):
            self.items[self._place + 1 : self._place + 1] = [Item(clause) for clause in told]

    def undone(self, commands: Iterable[str]) -> bool:
        """Open clauses again of which a step could be done anew, that could not once it was done.

        Parameters
        ----------
        commands : iterable of str
            What has become possible.

        Returns
        -------
        bool
            Whether there is one.
        """
        fresh, found = list(commands), False
        for item in self.items:
            if item.over and item.done is not None and item.done.again(fresh) is not None:
                item.over = item.earned = False
                found = True
        return found

    def turn(self, *, over: bool) -> None:
        """Go on with the first clause that is not over, or the next one if this one is not.

        If there is none, begin again; what was rewarded is not done again, unless all was.

        Parameters
        ----------
        over : bool
            Whether the current one is; else it will be come back to.
        """
        self.current.over = over
        if all(item.over for item in self.items):
            earned = all(item.earned for item in self.items)
            for item in self.items:
                item.over = item.earned and not earned
        n, first = len(self.items), 0 if over else self._place + 1
        places = ((first + i) % n for i in range(n))
        self._place = next(place for place in places if not self.items[place].over)
