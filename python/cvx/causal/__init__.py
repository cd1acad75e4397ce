"""Causal memory: what led to this, and what came of it. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.lazy import names_of

if TYPE_CHECKING:
    from cvx.causal.cause_probability import PairModel as PairModel
    from cvx.causal.evidence import Evidence as Evidence
    from cvx.causal.evidence import Observation as Observation
    from cvx.causal.forgetting import Vitality as Vitality
    from cvx.causal.graph import CausalGraph as CausalGraph
    from cvx.causal.graph_data import CausalEvent as CausalEvent
    from cvx.causal.judges import CallableJudge as CallableJudge
    from cvx.causal.judges import Judge as Judge
    from cvx.causal.judges import Judgement as Judgement
    from cvx.causal.judges import LLMJudge as LLMJudge
    from cvx.causal.judges import NoJudge as NoJudge
    from cvx.causal.judges import Pair as Pair
    from cvx.causal.judges import RuleJudge as RuleJudge
    from cvx.causal.linker import CauseSearch as CauseSearch
    from cvx.causal.memory_core import CausalMemoryCore as CausalMemoryCore
    from cvx.causal.memory_core_duckdb import CoreEvent as CoreEvent
    from cvx.causal.narrative import Story as Story
    from cvx.causal.reflection import CountingWriter as CountingWriter
    from cvx.causal.reflection import Importance as Importance
    from cvx.causal.reflection import Insight as Insight
    from cvx.causal.reflection import LLMImportance as LLMImportance
    from cvx.causal.reflection import LLMWriter as LLMWriter
    from cvx.causal.reflection import ReflectionWriter as ReflectionWriter
    from cvx.causal.reflection import Reflector as Reflector
    from cvx.causal.reflection import RuleImportance as RuleImportance
    from cvx.causal.walk import Reached as Reached
    from cvx.causal.walk import Walk as Walk
    from cvx.types import EventId as EventId

_HOME = {
    "CallableJudge": "judges",
    "CausalEvent": "graph_data",
    "CausalGraph": "graph",
    "CausalMemoryCore": "memory_core",
    "CauseSearch": "linker",
    "CoreEvent": "memory_core_duckdb",
    "CountingWriter": "reflection",
    "EventId": "graph_data",
    "Evidence": "evidence",
    "Importance": "reflection",
    "Insight": "reflection",
    "Judge": "judges",
    "Judgement": "judges",
    "LLMImportance": "reflection",
    "LLMJudge": "judges",
    "LLMWriter": "reflection",
    "NoJudge": "judges",
    "Observation": "evidence",
    "Pair": "judges",
    "PairModel": "cause_probability",
    "Reached": "walk",
    "ReflectionWriter": "reflection",
    "Reflector": "reflection",
    "RuleImportance": "reflection",
    "RuleJudge": "judges",
    "Story": "narrative",
    "Vitality": "forgetting",
    "Walk": "walk",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = names_of(__name__, _HOME)
