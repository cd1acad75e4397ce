"""What is not good enough to be recalled, before anything is cut to length."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.recall.candidates import Candidates, Column
from cvx.recall.view import View

Answerable: TypeAlias = Callable[[View, Candidates], float]
"""From a recall to the probability that memory holds what the cue asks for."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Three floors, each of which a candidate must pass.

    Parameters
    ----------
    similarity : float or None, default 0.0
        A candidate no more similar to the cue than this is dropped, whatever else speaks for it.
        One without a vector, or a cue without one, passes. None switches it off.
    words_pass : bool, default True
        What holds words of the cue passes the similarity floor too.
    score : float, optional
        A candidate with a lower score is dropped.
    answerable : callable, optional
        The probability that there is an answer at all, calibrated for an embedder; below ``least``
        nothing is returned.
    least : float, default 0.5
        In [0, 1].
    """

    similarity: float | None = 0.0
    words_pass: bool = True
    score: float | None = None
    answerable: Answerable | None = None
    least: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.least <= 1.0:
            raise InvalidInputError(f"least is {self.least}: give a probability in [0, 1]")
        for name in ("similarity", "score"):
            value = getattr(self, name)
            if value is not None and math.isnan(value):
                raise InvalidInputError(f"the floor of {name} is NaN: give a number or None")

    def probability(self, view: View, table: Candidates) -> float | None:
        """Return the probability that there is an answer, None where nobody knows."""
        return None if self.answerable is None else float(self.answerable(view, table))

    def kept(self, table: Candidates, scores: Column) -> npt.NDArray[np.bool_]:
        """Return which candidates pass the floors of similarity and score, of shape (n,)."""
        kept = np.ones(len(table), dtype=bool)
        if self.similarity is not None:
            dense = table["dense"]
            kept = (dense > self.similarity) | np.isnan(dense)
            for name in ("lexical.rank", "words.rank") if self.words_pass else ():
                if name in table:
                    kept |= ~np.isnan(table[name])
        if self.score is not None:
            kept &= scores >= self.score
        return kept

    def __str__(self) -> str:
        parts = []
        if self.similarity is not None:
            parts.append(f"similarity {self.similarity:g}")
        if self.score is not None:
            parts.append(f"{self.score:g}")
        if self.answerable is not None:
            parts.append(f"answerable {self.least:.2g}")
        return ", ".join(parts) or "none"
