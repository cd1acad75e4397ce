"""Councils over a memory: everybody's memories, ranked by the question and by what led to it."""

from cvx.councils.council import Council
from cvx.councils.stream import Memory, MemoryStream, ScoredMemory, StreamWeights
from cvx.councils.tcmf import (
    PRESETS,
    TCMF,
    Citizen,
    EmbedderRouter,
    Recalled,
    Router,
    TCMFContext,
    TCMFRetriever,
)

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
