"""Vitality: the strength of a memory decays with time since its last use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero, check_fields, number
from cvx.scoring.formulas import Decay

_DAY = 86_400_000_000.0


@dataclass(frozen=True, slots=True)
class Vitality:
    """Exponential decay of a memory's strength since its last use.

    Because it starts from the strength that the memory was given, and not from what the last look
    left of it, looking twice changes nothing: a sweep every minute and a sweep every year agree.

    Parameters
    ----------
    half_life : float, default 30 days in microseconds
        In the unit of the timestamps: after so long without use half is left; above 0.
    per_use : float, default 0.5
        How much longer that takes for each doubling of the number of uses; at least 0.
    per_consequence : float, default 0.1
        What each event that it led to adds, up to half; at least 0.

    References
    ----------
    Ebbinghaus 1885, Ueber das Gedaechtnis: forgetting is exponential, and slower after use.

    Examples
    --------
    >>> rule = Vitality(half_life=10.0)
    >>> rule(np.array([0.8]), np.array([10.0]), np.array([0]), np.array([0])).tolist()
    [0.4]
    """

    half_life: float = 30.0 * _DAY
    per_use: float = 0.5
    per_consequence: float = 0.1

    def __post_init__(self) -> None:
        least = number(0.0)
        check_fields(self, half_life=above_zero, per_use=least, per_consequence=least)

    def __call__(
        self,
        strength: npt.NDArray[np.float64],
        unused_for: npt.NDArray[np.float64],
        uses: npt.NDArray[np.int64],
        consequences: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float64]:
        """Return the vitality of each memory.

        Parameters
        ----------
        strength : ndarray of shape (n,), float64
            How much it mattered when it was made, in [0, 1].
        unused_for : ndarray of shape (n,), float64
            Time since it was made or last used.
        uses, consequences : ndarray of shape (n,), int64
            How often it was used, and how many events it led to.

        Returns
        -------
        ndarray of shape (n,), float64
            In [0, 1].
        """
        slower = 1.0 + self.per_use * np.log2(1.0 + uses)
        left = strength * Decay.of_half_life(self.half_life)(unused_for / slower)
        explains = np.minimum(0.5, self.per_consequence * consequences)
        return np.asarray(np.minimum(1.0, left + explains), dtype=np.float64)
