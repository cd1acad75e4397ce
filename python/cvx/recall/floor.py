"""What is not good enough to be recalled, before anything is cut to length."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.cue import structured
from cvx.errors import InvalidInputError
from cvx.recall.candidates import Candidates, Column
from cvx.recall.view import View

Answerable: TypeAlias = Callable[[View, Candidates], float | None]
"""From a recall to the probability that memory holds what the cue asks for; None: not known."""

_TENTH = 10
_WORDS = ("lexical.rank", "words.rank")
_RELEVANCE = {"answerable": 1 / 5, "score": 11.0, "lead": 15.0, "intercept": -6.7}
_OF_FEW = {"answerable": 1 / 2, "behind": 12.0}
"""Log-odds that a hit is wanted: rounded from a fit to three conversations; and, set by reasoning,
in a memory of few events, where scores do not stand out from others."""
_SURE = 5.0
_FULL = 300


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
    relevance : float, optional
        In [0, 1]: a candidate that is less likely to be wanted is dropped.
    """

    similarity: float | None = 0.0
    words_pass: bool = True
    score: float | None = None
    answerable: Answerable | None = None
    least: float = 0.5
    relevance: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.least <= 1.0:
            raise InvalidInputError(f"least is {self.least}: give a probability in [0, 1]")
        for name in ("similarity", "score"):
            value = getattr(self, name)
            if value is not None and math.isnan(value):
                raise InvalidInputError(f"the floor of {name} is NaN: give a number or None")

    def probability(self, view: View, table: Candidates) -> float | None:
        """Return the probability that there is an answer, None where nobody knows.

        It is known of questions: neither of a cue that describes a state, nor of one without words.
        """
        known = len(table) and view.question.words and not structured(view.cue)
        if self.answerable is None or not known:
            return None
        return self.answerable(view, table)

    def kept(
        self, table: Candidates, scores: Column, relevance: Column | None
    ) -> npt.NDArray[np.bool_]:
        """Return which candidates pass the floors of each for itself, of shape (n,).

        Raises
        ------
        InvalidInputError
            There is a floor of relevance, and the pipeline does not know any.
        """
        kept = np.ones(len(table), dtype=bool)
        if self.similarity is not None:
            dense = table["dense"]
            kept = (dense > self.similarity) | np.isnan(dense)
            # A cause need not look like what it led to.
            for name in ("causes.rank", *(_WORDS if self.words_pass else ())):
                if name in table:
                    kept |= ~np.isnan(table[name])
        if self.score is not None:
            kept &= scores >= self.score
        if self.relevance is not None:
            if relevance is None:
                raise InvalidInputError(
                    f"min_relevance is {self.relevance}, but this pipeline knows no relevance: "
                    "give a floor of its score, or recall with the default"
                )
            kept &= relevance >= self.relevance
        return kept

    def __str__(self) -> str:
        parts = []
        if self.similarity is not None:
            parts.append(f"similarity {self.similarity:g}")
        if self.score is not None:
            parts.append(f"{self.score:g}")
        if self.answerable is not None:
            parts.append(f"answerable {self.least:.2g}")
        if self.relevance is not None:
            parts.append(f"relevance {self.relevance:g}")
        return ", ".join(parts) or "none"


def fullness(size: int) -> float:
    """Return how far a memory of so many events is one in which words that matter occur, to 1."""
    return min(math.log1p(size) / math.log1p(_FULL), 1.0)


def relevance_of(
    table: Candidates, scores: Column, answerable: float | None, size: int
) -> Column | None:
    """Return the chance of each candidate that whoever asked wants it, None where none is known.

    It rises with the chance that there is an answer, with the score, and with the lead over the
    candidate at the eleventh place.
    """
    if "coverage_store" not in table or not len(table):
        return None
    chance = 0.5 if answerable is None else min(max(answerable, 1e-9), 1.0 - 1e-9)
    known = min(max(math.log(chance / (1.0 - chance)), -_SURE), _SURE)
    ordered = np.sort(scores)[::-1]
    of_many = (
        _RELEVANCE["answerable"] * known
        + _RELEVANCE["score"] * scores
        + _RELEVANCE["lead"] * (scores - ordered[min(_TENTH, len(ordered) - 1)])
        + _RELEVANCE["intercept"]
    )
    of_few = _OF_FEW["answerable"] * known + _OF_FEW["behind"] * (scores - ordered[0])
    part = fullness(size)
    return np.asarray(0.5 * (1.0 + np.tanh((part * of_many + (1.0 - part) * of_few) / 2.0)))
