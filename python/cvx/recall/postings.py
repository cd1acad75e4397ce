"""Which of the events that an asker may know of hold a word; nobody else's decide over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cvx.store import Record
from cvx.types import IntArray

MOST_HOLDERS = 2_000
"""A word that more events hold says too little, and would cost too much."""

_LOOKUP_ROWS = 75
"""Asking of one event whether it holds a word costs as much as reading so many holders."""
_FEW = 64
_MOST_LISTS = 4_000
_MOST_READ = 4_000_000

Mask = npt.NDArray[np.bool_]
_NONE = np.zeros(0, dtype=np.int64)


class Rows(Protocol):
    """From the ids of events to their rows in the columns, and back."""

    event_ids: IntArray

    def rows_of(self, events: IntArray) -> IntArray:
        """Return the rows, -1 for events that do not exist."""
        ...


@dataclass(slots=True)
class _Read:
    """The first rows that hold a word, whosever they are, up to an event."""

    rows: IntArray
    upto: int


@dataclass(slots=True)
class _Own:
    """The rows of a mask that hold a word, up to an event; None where they are too many."""

    rows: IntArray | None
    upto: int


class Postings:
    """Reads words off the full-text index and keeps what was asked for last.

    Every answer depends only on the events of a mask: whatever others store, it is the same, and
    so is what a word weighs. Reading stops after 75 holders for each event of the mask; those that
    remain are asked one by one, so that the price is bounded by what the asker has.

    Parameters
    ----------
    record : Record
        With the index.
    columns : Rows
        Of the same record.
    """

    def __init__(self, record: Record, columns: Rows) -> None:
        self._record = record
        self._columns = columns
        self._read: dict[str, _Read] = {}
        self._numbers = 0
        self._own: dict[tuple[str, object], _Own] = {}

    def forget(self) -> None:
        """Read every word anew: events changed their words, or who sees them."""
        self._read.clear()
        self._numbers = 0
        self._own.clear()

    def rows(self, word: str, mask: Mask, name: object) -> IntArray | None:
        """Return the rows of a mask that hold a word, ascending; None if above `MOST_HOLDERS`.

        Parameters
        ----------
        word : str
            Any text; of several words, all must be held.
        mask : ndarray of shape (n,), bool
            Over the rows of the columns. Until ``forget``, the mask of a name only grows at its
            end.
        name : hashable
            What the mask is remembered by.
        """
        if not len(mask):
            return _NONE
        newest = int(self._columns.event_ids[-1])
        known = self._own.get((word, name))
        if known is None:
            known = self._own[word, name] = _Own(self._among(word, mask, newest), newest)
            if len(self._own) > _MOST_LISTS:
                self._own.pop(next(iter(self._own)))
        elif known.rows is not None and known.upto < newest:
            new = self._later(mask, known.upto)
            known.rows = (
                self._among(word, mask, newest)
                if len(new) > _FEW
                else _few_enough([known.rows, self._holding(word, new)])
            )
            known.upto = newest
        return known.rows

    def _among(self, word: str, mask: Mask, newest: int) -> IntArray | None:
        read = self._read.setdefault(word, _Read(_NONE, -1))
        most = _LOOKUP_ROWS * int(np.count_nonzero(mask)) + MOST_HOLDERS
        while True:
            own = read.rows[mask[read.rows]]
            if len(own) > MOST_HOLDERS:
                return None
            if read.upto == newest:
                return own
            if len(read.rows) > most:
                rest = self._later(mask, read.upto)
                return _few_enough([own, self._holding(word, rest)])
            self._read_on(word, read, newest)

    def _read_on(self, word: str, read: _Read, newest: int) -> None:
        """Read as many holders again as are known."""
        step = max(MOST_HOLDERS + 1, len(read.rows))
        events = self._record.holders(word, after=read.upto, most=step)
        read.upto = newest if len(events) < step else int(events[-1])
        rows = self._columns.rows_of(events)
        rows = rows[rows >= 0]
        read.rows = np.concatenate([read.rows, rows])
        self._numbers += len(rows)
        while self._numbers > _MOST_READ and len(self._read) > 1:
            oldest = next(one for one in self._read if one != word)
            self._numbers -= len(self._read.pop(oldest).rows)

    def _later(self, mask: Mask, event: int) -> IntArray:
        """Return the events of a mask that come after one."""
        events = self._columns.event_ids
        first = int(np.searchsorted(events, event, side="right"))
        return events[first:][mask[first:]]

    def _holding(self, word: str, events: IntArray) -> IntArray:
        return self._columns.rows_of(self._record.holding(word, events)) if len(events) else _NONE


def _few_enough(parts: list[IntArray]) -> IntArray | None:
    joined = np.concatenate(parts)
    return joined if len(joined) <= MOST_HOLDERS else None
