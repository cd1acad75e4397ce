"""What a council is told, as a block of text and as what it was made of."""

from __future__ import annotations

from dataclasses import dataclass

from cvx.causal.events import CausalEvent
from cvx.causal.stream import Memory

NO_MEMORIES = "(nobody remembers anything)"
NO_CAUSES = "(nothing is known to have led here)"


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory that was recalled.

    Parameters
    ----------
    citizen_id, name : str
        Who remembers it; of several the one who scores it best.
    memory : Memory
        What they remember.
    score : float
        Higher is better.
    factors : tuple of (str, float)
        What the score is made of; they add up to it.
    witness_of : CausalEvent, optional
        The precedent that it is about, where that mattered.
    arm : str
        Which evidence put it in its place: "fused", "causal", "relevance" or "fallback".
    """

    citizen_id: str
    name: str
    memory: Memory
    score: float
    factors: tuple[tuple[str, float], ...]
    witness_of: CausalEvent | None
    arm: str


@dataclass(frozen=True, slots=True)
class TCMFContext:
    """What a council is told.

    Parameters
    ----------
    question : str
        The crisis.
    recalled : tuple of Recalled
        Best first.
    chain : tuple of CausalEvent
        What led here, in time order.
    degraded : tuple of str
        What was missing, and what that costs; empty where nothing was.
    truncated : bool
        Whether the walk through causes was cut off by its budget.
    """

    question: str
    recalled: tuple[Recalled, ...]
    chain: tuple[CausalEvent, ...]
    degraded: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def text(self) -> str:
        """The block for a prompt; each memory and each event is one line, whatever it holds."""
        evidence = [
            f"- [{_line(one.name)}] {_line(one.memory.text)} (importance={one.memory.importance:g})"
            for one in self.recalled
        ]
        chain = [f"[tick {event.tick}] {_line(event.text)}" for event in self.chain]
        return "\n".join(
            [
                f"CRISIS: {_line(self.question)}",
                "",
                "CITIZEN MEMORY EVIDENCE:",
                *(evidence or [NO_MEMORIES]),
                "",
                "CAUSAL CHAIN (temporal-causal precedents):",
                *(chain or [NO_CAUSES]),
            ]
        )


def _line(text: str) -> str:
    # A line break in a memory could pass for a heading of the block.
    return " ".join(text.split())
