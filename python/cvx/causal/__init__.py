"""Causal memory: what led to this, and what came of it."""

from cvx.causal.core import CausalMemoryCore
from cvx.causal.core_file import CoreEvent
from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.evidence import Evidence, Observation
from cvx.causal.graph import CausalGraph
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
from cvx.causal.reflection import (
    CountingWriter,
    Importance,
    Insight,
    LLMImportance,
    LLMWriter,
    ReflectionWriter,
    Reflector,
    RuleImportance,
)
from cvx.causal.vitality import Vitality
from cvx.causal.walk import Reached, Walk

__all__ = [
    "CallableJudge",
    "CausalEvent",
    "CausalGraph",
    "CausalMemoryCore",
    "CauseSearch",
    "CoreEvent",
    "CountingWriter",
    "EventId",
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
    "NoJudge",
    "Observation",
    "Pair",
    "Reached",
    "ReflectionWriter",
    "Reflector",
    "RuleImportance",
    "RuleJudge",
    "ServerJudge",
    "Story",
    "Vitality",
    "Walk",
]
