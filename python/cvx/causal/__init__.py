"""Causal memory: what led to this, and what came of it."""

from cvx.causal.context import Recalled, TCMFContext
from cvx.causal.council import Citizen, EmbedderRouter, Router
from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.evidence import Evidence, Observation
from cvx.causal.graph import CausalGraph
from cvx.causal.judges import Judge, Judgement, Pair
from cvx.causal.linking import LinkRule
from cvx.causal.narrative import Story
from cvx.causal.presets import PRESETS, TCMF
from cvx.causal.stream import Memory, MemoryStream, ScoredMemory, StreamWeights
from cvx.causal.tcmf import TCMFRetriever
from cvx.causal.walk import Limits, Reached, Walk

__all__ = [
    "PRESETS",
    "TCMF",
    "CausalEvent",
    "CausalGraph",
    "Citizen",
    "EmbedderRouter",
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
    "Recalled",
    "Router",
    "ScoredMemory",
    "Story",
    "StreamWeights",
    "TCMFContext",
    "TCMFRetriever",
    "Walk",
]
