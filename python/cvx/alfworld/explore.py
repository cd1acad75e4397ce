"""What a command is worth while the next step of a plan is not possible yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cvx.alfworld.language import (
    Lexicon,
    arguments,
    content,
    shape,
    unnumbered,
    variables_of,
    words,
)
from cvx.alfworld.sight import Attempt, Sight


def tally(scored: Iterable[tuple[str, float]], exponent: float) -> dict[str, float]:
    """Add up the scores of each action to a power; those below 0 count nothing."""
    votes: dict[str, float] = defaultdict(float)
    for action, score in scored:
        votes[action] += max(score, 0.0) ** exponent
    return dict(votes)


class Advice(NamedTuple):
    """What memory says about a moment.

    Attributes
    ----------
    votes : mapping of str to float
        What the neighbours did, by shape.
    expected : mapping of str to float
        The region model's chance of success, by shape; empty without a model.
    finds : mapping of str to float
        Commands that led to such things before, without numbers, as shares.
    """

    votes: Mapping[str, float]
    expected: Mapping[str, float]
    finds: Mapping[str, float]


@dataclass(slots=True)
class Wish:
    """What the next subgoal of an attempt needs."""

    things: set[str]
    unbound: set[str]
    shown: set[str]
    known: set[str]

    def __init__(self, attempt: Attempt) -> None:
        binding, need = attempt.binding, attempt.subgoal or ""
        bound = {name: thing for thing, name in binding.names.items()}
        names = variables_of(need)
        # A thing once chosen is wanted itself; before that, any other of its kind.
        self.unbound = {n for v in names if v not in bound and (n := binding.noun(v))}
        self.things = self.unbound | {bound[v] for v in names if v in bound}
        self.shown = set(content(need)) - set(words(need)[:1])
        self.known = set(binding.names)

    def about(self, command: str) -> bool:
        """Whether a command names a thing that is wanted."""
        return any(a.word in self.things or a.instance in self.things for a in arguments(command))

    def wants(self, instance: str) -> bool:
        """Whether an instance is a thing that is wanted."""
        fresh = instance.split()[0] in self.unbound and instance not in self.known
        return instance in self.things or fresh


def worth(command: str, sight: Sight, wish: Wish, advice: Advice, lexicon: Lexicon) -> float:
    """Return how promising a command is.

    The votes for its shape, times what the region model expects of it and how often the shape led
    on, times factors for commands about what is wanted, on the way to where it was seen, or such
    as found the like before; less for words met often and commands given before.
    """
    form, named = shape(command), {a.word for a in arguments(command)}
    value = advice.votes.get(form, 0.0) * advice.expected.get(form, 1.0)
    value += 1e-4 * (not lexicon.aimed(form))
    value *= lexicon.leads(form)
    value *= 1 + 3 * wish.about(command) + 2 * bool(named & wish.shown)
    seen_there = any(command in way for thing, way in sight.ways.items() if wish.wants(thing))
    if seen_there and command != sight.done[-1]:
        value *= 5
    value *= 1 + 4 * advice.finds.get(unnumbered(command), 0.0)
    met = max((sight.met[form, w] for w in named), default=0)
    return float(value / (1 + met) ** 0.5 / (1 + sight.tried[command]) ** 2)
