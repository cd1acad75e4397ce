"""Which memories drove a decision, and whether it paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cvx.types import Cue


@dataclass(frozen=True, slots=True)
class Attribution:
    """One context and what became of it; memories are ids of events.

    Parameters
    ----------
    decision_id : int
        Which one.
    cue : Cue
        What was asked.
    cue_hash : str
        Equal for equal cues.
    turn : int, optional
        The turn it was asked in.
    retrieved : tuple of int
        What was recalled, best first.
    shown : tuple of int
        What of it was in the block.
    followed : tuple of int, optional
        What the agent went by; None while there is no feedback.
    helped : bool, optional
        Whether it succeeded; None while that is unknown.
    action : str, optional
        What the agent did.
    outcome : float, optional
        How it ended, in [0, 1].
    propensities : tuple of float, optional
        The probability of each shown memory at its place, where the order was sampled.
    """

    decision_id: int
    cue: Cue
    cue_hash: str
    turn: int | None
    retrieved: tuple[int, ...]
    shown: tuple[int, ...]
    followed: tuple[int, ...] | None = None
    helped: bool | None = None
    action: str | None = None
    outcome: float | None = None
    propensities: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        number: int,
        cue: Cue,
        noted: Mapping[str, Any],
        action: str | None = None,
        outcome: float | None = None,
    ) -> Self:
        """Return it from what was noted of a decision."""
        followed, propensities = noted.get("followed"), noted.get("propensities")
        return cls(
            number,
            cue,
            noted["cue_hash"],
            noted["turn"],
            tuple(noted["retrieved"]),
            tuple(noted["shown"]),
            None if followed is None else tuple(followed),
            noted.get("helped"),
            action,
            outcome,
            None if propensities is None else tuple(propensities),
        )
