"""Types of a demonstration: what was seen, and the command given then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Observation:
    """What somebody who gives commands is told.

    Attributes
    ----------
    text : str
        What there is to read, unaltered.
    goal : str
        What is to be reached, as it was stated.
    admissible_commands : tuple of str
        Every command that would do something now, sorted.
    """

    text: str
    goal: str
    admissible_commands: tuple[str, ...]


class Played(NamedTuple):
    """One step of a demonstration: what was seen, the command given then, what it earned."""

    observation: Observation
    command: str
    reward: float = 0.0


Demonstrations = Sequence[tuple[str, Sequence[Played]]]
"""Pairs of a goal and the steps that reached it."""
