"""Causal memory: what led to this, and what came of it."""

from cvx.causal.context import Recalled, TCMFContext
from cvx.causal.core import CausalMemoryCore
from cvx.causal.core_file import CoreEvent
from cvx.causal.council import Citizen, EmbedderRouter, Router
from cvx.causal.event_log import EventLog
from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.evidence import Evidence, Observation
from cvx.causal.graph import CausalGraph
from cvx.causal.importance import Importance, LLMImportance, RuleImportance
from cvx.causal.judges import (
    CallableJudge,
    Judge,
    Judgement,
    LLMJudge,
    NoJudge,
    Pair,
    RuleJudge,
    ServerJudge,
)
from cvx.causal.linker import CauseSearch, Linked
from cvx.causal.narrative import Story
from cvx.causal.presets import PRESETS, TCMF
from cvx.causal.reflect import Reflector
from cvx.causal.reflection_writers import CountingWriter, Insight, LLMWriter, ReflectionWriter
from cvx.causal.stream import Memory, MemoryStream, ScoredMemory, StreamWeights
from cvx.causal.tcmf import TCMFRetriever
from cvx.causal.vitality import Vitality
from cvx.causal.walk import Reached, Walk

__all__ = [
    "PRESETS",
    "TCMF",
    "CallableJudge",
    "CausalEvent",
    "CausalGraph",
    "CausalMemoryCore",
    "CauseSearch",
    "Citizen",
    "CoreEvent",
    "CountingWriter",
    "EmbedderRouter",
    "EventId",
    "EventLog",
    "Evidence",
    "Importance",
    "Insight",
    "Judge",
    "Judgement",
    "LLMImportance",
    "LLMJudge",
    "LLMWriter",
    "Link",
    "Linked",
    "Memory",
    "MemoryStream",
    "NoJudge",
    "Observation",
    "Pair",
    "Reached",
    "Recalled",
    "ReflectionWriter",
    "Reflector",
    "Router",
    "RuleImportance",
    "RuleJudge",
    "ScoredMemory",
    "ServerJudge",
    "Story",
    "StreamWeights",
    "TCMFContext",
    "TCMFRetriever",
    "Vitality",
    "Walk",
]
