"""The read pipeline: what stands between the answers of several sources and one ranking."""

from cvx.cue import build_cue, cue_of
from cvx.recall.context import Context, Dedupe, Serving
from cvx.recall.floor import Floor
from cvx.recall.fusion import (
    Candidates,
    Weighting,
    by_rank,
    by_scale,
)
from cvx.recall.pipeline import Pipeline, Signal
from cvx.recall.presets import default_pipeline
from cvx.recall.question import PlainQuestion
from cvx.recall.trace import Hits, Trace
from cvx.recall.visible_events import VisibleEvents
from cvx.render.block import Renderer
from cvx.render.packing import Budget
from cvx.scoring.off_policy import PlackettLuce

__all__ = [
    "Budget",
    "Candidates",
    "Context",
    "Dedupe",
    "Floor",
    "Hits",
    "Pipeline",
    "PlackettLuce",
    "PlainQuestion",
    "Renderer",
    "Serving",
    "Signal",
    "Trace",
    "VisibleEvents",
    "Weighting",
    "build_cue",
    "by_rank",
    "by_scale",
    "cue_of",
    "default_pipeline",
]
