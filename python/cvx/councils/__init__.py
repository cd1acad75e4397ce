"""Councils over a memory: everybody's memories, ranked by the question and by what led to it."""

from cvx.councils.council import Council
from cvx.councils.crisis_context import (
    PRESETS,
    TCMF,
    Citizen,
    EmbedderRouter,
    Recalled,
    Router,
    TCMFContext,
    TCMFRetriever,
)
from cvx.councils.memory_stream import Memory, MemoryStream, ScoredMemory, StreamWeights

__all__ = [
    "PRESETS",
    "TCMF",
    "Citizen",
    "Council",
    "EmbedderRouter",
    "Memory",
    "MemoryStream",
    "Recalled",
    "Router",
    "ScoredMemory",
    "StreamWeights",
    "TCMFContext",
    "TCMFRetriever",
]
