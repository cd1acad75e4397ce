"""Indexes over the corpus: sessions in time order, entity names and titles, word postings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.store import Record
from cvx.store.learned_state import MappedRows
from cvx.types import IntArray, Mask

if TYPE_CHECKING:
    from cvx.recall.corpus import Corpus


class GrowingColumn:
    """Rows in a room that is made half as large again whenever it is full.

    Parameters
    ----------
    kind : dtype
        Of the rows.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        All of them; stays as long as it is when rows are added, so that whoever holds it is not
        disturbed.

    Examples
    --------
    >>> column = GrowingColumn(np.int64)
    >>> before = column.extend([4, 5])
    >>> column.extend([6]).tolist(), before.tolist()
    ([4, 5, 6], [4, 5])
    """

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._room: npt.NDArray[Any] = np.zeros(0, dtype=kind)
        self.rows = self._room

    def hold(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Hold these rows instead of its own, with the room that they have; returns them."""
        room = getattr(rows, "room", rows) if isinstance(rows, MappedRows) else rows
        self._room = room.view(self._room.dtype)
        self.rows = self._room[: len(rows)]
        return self.rows

    def extend(self, new: npt.ArrayLike) -> npt.NDArray[Any]:
        """Put rows behind the last one; returns all of them."""
        added = np.asarray(new, dtype=self._room.dtype)
        size = len(self.rows)
        end = size + len(added)
        if end > len(self._room):
            room = np.empty(max(end, size + size // 2), dtype=self._room.dtype)
            room[:size] = self.rows
            self._room = room
        self._room[size:end] = added
        self.rows = self._room[:end]
        return self.rows


def _digest(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class KeyTable:
    """Numbers by key, of which those that were saved are looked up where they lie in their file.

    Of a saved key there is a digest of 128 bits, in ascending order: a memory that was just opened
    reads a few pages of it, however many keys there are.

    Examples
    --------
    >>> first, both = KeyTable(), KeyTable()
    >>> first.add("a page", 7)
    >>> both.restore(first.saved())
    >>> both.add("a page", 9)
    >>> both.numbers("a page"), both.numbers("another")
    ([7, 9], [])
    """

    def __init__(self) -> None:
        self._new: dict[str, list[int]] = {}
        # In the order of the saved keys: both halves of each digest, and its number.
        nothing = np.zeros(0, dtype=np.uint64)
        self._halves: tuple[npt.NDArray[Any], npt.NDArray[Any]] = (nothing, nothing)
        self._numbers: npt.NDArray[Any] = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._new) + len(self._numbers)

    def add(self, key: str, number: int) -> None:
        """Put a number behind those that a key has."""
        self._new.setdefault(key, []).append(number)

    def numbers(self, key: str) -> list[int]:
        """Return the numbers of a key: the saved ones, ascending, and those that were added."""
        new = self._new.get(key, [])
        if not len(self._numbers):
            return new
        high, low = np.frombuffer(_digest(key), dtype="<u8")
        first, last = (self._halves[0].searchsorted(high, side) for side in ("left", "right"))
        found = self._numbers[first:last][self._halves[1][first:last] == low]
        return [*found.tolist(), *new]

    def saved(self) -> list[npt.NDArray[Any]]:
        """Return the keys as ``cvx.store.learned_state`` keeps them."""
        digests = np.frombuffer(b"".join(map(_digest, self._new)), dtype="<u8").reshape(-1, 2)
        new = [*self._new.values()]
        halves = np.repeat(digests, [len(some) for some in new], axis=0).T
        added = np.array([number for some in new for number in some], dtype=np.int64)
        high, low = (np.concatenate(both) for both in zip(self._halves, halves, strict=True))
        numbers = np.concatenate([self._numbers, added])
        order = np.lexsort((numbers, low, high))
        return [high[order], low[order], numbers[order]]

    def restore(self, told: Sequence[npt.NDArray[Any]]) -> None:
        """Know what was saved."""
        high, low, self._numbers = (column.view(np.ndarray) for column in told)
        self._halves = (high, low)


_FEW_ROWS = 256
_NEVER = np.iinfo(np.int64).max


class Timelines:
    """Puts rows into sessions and keeps each session in order of time.

    A session is what the metadata calls one; else an episode; else a run of lines that somebody
    spoke, of one namespace and visibility, in which no two that follow each other are further apart
    than ``gap``. What nobody spoke, such as facts noted one after the other, is alone in its own.
    No session spans two namespaces or visibilities.

    Parameters
    ----------
    gap : int
        In the unit of the timestamps.

    Attributes
    ----------
    sessions, before, after : ndarray of shape (n,), int64
        By row: the code of its session, the row before it and the row after it in time (-1 for
        none).
    """

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._streams = KeyTable()
        # By stream: how far apart its rows may lie, and its last row.
        self._gaps, self._tails = GrowingColumn(np.int64), GrowingColumn(np.int64)
        self._new_gaps: list[int] = []
        self._next_session = 0
        self._waits = False
        self._stream_of, *self._columns = (GrowingColumn(np.int64) for _ in range(4))
        self.sessions, self.before, self.after = (column.rows for column in self._columns)

    def extend(
        self,
        spaces: IntArray,
        sessions: Sequence[object],
        spoken: Sequence[bool],
        episodes: IntArray,
        timestamps: IntArray,
        *,
        later: bool = False,
    ) -> None:
        """Take in rows at the end.

        Parameters
        ----------
        spaces, episodes : ndarray of shape (m,), int64
            Of the new rows; an episode of -1 is none.
        sessions : sequence of m objects
            What their metadata says, or None.
        spoken : sequence of m bools
            Whether it names a speaker.
        timestamps : ndarray of shape (n,), int64
            Of all rows, the new ones last.
        later : bool, default False
            Whether more come right after them, and all are put into order with the last.
        """
        first = len(self._stream_of.rows)
        said = [None if session is None else str(session) for session in sessions]
        rows = [*zip(spaces.tolist(), said, spoken, episodes.tolist(), strict=True)]
        known = {row: self._stream(*row) for row in dict.fromkeys(rows)}
        streams = [known[row] for row in rows]
        self._gaps.extend(self._new_gaps)
        self._tails.extend([-1] * len(self._new_gaps))
        self._new_gaps.clear()
        self._stream_of.extend(streams)
        nothing = np.full(len(streams), -1, dtype=np.int64)
        self.sessions, self.before, self.after = (
            column.extend(nothing) for column in self._columns
        )
        waited, self._waits = self._waits, later
        if later:
            return
        in_order = (
            not waited
            and len(streams) <= _FEW_ROWS
            and all(
                self._append(row, stream, timestamps)
                for row, stream in enumerate(streams, start=first)
            )
        )
        if not in_order:
            self._sort(timestamps)

    def saved(self) -> dict[str, Any]:
        """Return all that it knows, as ``cvx.store.learned_state`` keeps it."""
        return {
            "columns": [column.rows for column in (self._stream_of, *self._columns)],
            "streams": self._streams.saved(),
            "gaps": self._gaps.rows,
            "tails": self._tails.rows,
            "next": self._next_session,
        }

    def restore(self, told: Mapping[str, Any]) -> None:
        """Know what was saved."""
        for column, rows in zip((self._stream_of, *self._columns), told["columns"], strict=True):
            column.hold(rows)
        self.sessions, self.before, self.after = (column.rows for column in self._columns)
        self._streams.restore(told["streams"])
        self._gaps.hold(told["gaps"])
        self._tails.hold(told["tails"])
        self._next_session = int(told["next"])

    def _stream(self, space: int, session: str | None, spoken: bool, episode: int) -> int:
        key, gap = f"{space} lines" if spoken else f"{space} facts", self._gap if spoken else -1
        if session is not None:
            key, gap = f"{space} session {session}", _NEVER
        elif episode >= 0:
            key, gap = f"{space} episode {episode}", _NEVER
        known = self._streams.numbers(key)
        if known:
            return known[0]
        number = len(self._gaps.rows) + len(self._new_gaps)
        self._streams.add(key, number)
        self._new_gaps.append(gap)
        return number

    def _append(self, row: int, stream: int, timestamps: IntArray) -> bool:
        """Put a row behind the last one of its stream; False if it belongs further up."""
        tail = int(self._tails.rows[stream])
        self._tails.rows[stream] = row
        apart = 0 if tail < 0 else int(timestamps[row]) - int(timestamps[tail])
        if apart < 0:
            return False
        if tail < 0 or apart > self._gaps.rows[stream]:
            self.sessions[row] = self._next_session
            self._next_session += 1
        else:
            self.sessions[row] = self.sessions[tail]
            self.before[row], self.after[tail] = tail, row
        return True

    def _sort(self, timestamps: IntArray) -> None:
        streams = self._stream_of.rows
        order = np.lexsort((timestamps, streams))
        time, stream = timestamps[order], streams[order]
        new = np.ones(len(order), dtype=bool)
        gaps = self._gaps.rows[stream]
        new[1:] = (stream[1:] != stream[:-1]) | (np.diff(time) > gaps[1:])
        self.sessions[order] = np.cumsum(new) - 1
        self._next_session = int(new.sum())
        self.before[order] = np.where(new, -1, np.roll(order, 1))
        ends = np.roll(new, -1)
        self.after[order] = np.where(ends, -1, np.roll(order, -1))
        last = np.ones(len(order), dtype=bool)
        last[:-1] = stream[1:] != stream[:-1]
        self._tails.rows[stream[last]] = order[last]


_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")


def title_key(title: str) -> str:
    """Return what two spellings of a title share: its words, in lower case, without brackets.

    Examples
    --------
    >>> title_key("The Thaw (film)"), title_key("Ann's  horse")
    ('the thaw', 'ann horse')
    """
    words = _WORD.findall(_without_brackets(title) or title)
    return " ".join(word.replace("\u2019", "'").partition("'")[0].casefold() for word in words)


def _without_brackets(title: str) -> str:
    """Return a title without what stands in brackets at its end."""
    bare = title.rstrip()
    opening = bare.find("(", bare.rfind(")", 0, -1) + 1) if bare.endswith(")") else -1
    return title if opening < 0 else bare[:opening].rstrip()


_NAME_KEYS = ("session", "speaker", "name", "title")
_PATHS = ", ".join(f"'$.{key}'" for key in _NAME_KEYS)
NAMES_SQL = (
    "CASE WHEN metadata = '{}' OR NOT json_valid(metadata) THEN NULL"
    f" ELSE json_extract(metadata, {_PATHS}) END"
)
"""What `NameIndex.note` takes, as JSON."""


def renames(changes: Sequence[Sequence[Any]]) -> bool:
    """Return whether changes of metadata, (event, before, after), change what is read of it.

    Examples
    --------
    >>> renames([(1, '{"turn":1}', '{"turn":2}')]), renames([(1, "{}", '{"title":"Red River"}')])
    (False, True)
    """
    return any(_said(before) != _said(after) for _, before, after in changes)


def _said(packed: str) -> str:
    # As text: 1 and true are equal in Python, and not the same session.
    metadata = json.loads(packed)
    return json.dumps([metadata.get(key) for key in _NAME_KEYS])


class NameIndex:
    """Words that name entities, and rows by title.

    Attributes
    ----------
    titles : KeyTable
        Rows by the ``title`` of their metadata; see `title_key`.
    """

    def __init__(self) -> None:
        self.titles = KeyTable()
        # Of every space for itself: each namespace numbers its own entities.
        self._names: dict[int, dict[str, set[int]]] = {}

    def saved(self) -> dict[str, Any]:
        """Return all that it knows, as ``cvx.store.learned_state`` keeps it."""
        names = [
            [space, [[word, [*numbers]] for word, numbers in known.items()]]
            for space, known in self._names.items()
        ]
        return {"titles": self.titles.saved(), "names": names}

    def restore(self, told: Mapping[str, Any]) -> None:
        """Know what was saved."""
        self.titles.restore(told["titles"])
        self._names = {
            space: {word: set(numbers) for word, numbers in known} for space, known in told["names"]
        }

    def note(self, row: int, space: int, entity: int, said: Sequence[Any]) -> object:
        """Take in (session, speaker, name, title) of a row; return its session or None."""
        session, speaker, name, title = said
        known = self._names.setdefault(space, {})
        for given in (speaker, name):
            for word in given.casefold().split() if isinstance(given, str) else ():
                known.setdefault(word, set()).add(entity)
        if isinstance(title, str) and title:
            self.titles.add(title_key(title), row)
        return session

    def names(self, spaces: Sequence[int]) -> dict[str, frozenset[int]]:
        """Return the words, in lower case, that name an entity in these spaces.

        They are those of ``speaker`` and ``name`` in the metadata of its events.
        """
        own = [self._names[space] for space in spaces if space in self._names]
        return {
            word: frozenset().union(*(some[word] for some in own if word in some))
            for word in {word for some in own for word in some}
        }


MOST_HOLDERS = 2_000
"""A word that more events hold says too little, and would cost too much."""

_LOOKUP_ROWS = 75
"""Asking of one event whether it holds a word costs as much as reading so many holders."""
_FEW = 64
_MOST_LISTS = 4_000
_MOST_READ = 4_000_000
_PAGE = 1 << 13
"""Reading begins at a multiple of so many rows: masks that begin close share what is read."""

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class _Read:
    """The rows from one on that hold a word, whosever they are, up to an event."""

    rows: IntArray
    upto: int


@dataclass(slots=True)
class _Own:
    """The rows of a mask that hold a word, up to an event; None where they are too many."""

    rows: IntArray | None
    upto: int


class _Extent(NamedTuple):
    """Where a mask begins and ends, others' rows lying around it, and how much is read for it."""

    first: int
    end: int
    most: int


class Postings:
    """Reads words off the full-text index and keeps what was asked for last.

    Every answer depends only on the events of a mask: whatever others store, it is the same, and
    so is what a word weighs. Reading stops after 75 holders for each event of the mask; those that
    remain are asked one by one, so that the price is bounded by what the asker has.

    Parameters
    ----------
    record : Record
        With the index.
    columns : Corpus
        Of the same record.

    Attributes
    ----------
    extents : dict
        By the name of a mask; to be cleared where a mask changes.
    """

    def __init__(self, record: Record, columns: Corpus) -> None:
        self._record = record
        self._columns = columns
        self._read: dict[tuple[str, int], _Read] = {}
        self._numbers = 0
        self._own: dict[tuple[str, object], _Own] = {}
        self.extents: dict[object, _Extent] = {}

    def forget(self) -> None:
        """Read every word anew: events changed their words, or who sees them."""
        self._read.clear()
        self._numbers = 0
        self._own.clear()
        self.extents.clear()

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
            known = self._own[word, name] = _Own(self._among(word, mask, name), newest)
            if len(self._own) > _MOST_LISTS:
                self._own.pop(next(iter(self._own)))
        elif known.rows is not None and known.upto < newest:
            new = self._later(mask, known.upto)
            known.rows = (
                self._among(word, mask, name)
                if len(new) > _FEW
                else _few_enough([known.rows, self._holding(word, new)])
            )
            known.upto = newest
        return known.rows

    def _among(self, word: str, mask: Mask, name: object) -> IntArray | None:
        extent = self.extents.get(name)
        if extent is None:
            extent = self.extents[name] = self._extent(mask)
        first, end = extent.first, extent.end
        read = self._read.get((word, first))
        if read is None:
            before = int(self._columns.event_ids[first]) - 1
            read = self._read[word, first] = _Read(_NONE, before)
        while True:
            own = read.rows[mask[read.rows]]
            if len(own) > MOST_HOLDERS:
                return None
            if read.upto >= end:
                return own
            if len(read.rows) > extent.most:
                rest = self._later(mask, read.upto)
                return _few_enough([own, self._holding(word, rest)])
            self._read_on((word, first), read, end)

    def _extent(self, mask: Mask) -> _Extent:
        rows = np.flatnonzero(mask)
        if not len(rows):
            return _Extent(0, -1, 0)
        most = _LOOKUP_ROWS * len(rows) + MOST_HOLDERS
        end = int(self._columns.event_ids[rows[-1]])
        return _Extent(int(rows[0]) // _PAGE * _PAGE, end, most)

    def _read_on(self, key: tuple[str, int], read: _Read, end: int) -> None:
        """Read as many holders again as are known, up to an event."""
        step = max(MOST_HOLDERS + 1, len(read.rows))
        events = self._record.holders(key[0], after=read.upto, upto=end, most=step)
        read.upto = end if len(events) < step else int(events[-1])
        rows = self._columns.rows_of(events)
        rows = rows[rows >= 0]
        read.rows = np.concatenate([read.rows, rows])
        self._numbers += len(rows)
        while self._numbers > _MOST_READ and len(self._read) > 1:
            oldest = next(one for one in self._read if one != key)
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
