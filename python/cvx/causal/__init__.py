"""Causal memory: what led to this, and what came of it."""

from cvx.causal.evidence import Evidence, Observation
from cvx.causal.judges import Judge, Judgement, Pair
from cvx.causal.stream import Memory, MemoryStream, ScoredMemory, StreamWeights

__all__ = [
    "Evidence",
    "Judge",
    "Judgement",
    "Memory",
    "MemoryStream",
    "Observation",
    "Pair",
    "ScoredMemory",
    "StreamWeights",
]
