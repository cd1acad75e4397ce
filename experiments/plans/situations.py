"""Situations described without names, and what memory says about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from experiments.plans.attempt import Wish
from experiments.plans.words import shape


def moment(commands: Iterable[str], before: Collection[str], last: str | None) -> str:
    """Return what was done last, and what is newly possible.

    Parameters
    ----------
    commands : iterable of str
        The admissible ones.
    before : collection of str
        Those that were admissible one step earlier.
    last : str or None
        The command given then.

    Examples
    --------
    >>> moment(["walk to peg 1", "grab hat 1 from nook 2"], ["walk to peg 1"], None)
    'last_nothing new_grab_x_from_x'
    """
    known = frozenset(before)
    new = sorted({shape(c) for c in commands if c not in known})
    named = [f"last {shape(last) if last else 'nothing'}", *(f"new {form}" for form in new)]
    return " ".join(re.sub(r"\W", "_", name.replace("#", "x")) for name in named)


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
