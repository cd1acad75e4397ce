"""What is believed of a chance, or of where an action leads, after counting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cvx.errors import InvalidParameterError


class Beta(NamedTuple):
    """The belief about a chance of success.

    Attributes
    ----------
    alpha, beta : float
        Successes and failures, those that the prior is worth included; above 0.

    Examples
    --------
    >>> belief = Beta(3.0, 1.0)
    >>> belief.mean
    0.75
    >>> [round(end, 3) for end in belief.interval()]
    [0.292, 0.992]
    """

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The chance to expect, in [0, 1]."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, share: float = 0.95) -> tuple[float, float]:
        """Return the ends of the central interval that holds this share of the belief.

        Raises
        ------
        InvalidParameterError
            A share outside (0, 1).
        """
        if not 0.0 < share < 1.0:
            raise InvalidParameterError(f"share is {share}: give one between 0 and 1")
        from scipy.special import betaincinv  # type: ignore[import-untyped]

        tail = (1.0 - share) / 2.0
        low, high = betaincinv(self.alpha, self.beta, [tail, 1.0 - tail])
        return float(low), float(high)

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a chance that the belief allows."""
        return float(rng.beta(self.alpha, self.beta))


class Dirichlet(NamedTuple):
    """The belief about where an action leads.

    Attributes
    ----------
    alphas : mapping of int to float
        By region or end: how often it was reached, with what the prior is worth.

    Examples
    --------
    >>> belief = Dirichlet({4: 3.0, 9: 1.0})
    >>> belief.mean(4), belief.mean(5)
    (0.75, 0.0)
    """

    alphas: Mapping[int, float]

    def mean(self, there: int) -> float:
        """Return the chance to expect of one place; 0 for a place that is not in it."""
        total = sum(self.alphas.values())
        return self.alphas.get(there, 0.0) / total if total else 0.0

    def sample(self, rng: np.random.Generator) -> dict[int, float]:
        """Draw chances that the belief allows."""
        places = list(self.alphas)
        drawn = rng.dirichlet([self.alphas[place] for place in places])
        return dict(zip(places, drawn.tolist(), strict=True))
