"""New vectors that wait for a store to be switched over to another embedder.

They live in a table of their own until the switch, each with a checksum. Triggers take a vector
out with its event, so that erasing needs to know nothing of them.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

META = "reembed"
_CREATE = (
    "CREATE TABLE staged (node INTEGER PRIMARY KEY, embedding BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TRIGGER staged_event_gone AFTER DELETE ON events"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
    "CREATE TRIGGER staged_event_moved AFTER UPDATE OF node ON events"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
    "CREATE TRIGGER staged_alias_gone AFTER DELETE ON aliases"
    " BEGIN DELETE FROM staged WHERE node = OLD.node; END",
)
_DROP = (
    "DROP TRIGGER IF EXISTS staged_event_gone",
    "DROP TRIGGER IF EXISTS staged_event_moved",
    "DROP TRIGGER IF EXISTS staged_alias_gone",
    "DROP TABLE IF EXISTS staged",
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a store is to be moved.

    Parameters
    ----------
    embedder : str
        The id of the embedder.
    dim : int
        Dimension of its vectors.
    spec : str or None
        How to make it (``cvx.embed.spec``), where that is known.
    """

    embedder: str
    dim: int
    spec: str | None = None

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read it back."""
        return cls(**json.loads(text))


def create(db: sqlite3.Connection) -> None:
    """Make the table."""
    for statement in _CREATE:
        db.execute(statement)


def drop(db: sqlite3.Connection) -> None:
    """Take the table away, with what is in it."""
    for statement in _DROP:
        db.execute(statement)


def put(db: sqlite3.Connection, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Store vectors by node."""
    db.executemany(
        "INSERT OR REPLACE INTO staged VALUES (?, ?, ?)",
        ((node, raw, checksum(node, raw)) for node, raw in vectors),
    )


def checksum(node: int, raw: bytes) -> int:
    """Return the checksum of a row."""
    return zlib.crc32(raw, zlib.crc32(b"%d" % node))


def damaged_rows(db: sqlite3.Connection) -> list[int]:
    """Return the nodes whose vectors are not what was written, and those that no event has."""
    wrong = [
        node
        for node, raw, crc in db.execute("SELECT node, embedding, crc FROM staged ORDER BY node")
        if checksum(node, raw) != crc
    ]
    unknown = db.execute(
        "SELECT node FROM staged WHERE node NOT IN (SELECT node FROM events WHERE node IS NOT NULL"
        " UNION ALL SELECT node FROM aliases)"
    )
    return sorted({*wrong, *(row[0] for row in unknown)})
