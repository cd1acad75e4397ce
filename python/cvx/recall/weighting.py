"""From the columns of a recall to its scores: weights, how they join, and trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cvx.recall.candidates import Candidates, Column
from cvx.recall.given import BUILT_IN
from cvx.scoring import LearnedWeights
from cvx.scoring.columns import Mode, Scored, check_weights, score_columns


@dataclass(frozen=True, slots=True)
class Weighting:
    """What each column weighs.

    Parameters
    ----------
    weights : mapping of str to float
        By column of the fusion; finite, negative ones are evidence against.
    mode : {"sum", "log-product"}, default "sum"
        As for `score_columns`.
    bias : float, default 0.0
        Added to every score.
    trust : bool, default True
        Whether the trust in an event's source enters: in a sum it multiplies a score above 0 and
        its shares, and 2 - trust one below; in a product it is one more factor.

    Raises
    ------
    InvalidInputError
        No weights, or one that is not finite.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    mode: Mode = "sum"
    bias: float = 0.0
    trust: bool = True

    def __post_init__(self) -> None:
        check_weights(self.weights)

    @property
    def names(self) -> frozenset[str]:
        """The columns that weigh anything."""
        return frozenset(name for name, weight in self.weights.items() if weight)

    @classmethod
    def mean_of(cls, weights: Mapping[str, float]) -> Weighting:
        """Return weights divided by the sum of those above 0: scores stay near [0, 1]."""
        check_weights(weights)
        whole = sum(weight for weight in weights.values() if weight > 0) or 1.0
        return cls({name: weight / whole for name, weight in weights.items()})

    @classmethod
    def learned(cls, weights: LearnedWeights) -> Weighting:
        """Return the weights of a logistic regression: the score is the log-odds of success."""
        own = weights.weights()
        away = sum(own[name] * mean for name, mean in zip(weights.names, weights.mean, strict=True))
        return cls(own, bias=weights.intercept - away)

    def with_weights(self, weights: Mapping[str, float]) -> Weighting:
        """Return the same with other weights."""
        return replace(self, weights=dict(weights))

    def score(self, columns: Mapping[str, Column], table: Candidates) -> Scored:
        """Return the scores of a table whose fusion gave these columns.

        Raises
        ------
        UnknownError
            A weight for a column that there is not.
        """
        n = len(table)
        known = dict(columns)
        for name in BUILT_IN:
            # A source that was not asked says nothing; any other column must be there.
            known.setdefault(name, np.full(n, np.nan))
        return score_columns(
            known,
            self.weights,
            mode=self.mode,
            bias=self.bias,
            trust=table["trust"] if self.trust else None,
        )
