"""What the signals read of a memory: the events that one recall may see, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cvx.types import Edge, IntArray

FloatArray = npt.NDArray[np.floating[Any]]


class View(Protocol):
    """The events that may come back, a row each.

    Every method costs as much as the rows it is asked for, never as much as the corpus.
    """

    @property
    def size(self) -> int:
        """Events that are visible."""

    @property
    def entities(self) -> IntArray:
        """Who, by row."""

    @property
    def timestamps(self) -> IntArray:
        """When, by row, in microseconds since 1970-01-01 UTC."""

    @property
    def sessions(self) -> IntArray:
        """Number of the session, by row."""

    @property
    def lengths(self) -> IntArray:
        """Characters of the text, by row."""

    @property
    def asks(self) -> npt.NDArray[np.bool_]:
        """Whether the text holds a question mark, by row."""

    @property
    def names(self) -> Mapping[str, Set[int]]:
        """Words, folded in case, that name entities."""

    now: int
    """When the question is asked, in microseconds since 1970-01-01 UTC."""

    def window(self, rows: IntArray, reach: int) -> IntArray:
        """Return rows with their neighbours in time within the session.

        Returns
        -------
        ndarray of shape (n, 2 * reach + 1), int64
            The row itself stands in the middle; -1 beyond the session.
        """

    def postings(self, word: str) -> IntArray | None:
        """Return the visible rows that hold a word, ascending; None where too many do."""

    def similarity(self, rows: IntArray) -> FloatArray:
        """Return the similarity of each row's vector to that of the question, NaN without one."""

    def texts(self, rows: IntArray) -> Sequence[str]:
        """Return what the rows say."""

    def titles(self, title: str) -> IntArray:
        """Return the rows that have a title, compared by its words."""

    def links(self, rows: IntArray) -> Sequence[tuple[int, int, Edge]]:
        """Return the edges that start at some rows: from row, to row, edge."""


class Candidates(Protocol):
    """The table that signals read and extend."""

    @property
    def rows(self) -> IntArray:
        """Rows of the view, each once."""

    @property
    def columns(self) -> Mapping[str, FloatArray]:
        """What is known of the rows, by name, each of shape (n,)."""
