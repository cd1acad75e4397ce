"""Sampling the order of a recall, with the probabilities that off-policy evaluation needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvx.errors import InvalidInputError
from cvx.types import Drawn, Hit


@dataclass(frozen=True, slots=True)
class PlackettLuce:
    """Draws hits one after another, each with a chance of softmax(score / temperature).

    Parameters
    ----------
    seed : int
        The same seed, decision and hits give the same order.
    temperature : float, default 0.1
        Above 0; the smaller, the nearer to the order of the scores.

    Raises
    ------
    InvalidInputError
        A temperature of 0 or below.

    References
    ----------
    Plackett 1975, The analysis of permutations.
    """

    seed: int
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InvalidInputError(
                f"temperature is {self.temperature}: give one above 0, or do not sample"
            )

    def draw(
        self, hits: Sequence[Hit], k: int, decision: int = 0
    ) -> tuple[list[Hit], tuple[float, ...]]:
        """Return k hits in a sampled order, and the probability of each at its place.

        Parameters
        ----------
        hits : sequence of Hit
            What is drawn from.
        k : int
            How many.
        decision : int, default 0
            The number of the decision. It is joined to the seed, so that no two decisions of a
            record are drawn with the same random numbers.

        Returns
        -------
        drawn : list of Hit
        propensities : tuple of float
            Of drawing this hit from what was left at its place, in (0, 1].
        """
        random = np.random.default_rng([self.seed, decision])
        left = list(range(len(hits)))
        worth = np.array([hit.score for hit in hits]) / self.temperature
        drawn, chances = list[Hit](), list[float]()
        while left and len(drawn) < k:
            some = worth[left]
            weights = np.exp(some - some.max())
            odds = weights / weights.sum()
            at = int(random.choice(len(left), p=odds))
            chances.append(float(odds[at]))
            drawn.append(hits[left.pop(at)])
        return drawn, tuple(chances)


def drawn_from(pool: Sequence[Hit], drawn: Sequence[Hit], chances: Sequence[float]) -> Drawn | None:
    """Return what is to be logged of a sampled order, None where nothing was drawn.

    Parameters
    ----------
    pool : sequence of Hit
        What was drawn from; all have the same factors.
    drawn, chances
        As ``PlackettLuce.draw`` returned them.
    """
    if not drawn:
        return None
    return Drawn(
        tuple(factor.name for factor in pool[0].factors),
        tuple(tuple(factor.value for factor in hit.factors) for hit in pool),
        [hit.node for hit in pool].index(drawn[0].node),
        chances[0],
    )
