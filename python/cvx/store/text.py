"""Full-text search: two contentless FTS5 tables, filled in the transaction of the event.

Words go through FTS5's own tokenizer and its Porter stemmer. Scripts written without spaces would
be one token a sentence there, so runs of them are cut into overlapping pairs (and single
characters) for a second table; FTS5's trigram tokenizer could not find a word of two characters.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7af\u0e00-\u0eff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{UNSPACED}]+")


def create(db: sqlite3.Connection) -> None:
    """Create the tables."""
    db.execute(
        "CREATE VIRTUAL TABLE events_words USING fts5("
        "text, content='', tokenize='porter unicode61')"
    )
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
