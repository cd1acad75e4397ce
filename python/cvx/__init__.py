"""cvx, the memory of an agent: what is similar, what happened next, what led to it, how it ended.

Names are loaded when they are first used, so that ``import cvx`` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.lazy import names_of

if TYPE_CHECKING:
    from cvx.causal import CausalGraph as CausalGraph
    from cvx.causal import CausalMemoryCore as CausalMemoryCore
    from cvx.embed import Embedder as Embedder
    from cvx.embed import LexicalEmbedder as LexicalEmbedder
    from cvx.embed.chunks import chunk_text as chunk_text
    from cvx.errors import CvxError as CvxError
    from cvx.learn.decay import BayesianDecay as BayesianDecay
    from cvx.learn.decay import BlindDecay as BlindDecay
    from cvx.learn.decay import ContextAwareDecay as ContextAwareDecay
    from cvx.learn.decay import NoDecay as NoDecay
    from cvx.learn.decay import ProportionalDecay as ProportionalDecay
    from cvx.learn.decay import context_aware_decay as context_aware_decay
    from cvx.learn.episodes import EpisodeRecorder as EpisodeRecorder
    from cvx.learn.loop import ActiveMemory as ActiveMemory
    from cvx.learn.region_mdp import RegionMDP as RegionMDP
    from cvx.learn.traces import classify_action as classify_action
    from cvx.memory import Memory as Memory
    from cvx.scoring import LearnedWeights as LearnedWeights
    from cvx.scoring import Scorer as Scorer
    from cvx.scoring import UsageTracker as UsageTracker
    from cvx.scoring import bayesian_score as bayesian_score
    from cvx.store import Record as Record
    from cvx.temporal_index import TemporalIndex as TemporalIndex
    from cvx.types import Cue as Cue
    from cvx.types import Decision as Decision
    from cvx.types import Edge as Edge
    from cvx.types import Episode as Episode
    from cvx.types import Event as Event
    from cvx.types import Factor as Factor
    from cvx.types import Filter as Filter
    from cvx.types import Hit as Hit
    from cvx.types import Region as Region
    from cvx.types import Source as Source
    from cvx.types import Step as Step

_HOME = {
    "ActiveMemory": "learn.loop",
    "BayesianDecay": "learn.decay",
    "BlindDecay": "learn.decay",
    "CausalGraph": "causal",
    "CausalMemoryCore": "causal",
    "ContextAwareDecay": "learn.decay",
    "CvxError": "errors",
    "Cue": "types",
    "Decision": "types",
    "Edge": "types",
    "Embedder": "embed",
    "Episode": "types",
    "EpisodeRecorder": "learn.episodes",
    "Event": "types",
    "Factor": "types",
    "Filter": "types",
    "Hit": "types",
    "LearnedWeights": "scoring",
    "LexicalEmbedder": "embed",
    "Memory": "memory",
    "NoDecay": "learn.decay",
    "ProportionalDecay": "learn.decay",
    "Record": "store",
    "Region": "types",
    "RegionMDP": "learn.region_mdp",
    "Scorer": "scoring",
    "Source": "types",
    "Step": "types",
    "TemporalIndex": "temporal_index",
    "UsageTracker": "scoring",
    "bayesian_score": "scoring",
    "chunk_text": "embed.chunks",
    "classify_action": "learn.traces",
    "context_aware_decay": "learn.decay",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"
__getattr__, __dir__ = names_of(__name__, _HOME)
