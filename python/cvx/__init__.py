"""cvx, the memory of an agent: what is similar, what happened next, what led to it, how it ended.

Names are loaded when they are first used, so that ``import cvx`` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.lazy import names_of

if TYPE_CHECKING:
    from cvx.causal import CausalMemoryCore as CausalMemoryCore
    from cvx.embed import Embedder as Embedder
    from cvx.embed import LexicalEmbedder as LexicalEmbedder
    from cvx.embed.chunks import chunk_text as chunk_text
    from cvx.errors import CvxError as CvxError
    from cvx.learn.decay import context_aware_decay as context_aware_decay
    from cvx.learn.region_mdp import RegionMDP as RegionMDP
    from cvx.memory import Memory as Memory
    from cvx.scoring import UsageTracker as UsageTracker
    from cvx.scoring import bayesian_score as bayesian_score
    from cvx.temporal_index import TemporalIndex as TemporalIndex
    from cvx.types import Cue as Cue
    from cvx.types import Edge as Edge
    from cvx.types import Episode as Episode
    from cvx.types import Event as Event
    from cvx.types import Filter as Filter
    from cvx.types import Hit as Hit
    from cvx.types import Region as Region

_HOME = {
    "CausalMemoryCore": "causal",
    "CvxError": "errors",
    "Cue": "types",
    "Edge": "types",
    "Embedder": "embed",
    "Episode": "types",
    "Event": "types",
    "Filter": "types",
    "Hit": "types",
    "LexicalEmbedder": "embed",
    "Memory": "memory",
    "Region": "types",
    "RegionMDP": "learn.region_mdp",
    "TemporalIndex": "temporal_index",
    "UsageTracker": "scoring",
    "bayesian_score": "scoring",
    "chunk_text": "embed.chunks",
    "context_aware_decay": "learn.decay",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"
__getattr__, __dir__ = names_of(__name__, _HOME)
