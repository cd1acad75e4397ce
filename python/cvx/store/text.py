"""Full-text search: two contentless FTS5 tables, filled in the transaction of the event.

Words go through FTS5's own tokenizer. Scripts written without spaces would be one token a
sentence there, so runs of them are cut into overlapping pairs (and single characters) for a
second table; FTS5's trigram tokenizer could not find a word of two characters.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7af\u0e00-\u0eff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(r"\w+")
_COMMON = 1000
"""A word in this many events says too little to be ranked by, and would cost too much."""
_MOST_RANKED = 2000
"""Words are ranked by, rarest first, until they are in this many events together."""
_MOST_WORDS = 64


def create(db: sqlite3.Connection) -> None:
    """Create the tables."""
    db.execute("CREATE VIRTUAL TABLE events_words USING fts5(text, content='')")
    db.execute(
        "CREATE VIRTUAL TABLE events_pairs USING fts5(text, content='', tokenize='unicode61')"
    )


def pairs(text: str) -> list[str]:
    """Return the characters and neighbouring pairs of scripts without spaces.

    Examples
    --------
    >>> pairs("看 東京都")
    ['看', '東', '東京', '京', '京都', '都']
    """
    out: list[str] = []
    for run in _RUN.findall(text):
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
    """Return what an event is found by: its text, then those of its aliases."""
    found = db.execute(
        "SELECT text, -1 AS place FROM events WHERE event_id = ?1"
        " UNION ALL SELECT text, node FROM aliases WHERE event_id = ?1 ORDER BY place",
        (event,),
    )
    return "\n".join(row[0] for row in found)


def replace(db: sqlite3.Connection, event: int, before: str, after: str) -> None:
    """Index an event by another text; ``before`` is what it was indexed by."""
    # A contentless table must be told what it is to forget.
    for table, old in (("events_words", before), ("events_pairs", " ".join(pairs(before)))):
        if old:
            db.execute(
                f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (event, old)
            )
    add(db, [(event, after)])


def refill(db: sqlite3.Connection) -> None:
    """Build both tables anew from the events, leaving nothing of what was there."""
    for table in ("events_words", "events_pairs"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    named = {row[0] for row in db.execute("SELECT DISTINCT event_id FROM aliases")}
    cursor = db.execute("SELECT event_id, text FROM events ORDER BY event_id")
    while rows := cursor.fetchmany(1000):
        add(db, [(event, whole(db, event) if event in named else text) for event, text in rows])


def search(
    db: sqlite3.Connection, text: str, k: int, where: str, values: Sequence[object]
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
        Event ids. Ranked by BM25 over the rarest words, none of which 1,000 events hold. Where
        there is no such word: the newest events that hold all the words.
    """
    out: list[int] = []
    words = list(dict.fromkeys(w.casefold() for w in _WORD.findall(text)))
    for table, tokens in (("events_words", words), ("events_pairs", _cut(text))):
        for event in _match(db, table, tokens[:_MOST_WORDS], k, where, values):
            if event not in out:
                out.append(event)
    return out[:k]


def _cut(text: str) -> list[str]:
    found = list(dict.fromkeys(pairs(text)))
    # A pair says more than its characters; those are for words of one.
    return [gram for gram in found if len(gram) == 2] or found


def _match(
    db: sqlite3.Connection,
    table: str,
    tokens: Sequence[str],
    k: int,
    where: str,
    values: Sequence[object],
) -> list[int]:
    quoted = [_quoted(token) for token in tokens]
    counts = {word: _count(db, table, word) for word in quoted}
    rare, cost = list[str](), 0
    for word in sorted(quoted, key=counts.__getitem__):
        cost += counts[word]
        if 0 < counts[word] < _COMMON and (not rare or cost <= _MOST_RANKED):
            rare.append(word)
    common = [word for word in quoted if counts[word] >= _COMMON]
    if rare:
        asked, order = " OR ".join(rare), f"bm25({table}), {table}.rowid DESC"
    elif common:
        asked, order = " AND ".join(common), f"{table}.rowid DESC"
    else:
        return []
    rows = db.execute(
        f"SELECT event_id FROM {table} CROSS JOIN events ON event_id = {table}.rowid"
        f" WHERE {table} MATCH ? AND {where} ORDER BY {order} LIMIT ?",
        (asked, *values, k),
    )
    return [row[0] for row in rows]


def _quoted(token: str) -> str:
    plain = token.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return '"' + plain.replace('"', '""') + '"'


def _count(db: sqlite3.Connection, table: str, word: str) -> int:
    found = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",
        (word, _COMMON),
    )
    return int(found.fetchone()[0])
