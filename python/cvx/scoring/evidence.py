"""The chance of success as a posterior: what similar things came to, and how sure that makes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidParameterError, LengthMismatchError


class SuccessPosterior(NamedTuple):
    """A Beta distribution over the chance of success.

    Attributes
    ----------
    a, b : float
        Its parameters: pseudo-counts of success and failure, the prior's included; above 0.

    Examples
    --------
    >>> known = SuccessPosterior(9.0, 3.0)
    >>> known.mean
    0.75
    >>> [round(bound, 2) for bound in known.interval()]
    [0.48, 0.94]
    """

    a: float
    b: float

    @property
    def mean(self) -> float:
        """The chance of success to expect."""
        return self.a / (self.a + self.b)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the central interval that holds the chance with this probability.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise InvalidParameterError(f"level is {level}: give one between 0 and 1")
        # scikit-learn stands on scipy; importing it is left to those who ask.
        from scipy.special import betaincinv  # type: ignore[import-untyped]

        tail = (1.0 - level) / 2.0
        low, high = betaincinv(self.a, self.b, [tail, 1.0 - tail]).tolist()
        return low, high


def evidence_posterior(
    rewards: npt.ArrayLike,
    similarities: npt.ArrayLike,
    *,
    mean: float = 0.5,
    strength: float = 1.0,
    exponent: float = 1.0,
) -> SuccessPosterior:
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
    LengthMismatchError
        Not one similarity a reward.
    InvalidParameterError
        A reward outside [0, 1], a similarity that is not finite, a parameter outside its bound.

    References
    ----------
    Ibrahim & Chen 2000, Power prior distributions for regression models.

    Examples
    --------
    >>> posterior = evidence_posterior([1, 1, 0], [1.0, 0.5, 0.25], mean=0.4, strength=2)
    >>> posterior
    SuccessPosterior(a=2.3, b=1.45)
    """
    r = np.asarray(rewards, dtype=np.float64)
    s = np.asarray(similarities, dtype=np.float64)
    if r.ndim != 1 or r.shape != s.shape:
        raise LengthMismatchError(
            f"rewards have shape {r.shape} and similarities {s.shape}: give (n,) and (n,)"
        )
    if not 0.0 < mean < 1.0 or not strength > 0.0 or not exponent >= 0.0:
        raise InvalidParameterError(
            f"mean {mean}, strength {strength}, exponent {exponent}: "
            "give 0 < mean < 1, strength > 0, exponent >= 0"
        )
    known = ~np.isnan(r)
    r, s = r[known], s[known]
    if not ((r >= 0) & (r <= 1)).all() or not np.isfinite(s).all():
        raise InvalidParameterError(
            "a reward lies outside [0, 1], or a similarity is not finite: scale or leave it out"
        )
    weight = np.where(s > 0, np.maximum(s, 0.0) ** exponent, 0.0)
    wins = float(weight @ r)
    losses = float(weight.sum()) - wins
    return SuccessPosterior(wins + strength * mean, max(losses, 0.0) + strength * (1.0 - mean))
