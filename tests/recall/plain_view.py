"""A view of a list of events that looks everything up the plain way: the twin of the real one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from cvx.recall.corpus import Corpus
from cvx.recall.fusion import Candidates
from cvx.recall.ranking_signals import title_words
from cvx.recall.visible_events import VisibleEvents
from cvx.types import Edge, IntArray


class Said(NamedTuple):
    """One event of a small world."""

    text: str
    entity: int = 0
    timestamp: int = 0
    session: int = 0
    title: str = ""


def fused_by_rank(rankings: Iterable[Sequence[int]], constant: float = 60.0) -> dict[int, float]:
    """Return the sums of 1 / (constant + place), best first, equals by their number."""
    sums: dict[int, float] = {}
    for items in rankings:
        for place, item in enumerate(items, start=1):
            sums[item] = sums.get(item, 0.0) + 1.0 / (constant + place)
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def candidates(rows: IntArray) -> Candidates:
    """Return candidates that are nothing but rows."""
    return Candidates(rows, rows)


class PlainView(VisibleEvents):
    """Everything that was said is visible, in the order of the list."""

    # An attribute here, a property there.
    names: Mapping[str, frozenset[int]] = {}

    def __init__(
        self,
        said: Sequence[Said],
        similarity: npt.ArrayLike | None = None,
        names: dict[str, frozenset[int]] | None = None,
        now: int = 0,
        links: Sequence[tuple[int, int, str, float]] = (),
    ) -> None:
        self.said = list(said)
        self.size = len(said)
        sessions = np.array([one.session for one in said], dtype=np.int64)
        columns = SimpleNamespace(
            entities=np.array([one.entity for one in said], dtype=np.int64),
            timestamps=np.array([one.timestamp for one in said], dtype=np.int64),
            timelines=SimpleNamespace(sessions=sessions),
            lengths=np.array([len(one.text) for one in said], dtype=np.int64),
            asks=np.array(["?" in one.text for one in said], dtype=np.bool_),
            texts=lambda rows: [self.said[row].text for row in rows.tolist()],
        )
        self.corpus, self.held = cast(Corpus, columns), {}
        self.names = names or {}
        self.now = now
        self._similarity = np.zeros(self.size) if similarity is None else np.asarray(similarity)
        self._links = list(links)
        self._in_session: dict[int, list[int]] = {}
        for row in sorted(range(self.size), key=lambda row: (said[row].timestamp, row)):
            self._in_session.setdefault(said[row].session, []).append(row)
        self._words = sqlite3.connect(":memory:")
        self._words.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter')")
        self._words.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(row, one.text) for row, one in enumerate(said)],
        )

    def window(self, rows: IntArray, reach: int) -> IntArray:
        out = np.full((len(rows), 2 * reach + 1), -1, dtype=np.int64)
        for at, row in enumerate(rows.tolist()):
            mine = self._in_session[self.said[row].session]
            place = mine.index(row)
            for step in range(-reach, reach + 1):
                if 0 <= place + step < len(mine):
                    out[at, step + reach] = mine[place + step]
        return out

    def neighbourhood(self, rows: IntArray, reach: int) -> tuple[IntArray, IntArray]:
        windows = self.window(rows, reach)
        near = sorted({row for window in windows.tolist() for row in window if row >= 0})
        places = {row: place for place, row in enumerate(near)} | {-1: len(near)}
        found = [[places[row] for row in window] for window in windows.tolist()]
        return np.array(near, dtype=np.int64), np.array(found, dtype=np.int64).reshape(
            windows.shape
        )

    def postings(self, word: str) -> IntArray | None:
        asked = f'"{word.rstrip("*")}"' + "*" * word.endswith("*")
        found = self._words.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", (asked,)
        )
        return np.array([row for (row,) in found], dtype=np.int64)

    def similarity(self, rows: IntArray) -> npt.NDArray[np.float64]:
        return self._similarity[rows]

    @property
    def titled(self) -> bool:
        return True

    def titles(self, title: str) -> IntArray:
        words = title_words(title)
        found = [
            row
            for row, one in enumerate(self.said)
            if one.title and title_words(one.title) == words
        ]
        return np.array(found, dtype=np.int64)

    def links(self, rows: IntArray, *, incoming: bool = False) -> list[tuple[int, int, Edge]]:
        assert not incoming
        wanted = set(rows.tolist())
        return [(a, b, Edge(a, b, kind, w)) for a, b, kind, w in self._links if a in wanted]
