"""Finding events by words, at a price that is bounded whatever the words are."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import chain

import numpy as np

from cvx.store.text import pairs
from cvx.types import IntArray

_WORD = re.compile(r"\w+")
_COMMON = 1000
"""A word in this many events says too little to be ranked by, and would cost too much."""
_MOST_RANKED = 2000
"""Words are ranked by, rarest first, until they are in this many events together."""
_MOST_WORDS = 64


class WordSearch:
    """Asks the text index of one record.

    Which words are common is remembered: events are hardly ever taken out of the index, and what
    is common stays so.
    """

    def __init__(self) -> None:
        self._common: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """Count every word again."""
        self._common.clear()

    def search(
        self, db: sqlite3.Connection, text: str, k: int, where: str, values: Sequence[object]
    ) -> list[int]:
        """Find events by words, best first.

        Parameters
        ----------
        db : Connection
            Of the record.
        text : str
            Anything; no character of it is an operator.
        k : int
            How many.
        where : str
            SQL over the columns of ``events``: what may come back.
        values : sequence
            For the placeholders of ``where``.

        Returns
        -------
        list of int
            Event ids. Ranked by BM25 over the rarest words, none of which 1,000 events hold.
            Where there is no such word: the newest events that hold all the words.
        """
        words = list(dict.fromkeys(w.casefold() for w in _WORD.findall(text)))
        found = self._match(db, "events_words", words, k, where, values)
        grams = _cut(text)
        if grams:
            found += self._match(db, "events_pairs", grams, k, where, values)
        return list(dict.fromkeys(found))[:k]

    def postings(self, db: sqlite3.Connection, word: str, most: int) -> IntArray | None:
        """Return the events that hold a word, ascending; None where they are more than ``most``.

        A word of a script without spaces is found wherever its pairs of characters are.
        """
        grams = _cut(word)
        table = "events_pairs" if grams else "events_words"
        asked = " AND ".join(map(_quoted, grams or _WORD.findall(word)))
        if not asked:
            return np.empty(0, dtype=np.int64)
        rows = db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid LIMIT ?",
            (asked, most + 1),
        ).fetchall()
        if len(rows) > most:
            return None
        return np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows))

    def _match(
        self,
        db: sqlite3.Connection,
        table: str,
        tokens: Sequence[str],
        k: int,
        where: str,
        values: Sequence[object],
    ) -> list[int]:
        counts = {word: self._count(db, table, word) for word in map(_quoted, tokens[:_MOST_WORDS])}
        rare, cost = list[str](), 0
        for word in sorted(counts, key=counts.__getitem__):
            cost += counts[word]
            if 0 < counts[word] < _COMMON and (not rare or cost <= _MOST_RANKED):
                rare.append(word)
        common = [word for word in counts if counts[word] >= _COMMON]
        if rare:
            asked, order = " OR ".join(rare), f"bm25({table}), {table}.rowid DESC"
        elif common:
            asked, order = " AND ".join(common), f"{table}.rowid DESC"
        else:
            return []
        # The scope of an event is read off an index that holds nothing else: a row with its
        # vector is many times as long.
        rows = db.execute(
            f"SELECT event_id FROM {table} CROSS JOIN events INDEXED BY events_scope"
            f" ON event_id = {table}.rowid WHERE {table} MATCH ? AND {where}"
            f" ORDER BY {order} LIMIT ?",
            (asked, *values, k),
        )
        return [row[0] for row in rows]

    def _count(self, db: sqlite3.Connection, table: str, word: str) -> int:
        if (table, word) in self._common:
            return _COMMON
        found = db.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT {_COMMON})",
            (word,),
        )
        count = int(found.fetchone()[0])
        if count == _COMMON:
            self._common.add((table, word))
        return count


def _cut(text: str) -> list[str]:
    found = list(dict.fromkeys(pairs(text)))
    # A pair says more than its characters; those are for words of one.
    return [gram for gram in found if len(gram) == 2] or found


def _quoted(token: str) -> str:
    plain = token.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return '"' + plain.replace('"', '""') + '"'
