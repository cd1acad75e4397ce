"""Reading goals and commands: function words, numbered instances and shapes, no name of anything.

What else the agent knows of words it has from the episodes that it remembers, in a `Lexicon`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

FUNCTION_WORDS = frozenset(
    re.split(r"\W+", "a an the some it its them and or in on to of from with at under into is you")
)
_WORD = re.compile(r"#|[a-z][a-z'-]*|\d+|\{\d(?:\.\d+)?\}")

_PLAUSIBLE = 0.25  # other readings of a plan must be as likely as this


class Argument(NamedTuple):
    """A word of a command that is neither its first nor a function word."""

    position: tuple[str, int]
    word: str
    instance: str


def words(text: str) -> list[str]:
    """Return words, numbers and variables, in lower case."""
    return _WORD.findall(text.lower())


def content(text: str) -> list[str]:
    """Return the words that are no function words and no numbers, each once."""
    kept = (w for w in words(text) if w not in FUNCTION_WORDS and not w.isdigit())
    return list(dict.fromkeys(kept))


def shape(command: str) -> str:
    """Return a command's first word and its function words, with # for everything else.

    Examples
    --------
    >>> shape("hang hat 1 on peg 12")
    'hang # on #'
    """
    out: list[str] = []
    for place, word in enumerate(words(command)):
        part = word if place == 0 or word in FUNCTION_WORDS else "#"
        if part != "#" or out[-1] != "#":
            out.append(part)
    return " ".join(out)


def unnumbered(command: str) -> str:
    """Return a command without the numbers of instances."""
    return " ".join(w for w in words(command) if not w.isdigit())


def arguments(command: str) -> list[Argument]:
    """Return the arguments of a command; a word with a number after it names an instance."""
    form, parts = shape(command), words(command)
    found: list[Argument] = []
    for place, word in enumerate(parts):
        if place and word not in FUNCTION_WORDS and not word.isdigit():
            number = parts[place + 1] if place + 1 < len(parts) else ""
            instance = f"{word} {number}" if number.isdigit() else word
            found.append(Argument((form, len(found)), word, instance))
    return found


def template(goal: str, slots: Sequence[str]) -> str:
    """Return a goal with numbered gaps in the place of its nouns.

    Examples
    --------
    >>> template("hang a hat on the peg", ("hat", "peg"))
    'hang a {0} on the {1}'
    """
    return " ".join(f"{{{slots.index(w)}}}" if w in slots else w for w in words(goal))


def filled(gaps: str, goal: str) -> dict[int, str]:
    """Return what stands in the gaps of a template, by number.

    Examples
    --------
    >>> filled("hang a {0} on the {1}", "hang a hat on the peg")
    {0: 'hat', 1: 'peg'}
    """
    pairs = zip(words(gaps), words(goal), strict=False)
    return {int(gap[1]): word for gap, word in pairs if gap.startswith("{")}


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
        self._tried: Counter[str] = Counter()
        self._led: Counter[str] = Counter()
        self.goals = Spread()
        self.moments = Spread()

    def learn(self, goal: str, slots: Sequence[str], commands: Iterable[str]) -> None:
        """Take in the goal of an episode, its nouns, and the commands that won it."""
        self.templates.update(w for w in content(goal) if w not in slots)
        self._sizes[len(slots)] += 1
        for command in commands:
            self.verbs.add(words(command)[0])
            parts = arguments(command)
            self._uses[shape(command)] += 1
            self._aimed[shape(command)] += any(a.word in slots for a in parts)
            for part in parts:
                self.nouns.add(part.word)
                self._uses[part.position] += 1
                self._aimed[part.position] += part.word in slots

    def aimed(self, form: object) -> bool:
        """Whether commands of a shape, or arguments at a position of it, nearly always name the
        goal's things: (aimed + 1/2) / (uses + 1) above 0.7, so that few uses suffice.
        """
        return (self._aimed[form] + 0.5) / (self._uses[form] + 1) > 0.7

    def readings(
        self, plan: Sequence[str], nouns: Mapping[int, str]
    ) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield a plan, then the other ways of reading it, each with its odds.

        A thing that was both the goal's and where something is always done may have been shown
        as the latter: any variable but the first of a command may stand for its noun alone.
        """
        if not plan:
            return
        yield tuple(plan), 1.0
        for place, subgoal in enumerate(plan):
            for part in arguments(subgoal)[1:]:
                noun = nouns.get(int(part.word[1])) if part.word.startswith("{") else None
                if noun and self._doubt(part.position) > _PLAUSIBLE:
                    other = subgoal.replace(part.word, noun)
                    yield (*plan[:place], other, *plan[place + 1 :]), self._doubt(part.position)

    def may_be_means(self, form: str) -> bool:
        """Whether commands of a shape at times do not name the goal's things.

        Such a step of a plan may have been a means, not an end: the plan may do without it.
        """
        return self._aimed[form] < self._uses[form]

    def _doubt(self, form: object) -> float:
        """Return the chance that a shape or position does not name the goal's thing."""
        return 1 - (self._aimed[form] + 1) / (self._uses[form] + 2)

    def slots(self, goal: str, heard: Iterable[str]) -> tuple[str, ...]:
        """Return the nouns of a goal, in its order.

        They are the words that commands are heard to name, else those that no remembered goal
        used otherwise; no more of them than goals mostly have.
        """
        heard = set(heard)
        found = [w for w in content(goal) if w in heard or w not in self.templates]
        most = self._sizes.most_common(1)[0][0] if self._sizes else len(found)
        while len(found) > most:
            unheard = [w for w in found if w not in heard]
            found.remove(unheard[0] if unheard else found[0])
        return tuple(found)

    def explored(self, form: str, led: bool) -> None:
        """Count an explored command, and whether the next step of the plan was possible then."""
        self._tried[form] += 1
        self._led[form] += led

    def leads(self, form: str) -> float:
        """Return how often a shape of command led on at once, shrunk to the mean of all shapes."""
        mean = (sum(self._led.values()) + 1) / (sum(self._tried.values()) + 2)
        return (self._led[form] + mean) / (self._tried[form] + 1)

    def weight(self, word: str) -> float:
        """Return how much a goal's word tells: rare ones more, first words of commands most."""
        return self.goals.rarity(word) * (3.0 if word in self.verbs else 1.0)


class Binding:
    """Which instances the variables of a plan stand for in one game.

    A variable ``{i.n}`` is the n-th different instance of the goal's i-th noun: a demonstration
    thereby tells whether it wanted a fresh instance or the same again.
    """

    def __init__(self, slots: Sequence[str], lexicon: Lexicon) -> None:
        self.slots = list(slots)
        self.lexicon = lexicon
        self.names: dict[str, str] = {}

    def _wanted(self, command: str) -> list[Argument]:
        return [
            a for a in arguments(command) if a.word in self.slots and self.lexicon.aimed(a.position)
        ]

    def abstract(self, command: str) -> str:
        """Return a command with variables in the place of the goal's things, and bind them."""
        named = {}
        for part in self._wanted(command):
            if part.instance not in self.names:
                slot = self.slots.index(part.word)
                number = sum(name.startswith(f"{{{slot}.") for name in self.names.values())
                self.names[part.instance] = f"{{{slot}.{number}}}"
            named[part.word] = self.names[part.instance]
        return " ".join(named.get(w, w) for w in words(unnumbered(command)))

    def fits(self, command: str, subgoal: str) -> bool:
        """Whether a command does what an abstract one says, with the bindings so far."""
        wanted, variables = self._wanted(command), variables_of(subgoal)
        if words(command)[0] != words(subgoal)[0] or len(wanted) != len(variables):
            return False
        bound = {name: instance for instance, name in self.names.items()}
        return all(
            self.noun(name) == part.word
            and bound.get(name, part.instance) == part.instance
            and self.names.get(part.instance, name) == name
            for name, part in zip(variables, wanted, strict=True)
        )

    def noun(self, variable: str) -> str | None:
        """Return the goal's noun that a variable is an instance of."""
        place = int(variable[1])
        return self.slots[place] if place < len(self.slots) else None


def variables_of(subgoal: str) -> list[str]:
    """Return the variables of an abstract command, in order."""
    return [w for w in words(subgoal) if w.startswith("{")]


def signature(plan: Sequence[str]) -> str:
    """Return a plan without the kinds of places it happened to go through."""
    return ", ".join(
        " ".join(w for i, w in enumerate(words(p)) if i == 0 or w.startswith("{")) for p in plan
    )
