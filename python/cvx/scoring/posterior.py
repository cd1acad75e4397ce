"""The formulas of RFC-013, part C, and the posterior mean that improves on one of them."""

from __future__ import annotations

import math

SEED_WEIGHTS = (1.0, 0.3, 0.5, 0.2, 0.4)
NEUTRAL_REWARD = 0.5


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
