"""Who is whose neighbour in time: events in sessions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvx.recall.growing import Growing
from cvx.types import IntArray

_FEW = 256
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
        self._streams: dict[tuple[int, str, object], int] = {}
        self._gaps: list[int] = []
        self._tails: dict[int, int] = {}
        self._next_session = 0
        self._stream_of, *self._columns = (Growing(np.int64) for _ in range(4))
        self.sessions, self.before, self.after = (column.rows for column in self._columns)

    def extend(
        self,
        spaces: IntArray,
        sessions: Sequence[object],
        spoken: Sequence[bool],
        episodes: IntArray,
        timestamps: IntArray,
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
        """
        first = len(self._stream_of.rows)
        streams = [
            self._stream(*row)
            for row in zip(spaces.tolist(), sessions, spoken, episodes.tolist(), strict=True)
        ]
        self._stream_of.extend(streams)
        nothing = np.full(len(streams), -1, dtype=np.int64)
        self.sessions, self.before, self.after = (
            column.extend(nothing) for column in self._columns
        )
        in_order = len(streams) <= _FEW and all(
            self._append(row, stream, timestamps) for row, stream in enumerate(streams, start=first)
        )
        if not in_order:
            self._sort(timestamps)

    def _stream(self, space: int, session: object, spoken: bool, episode: int) -> int:
        key: tuple[int, str, object] = (space, "lines" if spoken else "facts", None)
        if session is not None:
            key = (space, "session", str(session))
        elif episode >= 0:
            key = (space, "episode", episode)
        known = self._streams.get(key)
        if known is None:
            known = self._streams[key] = len(self._streams)
            self._gaps.append({"lines": self._gap, "facts": -1}.get(key[1], _NEVER))
        return known

    def _append(self, row: int, stream: int, timestamps: IntArray) -> bool:
        """Put a row behind the last one of its stream; False if it belongs further up."""
        tail = self._tails.get(stream)
        self._tails[stream] = row
        apart = 0 if tail is None else int(timestamps[row]) - int(timestamps[tail])
        if apart < 0:
            return False
        if tail is None or apart > self._gaps[stream]:
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
        gaps = np.array(self._gaps)[stream]
        new[1:] = (stream[1:] != stream[:-1]) | (np.diff(time) > gaps[1:])
        self.sessions[order] = np.cumsum(new) - 1
        self._next_session = int(new.sum())
        self.before[order] = np.where(new, -1, np.roll(order, 1))
        ends = np.roll(new, -1)
        self.after[order] = np.where(ends, -1, np.roll(order, -1))
        last = np.ones(len(order), dtype=bool)
        last[:-1] = stream[1:] != stream[:-1]
        self._tails = dict(zip(stream[last].tolist(), order[last].tolist(), strict=True))

    def window(self, rows: IntArray, reach: int) -> IntArray:
        """Return rows with their neighbours in time.

        Parameters
        ----------
        rows : ndarray of shape (n,), int64
        reach : int
            How many on either side.

        Returns
        -------
        ndarray of shape (n, 2 * reach + 1), int64
            In order of time; -1 beyond the ends of the session.

        Examples
        --------
        >>> lines = Timelines(gap=10)
        >>> spaces, episodes, times = np.array([[0, 0, 0], [-1, -1, -1], [0, 20, 1]])
        >>> lines.extend(spaces, ["a", None, "a"], [False] * 3, episodes, times)
        >>> lines.window(np.array([0]), 1).tolist()
        [[-1, 0, 2]]
        """
        out = np.full((len(rows), 2 * reach + 1), -1, dtype=np.int64)
        out[:, reach] = rows
        for step in range(1, reach + 1):
            for side, pointer in ((-1, self.before), (1, self.after)):
                at = out[:, reach + side * (step - 1)]
                out[:, reach + side * step] = np.where(at >= 0, pointer[at], -1)
        return out
