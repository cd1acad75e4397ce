"""Formulas of the source papers: recency decay, Bayesian score, posterior means, importance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from cvx.arguments import a_share, above_zero, check_fields, checked, number
from cvx.errors import InvalidInputError
from cvx.statistics import Beta
from cvx.types import Clock

HALF_LIFE_S = 7 * 86400
HALF_LIFE_TURNS = 20
STREAM_DECAY = 0.02

_PER_SECOND: dict[str, float] = {"microseconds": 1e6, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class Decay:
    """Exponential decay: exp(-rate * age), 1 for what lies in the future.

    Parameters
    ----------
    rate : float
        Per unit of age, at least 0.

    Raises
    ------
    InvalidInputError
        A rate below 0 or not finite.

    Examples
    --------
    >>> Decay.of_half_life(10.0)(np.array([0.0, 10.0, 20.0, -5.0])).tolist()
    [1.0, 0.5, 0.25, 1.0]
    """

    rate: float

    def __post_init__(self) -> None:
        check_fields(self, rate=number(0.0))

    @classmethod
    def of_half_life(cls, half_life: float) -> Self:
        """Return the decay that halves every ``half_life`` units; above 0."""
        return cls(math.log(2.0) / above_zero("half_life", half_life))

    @classmethod
    def of_half_life_s(cls, half_life_s: float, clock: Clock) -> Self:
        """Return the decay that halves every ``half_life_s`` seconds on a clock that counts time.

        Raises
        ------
        InvalidInputError
            The clock counts turns or ticks, which are no time.
        """
        if clock not in _PER_SECOND:
            raise InvalidInputError(
                f"a {clock} is no number of seconds: give half_life in {clock}s to of_half_life"
            )
        return cls.of_half_life(half_life_s * _PER_SECOND[clock])

    def __call__(self, age: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the weight at each age, of the same shape, in [0, 1]."""
        return self.slowed(0.0, age)

    def slowed(self, importance: npt.ArrayLike, age: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the weight where importance slows decay: exp(-rate * (1 - importance) * age).

        What is of importance 1 is never forgotten.
        """
        past = np.maximum(np.asarray(age, dtype=np.float64), 0.0)
        slow = 1.0 - np.clip(np.asarray(importance, dtype=np.float64), 0.0, 1.0)
        return np.asarray(np.exp(-self.rate * slow * past))


def recency_weight(age: float, rate: float = 0.01) -> float:
    """Return exp(-rate * age).

    Parameters
    ----------
    age : float
        Now minus the time of the event, in the store's unit.
    rate : float, default 0.01
        Per unit of time.
    """
    return math.exp(-rate * age)


SEED_WEIGHTS = (1.0, 0.3, 0.5, 0.2, 0.4)
NEUTRAL_REWARD = 0.5
COMPOSITE_WEIGHTS = (0.6, 0.25, 0.15)


def bayesian_score(
    similarity: float,
    recency: float,
    reward: float | None,
    region_match: bool | float,
    usage_success: float,
    weights: tuple[float, float, float, float, float] = SEED_WEIGHTS,
) -> float:
    """Return RFC-013's weighted sum for the relevance of an episode.

    Parameters
    ----------
    similarity : float
        Higher is nearer; exp(-distance) in RFC-013's table.
    recency : float
        The age: now minus the time of the event. It enters as exp(-0.01 * recency).
    reward : float or None
        Outcome in [0, 1]; an unknown one counts as 0.5, which favours neither side.
    region_match : bool
        Whether it lies in the region of the query.
    usage_success : float
        How often it helped, in [0, 1].
    weights : tuple of 5 floats, default (1.0, 0.3, 0.5, 0.2, 0.4)
        In the order of the arguments.

    References
    ----------
    RFC-013, part C.

    Examples
    --------
    >>> bayesian_score(0.9, 0, 1.0, True, 0.5)
    2.1
    """
    w = weights
    return (
        w[0] * similarity
        + w[1] * math.exp(-0.01 * recency)
        + w[2] * (NEUTRAL_REWARD if reward is None else reward)
        + w[3] * float(region_match)
        + w[4] * usage_success
    )


def usage_ratio(wins: float, uses: float) -> float:
    """Return wins / (wins + uses) as RFC-013 has it, 0 for what was never used.

    Something that won each time it was used gets 1/2, not 1: use ``beta_mean`` for a rate.
    """
    total = wins + uses
    return wins / total if total else 0.0


def beta_mean(wins: float, uses: float, strength: float, mean: float = 0.5) -> float:
    """Return the posterior mean of a rate: (wins + strength * mean) / (uses + strength).

    The prior is Beta(strength * mean, strength * (1 - mean)).

    Parameters
    ----------
    wins, uses : float
        Successes, and trials.
    strength : float
        How many trials the prior is worth; above 0.
    mean : float, default 0.5
        What the prior expects.

    Examples
    --------
    >>> round(beta_mean(1, 1, strength=0.3), 4)
    0.8846
    """
    return (wins + strength * mean) / (uses + strength)


def censored_failure(success: float, exposure: float) -> float:
    """Return the chance that a trial which was cut off before it ended would have failed.

    By Bayes' rule, (1 - p) / (1 - p * F): of what would fail nothing is seen by then, of what
    would succeed the share 1 - F. This is the expectation step of a cure model, and to count it as
    that much of a failure leaves the mean of a Beta posterior what it is exactly.

    Parameters
    ----------
    success : float
        p, the chance that a trial succeeds in the end, in [0, 1].
    exposure : float
        F, the chance that one which succeeds has done so by then, in [0, 1]: at 1 the failure is
        certain, at 0 nothing was learned.

    References
    ----------
    Boag, "Maximum likelihood estimates of the proportion of patients cured by cancer therapy",
    JRSS B 11, 1949. Smith and Makov, "A quasi-Bayes sequential procedure for mixtures", JRSS B 40,
    1978.

    Examples
    --------
    >>> [round(censored_failure(0.5, exposure), 2) for exposure in (0.0, 0.5, 1.0)]
    [0.5, 0.67, 1.0]
    >>> round(censored_failure(0.98, 0.7), 2)    # what is known to work is not blamed
    0.06
    """
    unseen = 1 - success * exposure
    return (1 - success) / unseen if unseen else 1.0


def evidence_posterior(
    rewards: npt.ArrayLike,
    similarities: npt.ArrayLike,
    *,
    mean: float = 0.5,
    strength: float = 1.0,
    exponent: float = 1.0,
) -> Beta:
    """Return what the outcomes of similar things say about the chance of success of one more.

    Each outcome counts as ``similarity ** exponent`` of a trial of the thing itself, a negative
    similarity as none: Bayes' rule for a Beta prior under tempered likelihoods. Unlike
    ``bayesian_score`` it is a probability, and it knows how little it rests on.

    Parameters
    ----------
    rewards : array of shape (n,)
        Outcomes in [0, 1]; NaN is not known, and left out.
    similarities : array of shape (n,)
        To the thing asked about, 1 for the same.
    mean : float, default 0.5
        What is expected without evidence, strictly between 0 and 1: the base rate.
    strength : float, default 1.0
        How many trials that expectation is worth; above 0.
    exponent : float, default 1.0
        At least 0. Higher listens to the most similar only; 0 to all alike.

    Raises
    ------
    InvalidInputError
        Not one similarity a reward.
    InvalidInputError
        A reward outside [0, 1], a similarity that is not finite, a parameter outside its bound.

    References
    ----------
    Ibrahim & Chen 2000, Power prior distributions for regression models.

    Examples
    --------
    >>> posterior = evidence_posterior([1, 1, 0], [1.0, 0.5, 0.25], mean=0.4, strength=2)
    >>> posterior
    Beta(alpha=2.3, beta=1.45)
    """
    r = np.asarray(rewards, dtype=np.float64)
    s = np.asarray(similarities, dtype=np.float64)
    if r.ndim != 1 or r.shape != s.shape:
        raise InvalidInputError(
            f"rewards have shape {r.shape} and similarities {s.shape}: give (n,) and (n,)"
        )
    if not 0.0 < mean < 1.0 or not strength > 0.0 or not exponent >= 0.0:
        raise InvalidInputError(
            f"mean {mean}, strength {strength}, exponent {exponent}: "
            "give 0 < mean < 1, strength > 0, exponent >= 0"
        )
    known = ~np.isnan(r)
    r, s = r[known], s[known]
    if not ((r >= 0) & (r <= 1)).all() or not np.isfinite(s).all():
        raise InvalidInputError(
            "a reward lies outside [0, 1], or a similarity is not finite: scale or leave it out"
        )
    weight = np.where(s > 0, np.maximum(s, 0.0) ** exponent, 0.0)
    wins = float(weight @ r)
    losses = float(weight.sum()) - wins
    return Beta(wins + strength * mean, max(losses, 0.0) + strength * (1.0 - mean))


@checked(goal_relevance=a_share, emotional_impact=a_share, novelty=a_share)
def importance(goal_relevance: float, emotional_impact: float, novelty: float) -> float:
    """Return how much something is worth remembering, in [0, 1].

    0.4 * goal relevance + 0.3 * emotional impact + 0.3 * novelty.

    Parameters
    ----------
    goal_relevance, emotional_impact, novelty : float
        In [0, 1].

    Raises
    ------
    InvalidInputError
        One of them outside its bounds.

    Examples
    --------
    >>> importance(1.0, 0.5, 0.0)
    0.55
    """
    return 0.4 * goal_relevance + 0.3 * emotional_impact + 0.3 * novelty
