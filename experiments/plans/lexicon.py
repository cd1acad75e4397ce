"""Learns the words of goals and the shapes of commands from remembered episodes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from cvx.embed import Embedder
from cvx.scoring import wilson
from cvx.types import Vector
from experiments.plans.words import (
    FUNCTION_WORDS,
    arguments,
    rest,
    shape,
    spans,
    template,
    unnumbered,
    words,
)

_NEEDLESS = 0.5  # how likely a step of a plan was needless: tried where the whole failed
_ALONE = 0.1  # the same where it leaves a single one
# Above a half: with that, looking into things on the way to putting something into such a thing
# stayed in the plan, each time, and 20 of 24 such tuning games were lost. At .7 it was
# enough that a tool was picked up along with every two things: to pick up things was no step then.
_AIMED = 0.65

_FIXED = 0.6  # six in a row reach it (Wilson: 6 / 9.84 = .61), five do not; set by hand
_VERB = 3.0  # how many times the weight of another word a command's first word has; set by hand


class Spread:
    """In how many different sets of words a word occurs."""

    def __init__(self) -> None:
        self._sets: set[frozenset[str]] = set()
        self._counts: Counter[str] = Counter()

    def note(self, found: Iterable[str]) -> None:
        """Count the words of a set, unless the same set was counted before."""
        kept = frozenset(found)
        if kept not in self._sets:
            self._sets.add(kept)
            self._counts.update(kept)

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word, at least 0; an unknown one is rare."""
        known = self._counts[word]
        return max(0.0, math.log((len(self._sets) + 1) / (known + 0.5 if known else 1)))


class Lexicon:
    """What remembered episodes teach about words and shapes of commands."""

    def __init__(self) -> None:
        self.verbs: set[str] = set()
        self.nouns: set[str] = set()
        self.templates: Counter[str] = Counter()
        self._sizes: Counter[int] = Counter()
        self._uses: Counter[object] = Counter()
        self._aimed: Counter[object] = Counter()
        self._opened: Counter[str] = Counter()
        self.moves: set[str] = set()
        self._told: Counter[str] = Counter()
        self._given: Counter[str] = Counter()
        self._shown: dict[tuple[str, object], Counter[str]] = defaultdict(Counter)
        self._compared: Counter[object] = Counter()
        self._agreed: Counter[object] = Counter()
        self.goals = Spread()
        self.offered: set[tuple[str, str, str]] = set()
        self.met: set[tuple[tuple[str, int], str]] = set()

    def said(self, goal: str, slots: Sequence[str]) -> None:
        """Take in a goal, or a clause of one, and the names of its things."""
        self.templates.update(rest(goal, slots))
        if slots:
            self._sizes[len(slots)] += 1

    def terms(self, goal: str, slots: Sequence[str]) -> list[str]:
        """Return the words of a goal that name no thing, or its bare form if it has none."""
        return [w for w in rest(goal, slots) if w not in self.nouns] or [template(goal, slots)]

    def told(self, commands: Sequence[str], places: Iterable[int]) -> None:
        """Count commands, and at which places of them what was told said what to do next."""
        self._told.update(shape(commands[place]) for place in places)
        self._given.update(shape(command) for command in commands)

    def instructs(self, command: str) -> bool:
        """Whether what is told after commands of a shape mostly says what to do next."""
        form = shape(command)
        return self._told[form] / (self._given[form] + 1) >= 0.5

    def did(
        self,
        commands: Sequence[str],
        slots: Collection[str],
        undone: Collection[int] = (),
        opened: Collection[int] = (),
    ) -> None:
        """Take in the commands that reached a goal, and the names of the goal's things.

        What was done to eight things on the way to one goal was shown once, and what was undone at
        once was not shown as a step.

        Parameters
        ----------
        commands : sequence of str
        slots : collection of str
        undone : collection of int, optional
            The places of commands that were undone at once, and of those that did it.
        opened : collection of int, optional
            The places of commands that made the next one possible, or such a one possible again.
        """
        for command in commands:
            self.verbs.add(words(command)[0])
            self.nouns.update(part.word for part in arguments(command))
        lasted = (c for place, c in enumerate(commands) if place not in undone)
        opening = {unnumbered(commands[place]) for place in opened}
        for command in dict.fromkeys(map(unnumbered, lasted)):
            self._opened[shape(command)] += command in opening
            parts = arguments(command)
            self._uses[shape(command)] += 1
            self._aimed[shape(command)] += any(a.word in slots for a in parts)
            for part in parts:
                self._uses[part.position] += 1
                self._aimed[part.position] += part.word in slots

    def aimed(self, form: object, *, unused: bool = False) -> bool:
        """Whether commands of a shape, or arguments at a position of it, nearly always name the
        goal's things: (aimed + 1/2) / (uses + 1) above 0.65, so that few uses suffice; for a form
        without a use ``unused`` is returned.
        """
        if not self._uses[form]:
            return unused
        return (self._aimed[form] + 0.5) / (self._uses[form] + 1) > _AIMED

    def readings(self, plan: Sequence[str]) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield a plan, then what it is without one of its steps but the last, which may have been
        needless; each with its odds.
        """
        if plan:
            yield tuple(plan), 1.0
        for place in range(len(plan) - 1):
            yield (*plan[:place], *plan[place + 1 :]), _NEEDLESS if len(plan) > 2 else _ALONE

    def may_be_means(self, form: str) -> bool:
        """Whether commands of a shape mostly made the next one possible, or undid such a one.

        Such a step of a plan may have been a means, not an end: the plan may do without it.
        """
        return 0 < self._uses[form] <= 2 * self._opened[form]

    def unfit(self, slots: Sequence[str], known: Iterable[str]) -> set[tuple[tuple[str, int], int]]:
        """Return at which positions of commands which of a goal's names never stood.

        Counted are names that something else is done with for goals, and positions after the first:
        what was only seen from afar may stand there yet.

        Parameters
        ----------
        slots : sequence of str
            The names of the goal's things.
        known : iterable of str
            The commands that were possible in this game; ``met`` has those of games before.
        """
        met = self.met | positions(known)
        ends = {w for (form, at), w in met if not at and self.aimed(form)}
        return {
            (position, slot)
            for position in {position for position, _ in met if position[1]}
            for slot, noun in enumerate(slots)
            if noun in ends and (position, noun) not in met
        }

    def slots(self, goal: str, heard: Iterable[str]) -> tuple[str, ...]:
        """Return the names of a goal's things, in its order.

        They are what commands are heard to name, else words that no remembered goal used
        otherwise, taken together where memory knows names of several words; no more of them than
        goals mostly have.
        """
        heard = set(heard)
        longest = max((len(words(name)) for name in self.nouns | heard), default=1)
        found: dict[str, None] = {}
        unknown: list[str] = []
        for word, named in [*spans(goal, heard | self.nouns), ("", True)]:
            new = not named and word not in FUNCTION_WORDS and not word.isdigit()
            if unknown and not (new and word not in self.templates and len(unknown) < longest):
                found[" ".join(unknown)] = None
                unknown = []
            if new and word not in self.templates:
                unknown.append(word)
            elif named and word and (word in heard or word not in self.templates):
                found[word] = None
        slots = list(found)
        most = self._sizes.most_common(1)[0][0] if self._sizes else len(slots)
        while len(slots) > most:
            unheard = [w for w in slots if w not in heard]
            slots.remove(unheard[0] if unheard else slots[0])
        return tuple(slots)

    def reached(self, form: str, plan: Iterable[str]) -> None:
        """Take in the abstract commands that reached a goal of some form."""
        once = {a.position: a.word for step in plan for a in arguments(step)}
        for position, word in once.items():
            known = self._shown[form, position]
            if known:
                self._compared[position] += 1
                self._agreed[position] += word == known.most_common(1)[0][0]
            known[word] += 1

    def fixed(self, position: object) -> bool:
        """Whether plans for goals of one form agree on what is named at a position of commands.

        Every plan but the first of its form is compared with what most before it named; that
        more than 6 of 10 agree must be sure (Wilson's 95 % interval), as six in a row make it. It
        takes so many because what is fixed is tried nowhere else: nothing would show the mistake.
        """
        compared = self._compared[position]
        return compared > 0 and wilson(self._agreed[position] / compared, compared).low > _FIXED

    def weight(self, word: str) -> float:
        """Return how much a goal's word tells: rare ones more, first words of commands most."""
        return self.goals.rarity(word) * (_VERB if word in self.verbs else 1.0)


class Space:
    """Vectors of what is remembered and of what is asked; what is rare weighs more in the latter.

    All have shape (dim,) and dtype float32.

    Parameters
    ----------
    embedder : Embedder
        Of words.
    lexicon : Lexicon
        Knows which words of goals are rare.
    """

    def __init__(self, embedder: Embedder, lexicon: Lexicon) -> None:
        self._embedder, self._lexicon = embedder, lexicon

    def start(self, goal: str, slots: Sequence[str], plan: Iterable[str]) -> Vector:
        """Return where the start of an attempt lies: by its goal's words and its plan's verbs."""
        terms = [*self._lexicon.terms(goal, slots), *(words(p)[0] for p in plan)]
        return self._sum(dict.fromkeys(terms, 1.0))

    def goal(self, goal: str, slots: Sequence[str]) -> Vector:
        """Return where to ask for plans."""
        return self._sum({w: self._lexicon.weight(w) for w in self._lexicon.terms(goal, slots)})

    def _sum(self, weights: Mapping[str, float]) -> Vector:
        kept = {w: x for w, x in weights.items() if x} or {"": 1.0}
        rows = self._embedder.embed(list(kept))
        return np.asarray(np.array(list(kept.values()), dtype=np.float32) @ rows)


def positions(commands: Iterable[str]) -> set[tuple[tuple[str, int], str]]:
    """Return at which positions of commands which names stand."""
    return {(a.position, a.word) for command in commands for a in arguments(command)}
