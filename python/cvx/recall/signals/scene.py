"""A question with its candidates and their neighbours: what every signal looks at.

The neighbours of all candidates are joined into one list of rows, each once, so that their
similarities and words are looked up once for all signals. A window of turns is then a sum over
places in that list; the place behind its end stands for "no neighbour" and holds zeros.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvx.recall.signals.question import Question
from cvx.recall.signals.view import Candidates, FloatArray, View
from cvx.recall.words import holders_of
from cvx.types import IntArray

REACH = 2
"""Neighbours on either side that windows may take in."""


class Scene:
    """What the signals share during one recall.

    Parameters
    ----------
    question : Question
        What is asked.
    candidates : Candidates
        Rows that may answer.
    view : View
        What is visible.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        The candidates.
    near : ndarray of shape (e,), int64
        The candidates and their neighbours, ascending.
    places : ndarray of shape (n, 5), int64
        Where in ``near`` a candidate (in the middle) and its neighbours stand; ``e`` for none.
    """

    def __init__(self, question: Question, candidates: Candidates, view: View) -> None:
        self.question, self.view = question, view
        self.rows = candidates.rows
        window = view.window(self.rows, REACH)
        found, places = np.unique(window, return_inverse=True)
        places = places.reshape(window.shape)
        missing = int(found.size > 0 and found[0] < 0)
        self.near: IntArray = found[missing:]
        self.places: IntArray = np.where(window < 0, self.near.size, places - missing)

    @property
    def own(self) -> IntArray:
        """Places of the candidates themselves."""
        return self.places[:, REACH]

    @cached_property
    def similarity(self) -> npt.NDArray[np.float64]:
        """Similarity of each place to the question, shape (e + 1,); 0 without a vector."""
        found = np.nan_to_num(np.asarray(self.view.similarity(self.near), dtype=np.float64))
        return np.append(found, 0.0)

    @cached_property
    def asks(self) -> npt.NDArray[np.bool_]:
        """Whether each place asks something, shape (e + 1,)."""
        return np.append(self.view.asks[self.near], False)

    @cached_property
    def lengths(self) -> npt.NDArray[np.float64]:
        """Characters of each place, shape (e + 1,)."""
        return np.append(self.view.lengths[self.near].astype(np.float64), 0.0)

    @cached_property
    def _looked_up(self) -> list[tuple[IntArray, float]]:
        """Rows that hold each word of the question, with the word's idf."""
        found = []
        for word in self.question.words:
            rows = holders_of(word, self.view)
            if rows is not None:
                held = rows.size
                idf = np.log1p((self.view.size - held + 0.5) / (held + 0.5))
                found.append((rows, float(idf)))
        return found

    @cached_property
    def idf(self) -> npt.NDArray[np.float64]:
        """How much each word of the question says, shape (t,).

        ln(1 + (N - h + 1/2) / (h + 1/2)) for a word that h of N events hold. Words that too many
        events hold to be looked up are left out.
        """
        return np.array([idf for _, idf in self._looked_up])

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether any event holds the word, shape (t,)."""
        return np.array([rows.size > 0 for rows, _ in self._looked_up], dtype=np.bool_)

    @cached_property
    def holds(self) -> npt.NDArray[np.float64]:
        """Whether each place holds each word, shape (e + 1, t), 0 or 1."""
        held = np.zeros((self.near.size + 1, len(self._looked_up)))
        for column, (rows, _) in enumerate(self._looked_up):
            held[:-1, column] = among(self.near, rows)
        return held


def among(rows: IntArray, ascending: IntArray) -> npt.NDArray[np.bool_]:
    """Return which rows are in a list that is sorted.

    Examples
    --------
    >>> among(np.array([1, 4, 9]), np.array([4, 5])).tolist()
    [False, True, False]
    """
    if not ascending.size:
        return np.zeros(rows.shape, dtype=np.bool_)
    at = np.minimum(np.searchsorted(ascending, rows), ascending.size - 1)
    found: npt.NDArray[np.bool_] = ascending[at] == rows
    return found


def stretched(values: FloatArray) -> npt.NDArray[np.float64]:
    """Scale to [0, 1], from the lowest to the highest; zeros where all are equal.

    Examples
    --------
    >>> stretched(np.array([2.0, 4.0, 3.0])).tolist()
    [0.0, 1.0, 0.5]
    """
    out = np.asarray(values, dtype=np.float64)
    if not out.size or out.max() <= out.min():
        return np.zeros(out.shape)
    scaled: npt.NDArray[np.float64] = (out - out.min()) / (out.max() - out.min())
    return scaled
