"""The protocol of a judge of causes: takes pairs of events, returns one judgement each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from cvx.arguments import a_share, among, check_fields, optional
from cvx.types import Vector

Verdict: TypeAlias = Literal["yes", "no", "unjudged"]


class Pair(NamedTuple):
    """Two events, of which the first may have led to the second.

    Attributes
    ----------
    cause, effect : str
        What they say; may be empty.
    cause_vector, effect_vector : ndarray of shape (dim,), float32, or None
        Where they lie, by one and the same embedder.
    lag : int or None
        Time from cause to effect in the unit of the clock; below 0, the effect came first.
    """

    cause: str
    effect: str
    cause_vector: Vector | None = None
    effect_vector: Vector | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of a pair.

    Parameters
    ----------
    verdict : {"yes", "no", "unjudged"}
        "unjudged" is no opinion: nobody could be asked, or the answer could not be understood.
        It is kept, so that the question can be asked again.
    probability : float, optional
        How likely the first led to the second, in [0, 1]; ``None`` where the judge has no number.
    why : str
        How the first led to the second, in words, or what went wrong.
    factors : tuple of (str, float)
        What the probability was made of, where the judge knows.

    Examples
    --------
    >>> Judgement("yes", 0.9, "the drain was too small").confirmed
    True
    """

    verdict: Verdict
    probability: float | None = None
    why: str = ""
    factors: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, verdict=among("yes", "no", "unjudged"), probability=optional(a_share))

    @property
    def confirmed(self) -> bool:
        """Whether the first event led to the second."""
        return self.verdict == "yes"


@runtime_checkable
class Judge(Protocol):
    """Anything that says of pairs of events whether one led to the other."""

    @property
    def name(self) -> str:
        """What a link that rests on it says of its origin."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs, one answer each, in their order."""


def judgements(judge: Judge, pairs: Sequence[Pair]) -> list[Judgement]:
    """Return one judgement a pair, whatever the judge does.

    A judge that raises, or gives another number of answers or something else than judgements,
    leaves the pairs unjudged.
    """
    try:
        found = list(judge.judge(pairs))
    except Exception as error:  # whatever a user's judge raises
        return [Judgement("unjudged", why=f"{type(error).__name__}: {error}") for _ in pairs]
    if len(found) != len(pairs) or not all(isinstance(one, Judgement) for one in found):
        why = f"{len(found)} answers to {len(pairs)} pairs, or answers that are no Judgement"
        return [Judgement("unjudged", why=why) for _ in pairs]
    return found
