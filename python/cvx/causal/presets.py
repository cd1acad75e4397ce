"""How the two streams are brought together: every choice the blueprint makes, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from cvx.causal.fusion import (
    Ancestors,
    Blend,
    Candidates,
    Ranked,
    additive,
    interleave,
    multiplicative,
)
from cvx.errors import InvalidParameterError
from cvx.types import Vector

FusionName: TypeAlias = Literal["interleave", "multiplicative", "additive"]
Chain: TypeAlias = Literal["reached", "all"]

_FUSIONS = ("interleave", "multiplicative", "additive")


@dataclass(frozen=True, kw_only=True)
class TCMF:
    """The settings of a ``TCMFRetriever``.

    Parameters
    ----------
    fusion : {"interleave", "multiplicative", "additive"}, default "interleave"
        The rule that ranks: see ``cvx.causal.fusion`` and ``cvx.causal.fusion``.
    blend : Blend
        Lambda, threshold, how depth and path weights count, for the rules that add or multiply.
        The weights of the episodic score are those of the streams.
    floor : float, default 0.2
        Least similarity of an ancestor's nearest witness, for "interleave".
    fallback : bool, default True
        Whether "interleave" lets the institution's events call witnesses too, in turn with what
        is similar to the question.
    max_depth : int, default 4
        How far back causes are walked.
    per_citizen : int, optional
        How many memories of each citizen are looked at; by default all.
    institution_events : int, default 20
        How many of the institution's latest events count where no link leads; 0 for none.
    nearby_depth : int, default 3
        The depth they count as.
    nearby_weight : float, default 0.3
        The path weight they count with, in [0, 1].
    crisis_counts : bool, default False
        Whether the crisis itself counts as one of them.
    dedupe_content : bool, default True
        Whether memories of the same words count as one; those of the same id always do.
    hindsight : bool, default False
        Whether memories made after the tick of the question count, as the blueprint has it; a
        replay would see its future.
    chain : {"reached", "all"}, default "reached"
        Whether the chain shows only what links lead to, or the institution's events too.

    Raises
    ------
    InvalidParameterError
        A value outside its bounds.
    """

    fusion: FusionName = "interleave"
    blend: Blend = field(default_factory=lambda: Blend(causal_boost=12.0, edge_weights=True))
    floor: float = 0.2
    fallback: bool = True
    max_depth: int = 4
    per_citizen: int | None = None
    institution_events: int = 20
    nearby_depth: int = 3
    nearby_weight: float = 0.3
    crisis_counts: bool = False
    dedupe_content: bool = True
    hindsight: bool = False
    chain: Chain = "reached"

    def __post_init__(self) -> None:
        if self.fusion not in _FUSIONS:
            raise InvalidParameterError(
                f"fusion is {self.fusion!r}: give one of {', '.join(_FUSIONS)}"
            )
        bounds = {
            "max_depth": self.max_depth >= 1,
            "per_citizen": self.per_citizen is None or self.per_citizen >= 1,
            "institution_events": self.institution_events >= 0,
            "nearby_depth": self.nearby_depth >= 1,
            "nearby_weight": 0.0 <= self.nearby_weight <= 1.0,
            "floor": -1.0 <= self.floor <= 1.0,
            "chain": self.chain in ("reached", "all"),
        }
        for name, good in bounds.items():
            if not good:
                raise InvalidParameterError(
                    f"{name} is {getattr(self, name)}: see the documentation of TCMF for its bounds"
                )

    def rank(
        self,
        candidates: Candidates,
        reached: Ancestors,
        nearby: Ancestors,
        weights: tuple[float, float, float],
        crisis: Vector | None = None,
    ) -> Iterator[tuple[Ranked, int | None]]:
        """Yield the candidates best first, each with the precedent that it is about.

        Parameters
        ----------
        candidates, reached, nearby
            Memories, what links lead to, what happened in the same institution.
        weights : tuple of float
            Of relevance, recency and importance in the streams.
        crisis : ndarray of shape (dim,), float32, optional
            The event asked about.

        Yields
        ------
        (Ranked, int or None)
            The precedent's place: those of ``nearby`` are counted on from those of ``reached``.
        """
        if self.fusion == "interleave":
            spare = nearby if self.fallback and len(nearby) else None
            for one in interleave(
                candidates, reached, fallback=spare, event=crisis, floor=self.floor
            ):
                shift = len(reached) if one.arm == "fallback" else 0
                yield one, None if one.ancestor is None else one.ancestor + shift
            return
        blend = replace(self.blend, weights=weights)
        rule = multiplicative if self.fusion == "multiplicative" else additive
        for one in rule(candidates, _joined(reached, nearby), blend):
            yield one, one.ancestor


PRESETS: Mapping[str, TCMF] = MappingProxyType(
    {
        "default": TCMF(),
        "tcmf-seed": TCMF(
            fusion="multiplicative",
            blend=Blend(),
            per_citizen=8,
            crisis_counts=True,
            dedupe_content=False,
            hindsight=True,
            chain="all",
        ),
    }
)
"""By name: what measures best (``benches/causal.py``), and the blueprint as it was published."""


def _joined(first: Ancestors, second: Ancestors) -> Ancestors:
    return Ancestors(
        vectors=np.concatenate([first.vectors, second.vectors]),
        depths=np.concatenate([first.depths, second.depths]),
        weights=np.concatenate([first.weights, second.weights]),
        times=np.concatenate([first.times, second.times]),
    )
