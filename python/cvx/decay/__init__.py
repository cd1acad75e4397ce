"""What a failure does to the reward of the memories that were recalled for it.

A policy looks at one recalled memory in one failed game and returns the factor for its reward;
1.0 leaves it alone. ``DecayLedger`` applies factors, once a game and memory, and can undo them;
``decay_report`` shows what each policy does to which memory, and why.
"""

from cvx.decay.case import DecayCase, DecayPolicy
from cvx.decay.context_aware import context_aware_decay
from cvx.decay.ledger import DecayLedger, Judged, RewardIndex
from cvx.decay.policies import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    GatedDecay,
    NoDecay,
    ProportionalDecay,
    reason_of,
)
from cvx.decay.report import POLICIES, DecayReport, decay_report

__all__ = [
    "POLICIES",
    "BayesianDecay",
    "BlindDecay",
    "ContextAwareDecay",
    "DecayCase",
    "DecayLedger",
    "DecayPolicy",
    "DecayReport",
    "GatedDecay",
    "Judged",
    "NoDecay",
    "ProportionalDecay",
    "RewardIndex",
    "context_aware_decay",
    "decay_report",
    "reason_of",
]
