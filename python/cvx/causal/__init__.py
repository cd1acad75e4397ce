"""Causal memory: what led to this, and what came of it."""

from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.evidence import Evidence, Observation
from cvx.causal.graph import CausalGraph
from cvx.causal.judges import Judge, Judgement, Pair
from cvx.causal.linking import LinkRule
from cvx.causal.stream import Memory, MemoryStream, ScoredMemory, StreamWeights
from cvx.causal.walk import Limits, Reached, Walk

__all__ = [
    "CausalEvent",
    "CausalGraph",
    "EventId",
    "Evidence",
    "Judge",
    "Judgement",
    "Limits",
    "Link",
    "LinkRule",
    "Memory",
    "MemoryStream",
    "Observation",
    "Pair",
    "Reached",
    "ScoredMemory",
    "StreamWeights",
    "Walk",
]
