"""A Markov decision process over the regions of the index, learned from episodes."""

from cvx.mdp.actions import classify_action, last_kind
from cvx.mdp.answers import Basis, Estimate, Ranking, Strategy
from cvx.mdp.counts import SuccessCounts
from cvx.mdp.effect import ActionEffect, action_effect
from cvx.mdp.frames import Frames
from cvx.mdp.model import RegionMDP
from cvx.mdp.planning import Planner, WayToSuccess
from cvx.mdp.posteriors import Beta, Dirichlet
from cvx.mdp.trace import (
    FAILURE,
    SUCCESS,
    UNKNOWN,
    Move,
    RegionIndex,
    Trace,
    default_level,
    timelines,
)

__all__ = [
    "FAILURE",
    "SUCCESS",
    "UNKNOWN",
    "ActionEffect",
    "Basis",
    "Beta",
    "Dirichlet",
    "Estimate",
    "Frames",
    "Move",
    "Planner",
    "Ranking",
    "RegionIndex",
    "RegionMDP",
    "Strategy",
    "SuccessCounts",
    "Trace",
    "WayToSuccess",
    "action_effect",
    "classify_action",
    "default_level",
    "last_kind",
    "timelines",
]
