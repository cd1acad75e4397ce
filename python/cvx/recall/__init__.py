"""The read pipeline: what stands between the answers of several sources and one ranking."""

from cvx.recall.candidates import Candidates
from cvx.recall.cue import build_cue, cue_of
from cvx.recall.floor import Floor
from cvx.recall.fusion import Fused, by_rank, by_scale, reciprocal_rank_fusion
from cvx.recall.pipeline import Pipeline, Signal
from cvx.recall.trace import Trace
from cvx.recall.view import View
from cvx.recall.weighting import Weighting

__all__ = [
    "Candidates",
    "Floor",
    "Fused",
    "Pipeline",
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
