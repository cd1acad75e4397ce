"""Answers of a region model that say what they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from cvx.mdp.posteriors import Beta

Place: TypeAlias = Literal["region", "around", "anywhere", "nowhere"]


class Basis(NamedTuple):
    """What an answer rests on.

    Attributes
    ----------
    place : {"region", "around", "anywhere", "nowhere"}
        The smallest place with evidence: the very region, a larger one around it, the whole
        memory; "nowhere" if there is none at all, and the answer is the prior.
    task_type : str or None
        The family of goals whose evidence it is; ``None`` if that of all families, be it that
        none was asked for or that the one asked for was never seen.
    trials : float
        Moves with an outcome that were counted there, each by the trust in its episode: a whole
        number where all are trusted fully.
    """

    place: Place
    task_type: str | None
    trials: float


NOTHING = Basis("nowhere", None, 0)


class Estimate(NamedTuple):
    """A chance of success, how sure it is, and what it rests on.

    Attributes
    ----------
    posterior : Beta
        The belief; without any evidence the prior, Beta(s / 2, s / 2) for a prior strength s.
    basis : Basis
        The smallest place with evidence.
    trials, wins : float
        Counted by trust in exactly the region, family and phase asked for: 0 means that the answer
        is borrowed.
    """

    posterior: Beta
    basis: Basis
    trials: float
    wins: float

    @property
    def probability(self) -> float:
        """The chance to expect, in [0, 1]."""
        return self.posterior.mean


class Ranking(list[tuple[str, float]]):
    """Kinds of action with their chance of success, best first, and what the list rests on.

    Attributes
    ----------
    basis : Basis
        Where these kinds of action were seen.
    """

    def __init__(self, actions: Iterable[tuple[str, float]], basis: Basis) -> None:
        super().__init__(actions)
        self.basis = basis


class Strategy(tuple[str, ...]):
    """A sequence of kinds of action, and what it rests on.

    Attributes
    ----------
    basis : Basis
        Which episodes it was chosen from: those through the region, or whole ones from anywhere.
    """

    basis: Basis

    def __new__(cls, actions: Iterable[str], basis: Basis) -> Strategy:
        """Make it of its actions."""
        made = super().__new__(cls, actions)
        made.basis = basis
        return made
