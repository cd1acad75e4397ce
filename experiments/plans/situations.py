"""Situations described without names, and which commands were given in similar ones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from cvx.types import Decision
from experiments.plans.attempt import Wish
from experiments.plans.words import shape, words


def moment(
    commands: Iterable[str], before: Collection[str], last: str | None, subgoal: str | None
) -> str:
    """Return what is possible, what is newly so, what was done last and what is to be done.

    Parameters
    ----------
    commands : iterable of str
        The admissible ones.
    before : collection of str
        Those that were admissible one step earlier.
    last : str or None
        The command given then.
    subgoal : str or None
        The next step of the plan that is followed.

    Examples
    --------
    >>> moment(["walk to peg 1", "grab hat 1 from nook 2"], ["walk to peg 1"], None, "hang {0.0}")
    'last_nothing new_grab_x_from_x can_grab_x_from_x can_walk_to_x need_hang'
    """
    commands, known = list(commands), frozenset(before)
    can, new = {shape(c) for c in commands}, {shape(c) for c in commands if c not in known}
    named = [f"last {shape(last) if last else 'nothing'}", *(f"new {s}" for s in sorted(new))]
    named += [f"can {s}" for s in sorted(can)]
    if subgoal:
        named.append(f"need {words(subgoal)[0]}")
    return " ".join(re.sub(r"\W", "_", name.replace("#", "x")) for name in named)


class Advice(NamedTuple):
    """What memory says about a moment, and about what is missing in it.

    Attributes
    ----------
    votes : mapping of str to float
        What the neighbours did, by shape.
    expected : mapping of str to float
        The region model's chance of success, by shape; empty without a model.
    chances : mapping of str to float
        How likely a command leads to what is missing, by what was explored before; empty if
        nobody was asked.
    """

    votes: Mapping[str, float]
    expected: Mapping[str, float]
    chances: Mapping[str, float]


class Consulted(NamedTuple):
    """A moment in which memory was asked how to go on.

    Attributes
    ----------
    text : str
        The moment.
    decision : Decision
        Which moments were recalled.
    advice : Advice
        What they say.
    wish : Wish
        What was missing.
    """

    text: str
    decision: Decision
    advice: Advice
    wish: Wish


def tally(scored: Iterable[tuple[str, float]], exponent: float) -> dict[str, float]:
    """Add up the scores of each action to a power; those below 0 count nothing."""
    votes: dict[str, float] = defaultdict(float)
    for action, score in scored:
        votes[action] += max(score, 0.0) ** exponent
    return dict(votes)
