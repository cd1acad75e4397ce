"""Splits a goal into clauses, and finds the clause that each demonstrated command serves."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.plans.words import FUNCTION_WORDS, arguments, rest, spans, template, words

Shares = npt.NDArray[np.float64]

_ENDS = re.compile(r"[\n.!?:;]+")
_ROUNDS = 10  # of expectation and maximisation; the assignments stand still after three or four
_NEAR = 2.0  # how fast a clause becomes unlikely with the distance between the two relative places
_SAME = 4.0  # how much likelier a clause is that says the command's first word and nothing else
_BACK = 0.3  # how likely it is to come back to an earlier clause, against going on; set by hand


def clauses(text: str) -> list[str]:
    r"""Return the sentences and lines of a text that have a word.

    Examples
    --------
    >>> clauses("Find the hats!  Then:\n hang the hats")
    ['Find the hats', 'Then', 'hang the hats']
    """
    return [part.strip() for part in _ENDS.split(text) if words(part)]


def names_in(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that a text mentions, in its order."""
    return list(dict.fromkeys(name for name, named in spans(text, names) if named))


def holds(clause: str, slots: Sequence[str], texts: Iterable[str]) -> bool:
    """Whether what a clause asks for is said of its things already.

    That is said by the word right before a name, if it is the past participle of a word of the
    clause, and a regular one: of words alone, *put* and *purple* could not be told from *take* and
    *taken*.

    Examples
    --------
    >>> holds("dye the hat", ["hat"], ["You see a dyed hat."])
    True
    >>> holds("dye the hat", ["hat"], ["You see a pale hat. You dye the hat."])
    False
    """
    asked = [w for w in rest(clause, slots) if len(w) > 2]
    pieces = (list(spans(told, slots)) for text in texts for told in clauses(text))
    said = {p[i][0] for p in pieces for i, (_, named) in enumerate(p[1:]) if named}
    return any(_akin(a, b) for a in asked for b in said)


def _akin(asked: str, said: str) -> bool:
    """Whether a word is the regular past participle of another: dyed, fried, folded, chopped."""
    stems = {asked, asked + asked[-1], asked.removesuffix("e"), re.sub("y$", "i", asked)}
    return said in {f"{stem}ed" for stem in stems}


def instructs(text: str, last: str, later: Iterable[str]) -> bool:
    """Whether a clause of a text says what was done later: first word and something named.

    Parameters
    ----------
    text : str
        What was told after a command.
    last : str
        That command; doing the like again is no instruction.
    later : iterable of str
        The commands that came after it.
    """
    own = words(last)[:1]
    told = [(set(words(c)), c) for c in clauses(text)]
    for command in later:
        first = words(command)[0]
        if [first] != own and any(
            first in said and names_in(clause, [a.word for a in arguments(command)])
            for said, clause in told
        ):
            return True
    return False


class Goal(NamedTuple):
    """A goal with the commands that reached it.

    Attributes
    ----------
    clauses : list of str
        What was said, in order.
    commands : list of str
        What was done.
    """

    clauses: list[str]
    commands: list[str]


def align(goals: Sequence[Goal], aimed: Collection[str]) -> list[list[int | None]]:
    """Return, for each command of each goal, the place of the clause that it serves.

    A command may serve a clause that names most of what it names. Which of them is found by
    expectation and maximisation over all goals: how often commands of a first word go with
    clauses of a form, weighed by how near their relative places in both sequences are, and by
    whether commands that follow each other serve clauses that do. The last is for learning only:
    what was learned then tells in which other order the commands of one goal may have come.

    Parameters
    ----------
    goals : sequence of Goal
    aimed : collection of str
        Commands that may be steps of a plan; None is returned for the others, and for those that
        name nothing that any clause does.

    References
    ----------
    Brown et al. 1993, "The mathematics of statistical machine translation", models 1 and 2.
    Vogel, Ney and Tillmann 1996, "HMM-based word alignment in statistical translation"; here going
    on is as likely by any number of clauses.
    """
    lines = [[_choices(goal, i, aimed) for i in range(len(goal.commands))] for goal in goals]
    chance: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    for _ in range(_ROUNDS):
        together: dict[tuple[str, str], float] = defaultdict(float)
        form_of: dict[str, float] = defaultdict(float)
        for line in lines:
            for choices, shares in zip(line, _shares(line, chance), strict=True):
                for c, share in zip(choices, shares, strict=True):
                    together[c.pair] += share
                    form_of[c.pair[1]] += share
        chance = defaultdict(float, {p: n / form_of[p[1]] for p, n in together.items()})
    return [
        [max(c, key=lambda c: chance[c.pair] * c.prior).place if c else None for c in line]
        for line in lines
    ]


class _Choice(NamedTuple):
    place: int
    pair: tuple[str, str]
    prior: float


def _shares(
    line: Sequence[Sequence[_Choice]], chance: Mapping[tuple[str, str], float]
) -> list[Shares]:
    """Return how likely each choice of each command is, given all commands of its goal.

    By the forward and backward recursions of a hidden Markov model.
    """
    said = [[chance[c.pair] * c.prior for c in choices] for choices in line if choices]
    places = [np.array([c.place for c in choices]) for choices in line if choices]
    steps = [np.where(b >= a[:, None], 1.0, _BACK) for a, b in pairwise(places)]
    ahead = [np.array(said[0])] if said else []
    for own, step in zip(said[1:], steps, strict=True):
        ahead.append(own * (ahead[-1] / ahead[-1].sum() @ step))
    behind = [np.ones(len(own)) for own in said[-1:]]
    for own, step in zip(said[:0:-1], steps[::-1], strict=True):
        behind.append(step @ (own * behind[-1] / behind[-1].sum()))
    found = (a * b / (a @ b) for a, b in zip(ahead, behind[::-1], strict=True))
    return [next(found) if choices else np.empty(0) for choices in line]


def _choices(goal: Goal, number: int, aimed: Collection[str]) -> list[_Choice]:
    command = goal.commands[number]
    if command not in aimed:
        return []
    names = [a.word for a in arguments(command)]
    heard = {a.word for c in goal.commands for a in arguments(c)}
    shared = [len(names_in(clause, names)) for clause in goal.clauses]
    most = max(shared, default=0)
    found = []
    for place, clause in enumerate(goal.clauses):
        if most and shared[place] == most:
            first = words(command)[0]
            away = abs(_relative(number, goal.commands) - _relative(place, goal.clauses))
            said = {w for w in words(clause) if w not in FUNCTION_WORDS}
            same = len(said.intersection(words(command))) / len(said) if first in said else 0.0
            prior = math.exp(-_NEAR * away) * (1 + _SAME * same)
            found.append(_Choice(place, (first, template(clause, names_in(clause, heard))), prior))
    return found


def _relative(place: int, whole: Sequence[str]) -> float:
    return place / max(1, len(whole) - 1)
