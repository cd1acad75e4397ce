"""The read pipeline: what stands between the answers of several sources and one ranking."""

from cvx.cue import build_cue, cue_of
from cvx.recall.candidates import Candidates
from cvx.recall.context import Context
from cvx.recall.dedupe import Dedupe
from cvx.recall.floor import Floor
from cvx.recall.fusion import Fused, by_rank, by_scale, reciprocal_rank_fusion
from cvx.recall.packing import Budget
from cvx.recall.pipeline import Pipeline, Signal
from cvx.recall.render import Renderer
from cvx.recall.serving import Serving
from cvx.recall.trace import Hits, Trace
from cvx.recall.view import View
from cvx.recall.weighting import Weighting
from cvx.scoring.sampling import PlackettLuce

__all__ = [
    "Budget",
    "Candidates",
    "Context",
    "Dedupe",
    "Floor",
    "Fused",
    "Hits",
    "Pipeline",
    "PlackettLuce",
    "Renderer",
    "Serving",
    "Signal",
    "Trace",
    "View",
    "Weighting",
    "build_cue",
    "by_rank",
    "by_scale",
    "cue_of",
    "reciprocal_rank_fusion",
]
