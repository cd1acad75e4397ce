"""The text index against what the texts would make of it now."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterator

from cvx.store import text
from cvx.store.doctor.findings import Check, Finding


def differing_words(db: sqlite3.Connection, damaged: Collection[object]) -> Iterator[Finding]:
    """Name every event that the text index misses, holds beside its right, or holds otherwise.

    The index is built once more in RAM, by the same code, and both are compared posting by
    posting.

    Parameters
    ----------
    db : Connection
        Read-only; what is made goes into its temporary schema.
    damaged : collection
        Events whose rows are damaged: what their texts were is not known.
    """
    tables = dict(
        db.execute(
            "SELECT name, sql FROM main.sqlite_master"
            " WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'"
        ).fetchall()
    )
    factory, db.text_factory = db.text_factory, lambda raw: raw.decode("utf-8", "replace")
    for table, sql in tables.items():
        # An unqualified name means the temporary table from here on: ``text`` fills the twin.
        db.execute(sql.replace(f" {table} ", f" temp.{table} ", 1))
    try:
        text.refill(db)
        for table in tables:
            yield from _compared(db, table, set(damaged))
    finally:
        db.text_factory = factory
        for table in tables:
            db.execute(f"DROP TABLE temp.{table}")


def _compared(db: sqlite3.Connection, table: str, damaged: set[object]) -> Iterator[Finding]:
    expected = _postings(db, "temp", table)
    try:
        stored = _postings(db, "main", table)
    except sqlite3.DatabaseError as error:
        yield Finding(Check.WORD_DIFFERENT, table, f"the text index cannot be read ({error})")
        return
    for event in sorted(expected.keys() | stored.keys()):
        if event in damaged or expected.get(event) == stored.get(event):
            continue
        if event not in stored:
            check, what = Check.WORD_MISSING, "is not in the text index: its words do not find it"
        elif event not in expected:
            check, what = Check.WORD_EXTRA, "is in the text index, and there is no such text"
        else:
            check, what = Check.WORD_DIFFERENT, "is in the text index with other words"
        yield Finding(check, f"{table} [{event}]", f"event {event} {what}", table, (event,))


def _postings(db: sqlite3.Connection, schema: str, table: str) -> dict[int, int]:
    """Return a fingerprint of the words of each event and their places."""
    vocabulary = f"temp.vocabulary_of_{schema}_{table}"
    db.execute(
        f"CREATE VIRTUAL TABLE {vocabulary} USING fts5vocab('{schema}', '{table}', 'instance')"
    )
    try:
        found: dict[int, int] = {}
        for term, event, place in db.execute(f"SELECT term, doc, offset FROM {vocabulary}"):
            mark = zlib.crc32(f"{place} {term}".encode())
            found[event] = found.get(event, 0) + mark + (1 << 64)
        return found
    finally:
        db.execute(f"DROP TABLE {vocabulary}")
