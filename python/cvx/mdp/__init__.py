"""A Markov decision process over the regions of the index, learned from episodes."""

from cvx.mdp.actions import classify_action
from cvx.mdp.counts import SuccessCounts
from cvx.mdp.effect import ActionEffect, action_effect
from cvx.mdp.learner import FAILURE, SUCCESS, UNKNOWN
from cvx.mdp.model import RegionMDP
from cvx.mdp.trace import RegionIndex, Trace, default_level

__all__ = [
    "FAILURE",
    "SUCCESS",
    "UNKNOWN",
    "ActionEffect",
    "RegionIndex",
    "RegionMDP",
    "SuccessCounts",
    "Trace",
    "action_effect",
    "classify_action",
    "default_level",
]
