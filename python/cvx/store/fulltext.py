"""Full-text search: two contentless FTS5 tables, filled in the transaction of the event.

Words go through FTS5's own tokenizer and its Porter stemmer. Scripts written without spaces would
be one token a sentence there, so runs of them are cut into overlapping pairs (and single
characters) for a second table; FTS5's trigram tokenizer could not find a word of two characters.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from cvx.types import IntArray

UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7af\u0e00-\u0eff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{UNSPACED}]+")
_NONE = np.empty(0, dtype=np.int64)


def create(db: sqlite3.Connection, schema: str = "") -> None:
    """Create the tables."""
    db.execute(
        f"CREATE VIRTUAL TABLE {schema}events_words USING fts5("
        "text, content='', tokenize='porter unicode61')"
    )
    db.execute(
        f"CREATE VIRTUAL TABLE {schema}events_pairs USING fts5("
        "text, content='', tokenize='unicode61')"
    )


def pairs(text: str) -> list[str]:
    """Return characters and bigrams of scripts written without spaces.

    Examples
    --------
    >>> pairs("看 東京都")
    ['看', '東', '東京', '京', '京都', '都']
    """
    out: list[str] = []
    # Most texts are plain ASCII, which is seen much faster than it is searched.
    for run in () if text.isascii() else _RUN.findall(text):
        for at, sign in enumerate(run):
            out.append(sign)
            if at + 1 < len(run):
                out.append(run[at : at + 2])
    return out


def add(db: sqlite3.Connection, rows: Iterable[tuple[int, str]]) -> None:
    """Index (event id, text)."""
    texts = [(event, text) for event, text in rows if text]
    db.executemany("INSERT INTO events_words (rowid, text) VALUES (?, ?)", texts)
    cut = [(event, " ".join(found)) for event, text in texts if (found := pairs(text))]
    if cut:
        db.executemany("INSERT INTO events_pairs (rowid, text) VALUES (?, ?)", cut)


def whole(db: sqlite3.Connection, event: int) -> str:
    """Return the indexed text of an event: its own and its aliases'."""
    found = db.execute(
        "SELECT text, -1 AS place FROM events WHERE event_id = ?1"
        " UNION ALL SELECT text, node FROM aliases WHERE event_id = ?1 ORDER BY place",
        (event,),
    )
    # What another program wrote may be no text.
    return "\n".join(row[0] for row in found if isinstance(row[0], str))


def replace(db: sqlite3.Connection, event: int, before: str, after: str) -> None:
    """Index an event by another text; ``before`` is what it was indexed by."""
    # A contentless table must be told what it is to forget.
    for table, old in (("events_words", before), ("events_pairs", " ".join(pairs(before)))):
        if old:
            db.execute(
                f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (event, old)
            )
    add(db, [(event, after)])


def forget(db: sqlite3.Connection, events: Iterable[int]) -> None:
    """Take events out, before their rows go, so that no word of them is left in the tables."""
    for event in events:
        replace(db, event, whole(db, event), "")
    for table in ("events_words", "events_pairs"):
        # Contentless tables keep the words of deleted rows until they are merged away.
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def add_aliases(db: sqlite3.Connection, first: int) -> None:
    """Index events from an id on, which ``add`` has taken, by the texts of their aliases too."""
    named = db.execute(
        "SELECT event_id, text FROM events WHERE event_id >= ?"
        " AND event_id IN (SELECT event_id FROM aliases)",
        (first,),
    ).fetchall()
    for event, text in named:
        replace(db, event, text, whole(db, event))


def refill(db: sqlite3.Connection) -> None:
    """Build both tables anew from the events, leaving nothing of what was there."""
    for table in ("events_words", "events_pairs"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    named = {row[0] for row in db.execute("SELECT DISTINCT event_id FROM aliases")}
    cursor = db.execute("SELECT event_id, text FROM events ORDER BY event_id")
    while rows := cursor.fetchmany(1000):
        add(db, [(event, whole(db, event) if event in named else text) for event, text in rows])


_WORD = re.compile(r"\w+")
_SPACED = re.compile(f"[^\\W{UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Return what a text can be looked for by, each once: words, and pairs of unspaced scripts.

    Examples
    --------
    >>> words_of("Foo.bar, or 東京都 foo")
    ['foo', 'bar', 'or', '東京', '京都']
    """
    if text.isascii():
        return list(dict.fromkeys(_SPACED.findall(text.casefold())))
    plain = (word.casefold() for word in _SPACED.findall(text))
    return list(dict.fromkeys(chain(plain, _cut(text))))


def holders(db: sqlite3.Connection, word: str, after: int, upto: int, most: int) -> IntArray:
    """Return the first events after an id, and up to another, that contain a word, ascending.

    A word of a script without spaces is found wherever its pairs of characters are; several words,
    where all of them are. One that ends in ``*`` stands for every stem that begins so.
    """
    return _numbers(db, word, "rowid > ? AND rowid <= ?", (after, upto), most)


def holding(db: sqlite3.Connection, word: str, events: IntArray) -> IntArray:
    """Return which of these events contain a word."""
    among = "rowid IN (SELECT value FROM json_each(?))"
    return _numbers(db, word, among, (json.dumps(events.tolist()),))


def newest(
    db: sqlite3.Connection, words: Sequence[str], k: int, where: str, values: Sequence[object]
) -> list[int]:
    """Return the newest events that contain all of some words.

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
    parts = _matching(db, table)
    by = "INDEXED BY events_scope" if len(parts) == 1 else ""
    rows = db.execute(
        f"SELECT event_id FROM ({' UNION ALL '.join(parts)}) AS w CROSS JOIN events {by}"
        f" ON event_id = w.rowid WHERE {where} ORDER BY w.rowid DESC LIMIT ?",
        (*[every] * len(parts), *values, k),
    )
    return [row[0] for row in rows]


def _asked(word: str) -> tuple[str, str]:
    """Return the table that knows a word, and how it is asked; "" where nothing can be asked."""
    grams = _cut(word)
    table = "events_pairs" if grams else "events_words"
    asked = " AND ".join(map(_quoted, grams or _WORD.findall(word)))
    return table, f"{asked}*" if asked and word.endswith("*") else asked


def _cut(text: str) -> list[str]:
    found = list(dict.fromkeys(pairs(text)))
    # A pair says more than its characters; those are for words of one.
    return [gram for gram in found if len(gram) == 2] or found


def _quoted(token: str) -> str:
    plain = token.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return '"' + plain.replace('"', '""') + '"'


def _matching(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the queries for the rows that match what each of them is asked.

    In a view of the past there are two: its own tables hold the events that were other ones then.
    """
    asked = f"SELECT rowid FROM {{}}{table} WHERE {table} MATCH ?"
    if not getattr(db, "covered", False):
        return [asked.format("")]
    return [f"{asked.format('main.')} AND rowid NOT IN over_events", asked.format("temp.")]


def _numbers(
    db: sqlite3.Connection, word: str, which: str, values: Sequence[object], most: int = -1
) -> IntArray:
    table, asked = _asked(word)
    if not asked:
        return _NONE
    parts = [f"{part} AND {which}" for part in _matching(db, table)]
    # One text of all numbers takes half as long to read as a row for each.
    found = db.execute(
        "SELECT group_concat(rowid) FROM"
        f" (SELECT rowid FROM ({' UNION ALL '.join(parts)}) ORDER BY rowid LIMIT ?)",
        (*[asked, *values] * len(parts), most),
    )
    told = found.fetchone()[0]
    return np.fromstring(told, dtype=np.int64, sep=",") if told else _NONE
