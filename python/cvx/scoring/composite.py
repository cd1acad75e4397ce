"""The composite scores of the source documents, exactly."""

from __future__ import annotations

from cvx.errors import InvalidParameterError

HALF_LIFE_S = 7 * 86400
COMPOSITE_WEIGHTS = (0.6, 0.25, 0.15)
STREAM_DECAY = 0.02


def half_life_recency(age: float, half_life: float = HALF_LIFE_S) -> float:
    """Return 0.5 ** (age / half_life), 1 for a time in the future.

    Parameters
    ----------
    age : float
        Now minus the last use.
    half_life : float, default 7 days in seconds
        In the unit of the age.
    """
    return float(0.5 ** (max(age, 0.0) / half_life))


def composite_score(
    similarity: float,
    age: float,
    salience: float,
    weights: tuple[float, float, float] = COMPOSITE_WEIGHTS,
    half_life: float = HALF_LIFE_S,
) -> float:
    """Return w1 * similarity + w2 * recency + w3 * salience.

    Parameters
    ----------
    similarity : float
        Cosine of cue and memory.
    age : float
        Since it was last used, in seconds.
    salience : float
        In [0, 1], set at write.
    weights : tuple of 3 floats, default (0.6, 0.25, 0.15)
        In that order.
    half_life : float, default 7 days in seconds

    Examples
    --------
    >>> composite_score(0.8, age=7 * 86400, salience=1.0)
    0.755
    """
    a, b, c = weights
    return a * similarity + b * half_life_recency(age, half_life) + c * salience


def importance(goal_relevance: float, emotional_impact: float, novelty: float) -> float:
    """Return how much something is worth remembering, in [0, 1].

    0.4 * goal relevance + 0.3 * emotional impact + 0.3 * novelty.

    Parameters
    ----------
    goal_relevance, emotional_impact, novelty : float
        In [0, 1].

    Raises
    ------
    InvalidParameterError
        One of them outside its bounds.

    Examples
    --------
    >>> importance(1.0, 0.5, 0.0)
    0.55
    """
    for name, value in (
        ("goal_relevance", goal_relevance),
        ("emotional_impact", emotional_impact),
        ("novelty", novelty),
    ):
        if not 0.0 <= value <= 1.0:
            raise InvalidParameterError(f"{name} is {value}: give one in [0, 1]")
    return 0.4 * goal_relevance + 0.3 * emotional_impact + 0.3 * novelty
