"""Finding events by words: which hold one, and which of the newest hold them all."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from itertools import chain

import numpy as np

from cvx.store.text import UNSPACED, pairs
from cvx.types import IntArray

_WORD = re.compile(r"\w+")
_SPACED = re.compile(f"[^\\W{UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Return what a text can be looked for by, each once: words, and pairs of unspaced scripts.

    Examples
    --------
    >>> words_of("Foo.bar, or 東京都 foo")
    ['foo', 'bar', 'or', '東京', '京都']
    """
    plain = (word.casefold() for word in _SPACED.findall(text))
    return list(dict.fromkeys(chain(plain, _cut(text))))


def holders(db: sqlite3.Connection, word: str, after: int, most: int) -> IntArray:
    """Return the first events above an id that hold a word, ascending, ``most`` at the most.

    A word of a script without spaces is found wherever its pairs of characters are; several words,
    where all of them are.
    """
    table, asked = _asked(word)
    if not asked:
        return np.empty(0, dtype=np.int64)
    return _numbers(
        db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?",
            (asked, after, most),
        )
    )


def holding(db: sqlite3.Connection, word: str, events: IntArray) -> IntArray:
    """Return which of these events hold a word, as ``holders`` does, ascending."""
    table, asked = _asked(word)
    if not asked:
        return np.empty(0, dtype=np.int64)
    return _numbers(
        db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
            " AND rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid",
            (asked, json.dumps(events.tolist())),
        )
    )


def newest(
    db: sqlite3.Connection, words: Sequence[str], k: int, where: str, values: Sequence[object]
) -> list[int]:
    """Return the newest events that hold all of some words.

    Parameters
    ----------
    db : Connection
        Of the record.
    words : sequence of str
        At least one, all of one kind of script; those of the other kind than the first are not
        asked for.
    k : int
        How many.
    where : str
        SQL over the columns of ``events``: what may come back.
    values : sequence
        For the placeholders of ``where``.
    """
    asked = [_asked(word) for word in words]
    table = asked[0][0]
    every = " AND ".join(one for own, one in asked if own == table)
    # The scope of an event is read off an index that holds nothing else: a row with its
    # vector is many times as long.
    rows = db.execute(
        f"SELECT event_id FROM {table} CROSS JOIN events INDEXED BY events_scope"
        f" ON event_id = {table}.rowid WHERE {table} MATCH ? AND {where}"
        f" ORDER BY {table}.rowid DESC LIMIT ?",
        (every, *values, k),
    )
    return [row[0] for row in rows]


def _asked(word: str) -> tuple[str, str]:
    """Return the table that knows a word, and how it is asked; "" where nothing can be asked."""
    grams = _cut(word)
    table = "events_pairs" if grams else "events_words"
    return table, " AND ".join(map(_quoted, grams or _WORD.findall(word)))


def _cut(text: str) -> list[str]:
    found = list(dict.fromkeys(pairs(text)))
    # A pair says more than its characters; those are for words of one.
    return [gram for gram in found if len(gram) == 2] or found


def _quoted(token: str) -> str:
    plain = token.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return '"' + plain.replace('"', '""') + '"'


def _numbers(rows: sqlite3.Cursor) -> IntArray:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
