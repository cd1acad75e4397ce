"""The journal: every number there, each row following from the one before it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterator

from cvx.store.doctor.findings import Check, Finding
from cvx.store.retention import FIRST_KEPT, number_of

PLACEHOLDER = "lost"
"""The op of a row that stands for one whose content is gone."""


def gaps(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name runs of numbers that are missing, at the end too."""
    expected, previous = _first_kept(db), 0
    for (seq,) in db.execute("SELECT seq FROM journal ORDER BY seq"):
        if seq != expected:
            yield _gap(expected, seq - 1)
        expected, previous = seq + 1, seq
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    if given is not None and given[0] > previous:
        yield _gap(previous + 1, given[0])


def _first_kept(db: sqlite3.Connection) -> int:
    """Return from which number on the journal is kept."""
    found = db.execute("SELECT value FROM meta WHERE key = ?", (FIRST_KEPT,)).fetchone()
    return (number_of(str(found[0])) if found else None) or 1


def _gap(first: int, last: int) -> Finding:
    return Finding(
        Check.JOURNAL_GAP,
        f"journal [{first}..{last}]",
        f"{last - first + 1} changes are missing: an index that follows did not hear of them",
        "journal",
        (first, last),
    )


def breaks(db: sqlite3.Connection, damaged: Collection[object]) -> Iterator[Finding]:
    """Name rows that do not follow from the one before them.

    An erase takes words out of older rows and leaves their chain as it was, since it names the
    history; only what is younger than the last erase can be held to it.
    """
    start = db.execute("SELECT ifnull(max(seq), 0) FROM journal WHERE op = 'erase'").fetchone()[0]
    before: tuple[int, int] | None = (0, 0) if start == 0 and _first_kept(db) == 1 else None
    for seq, body, chain in db.execute(
        "SELECT seq, body, chain FROM journal WHERE seq >= ? ORDER BY seq", (start,)
    ):
        follows = before is not None and before[0] + 1 == seq
        if follows and before is not None and seq not in damaged:
            raw = str(body).encode("utf-8", "surrogateescape")
            if zlib.crc32(raw, before[1]) != chain:
                yield Finding(
                    Check.JOURNAL_CHAIN,
                    f"journal [{seq}]",
                    "the change does not follow from the one before it: one of them was replaced",
                    "journal",
                    (seq,),
                )
        before = None if seq in damaged else (seq, chain)
