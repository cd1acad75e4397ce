"""Where a score is made: features, weights, how they join, and what use a memory has been."""

from cvx.scoring.calibration import Calibration, ReliabilityBin, calibration
from cvx.scoring.durations import Durations
from cvx.scoring.evidence import SuccessPosterior, evidence_posterior
from cvx.scoring.logged import logged_calibration, logged_choices
from cvx.scoring.off_policy import (
    LoggedChoice,
    OffPolicyEstimate,
    off_policy_value,
    plackett_luce,
)
from cvx.scoring.posterior import (
    SEED_WEIGHTS,
    bayesian_score,
    beta_mean,
    censored_failure,
    recency_weight,
    usage_ratio,
)
from cvx.scoring.scorer import (
    DEFAULT_WEIGHTS,
    FEATURES,
    Feature,
    Scorer,
    ScoringContext,
)
from cvx.scoring.selection import Selection
from cvx.scoring.usage import UsageCount, UsageTracker, Whose, use_posterior
from cvx.scoring.weights import LearnedWeights
from cvx.statistics import Estimate, wilson

__all__ = [
    "DEFAULT_WEIGHTS",
    "FEATURES",
    "SEED_WEIGHTS",
    "Calibration",
    "Durations",
    "Estimate",
    "Feature",
    "LearnedWeights",
    "LoggedChoice",
    "OffPolicyEstimate",
    "ReliabilityBin",
    "Scorer",
    "ScoringContext",
    "Selection",
    "SuccessPosterior",
    "UsageCount",
    "UsageTracker",
    "Whose",
    "bayesian_score",
    "beta_mean",
    "calibration",
    "censored_failure",
    "evidence_posterior",
    "logged_calibration",
    "logged_choices",
    "off_policy_value",
    "plackett_luce",
    "recency_weight",
    "usage_ratio",
    "use_posterior",
    "wilson",
]
