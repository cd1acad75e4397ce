"""Scores: features, weights, calibration, usage counts, off-policy estimates."""

from cvx.scoring.calibration import (
    Calibration,
    ReliabilityBin,
    calibration,
    logged_calibration,
    relevance_calibration,
)
from cvx.scoring.formulas import (
    SEED_WEIGHTS,
    bayesian_score,
    beta_mean,
    censored_failure,
    evidence_posterior,
    recency_weight,
    usage_ratio,
)
from cvx.scoring.off_policy import (
    LoggedChoice,
    OffPolicyEstimate,
    logged_choices,
    off_policy_value,
    plackett_luce,
)
from cvx.scoring.scorer import DEFAULT_WEIGHTS, FEATURES, Feature, Scorer, ScoringContext
from cvx.scoring.usage import Durations, UsageCount, UsageTracker, Whose, use_posterior
from cvx.scoring.weights import LearnedWeights, Selection
from cvx.statistics import Beta, Estimate, wilson

__all__ = [
    "DEFAULT_WEIGHTS",
    "FEATURES",
    "SEED_WEIGHTS",
    "Beta",
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
    "relevance_calibration",
    "usage_ratio",
    "use_posterior",
    "wilson",
]
