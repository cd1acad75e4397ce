"""How fast what was used long ago loses weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero
from cvx.errors import InvalidInputError

Clock: TypeAlias = Literal["microseconds", "seconds", "turn", "tick"]
"""What timestamps count. The default of a memory is microseconds since 1970-01-01 UTC."""

HALF_LIFE_S = 7 * 86400
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
        if not 0.0 <= self.rate < math.inf:
            raise InvalidInputError(f"the rate of decay is {self.rate}: give 0 or more")

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
        past = np.maximum(np.asarray(age, dtype=np.float64), 0.0)
        return np.asarray(np.exp(-self.rate * past))

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
