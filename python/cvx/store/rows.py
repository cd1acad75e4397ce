"""Columns of every table that is checked, and the checksum of a row."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

COLUMNS: dict[str, tuple[str, ...]] = {
    "episodes": (
        "episode_id", "entity", "namespace", "kind", "goal", "task_type", "reward", "metadata",
        "recorded",
    ),
    "events": (
        "event_id", "timestamp", "text", "embedding", "entity", "node", "namespace", "kind",
        "action", "metadata", "reward", "recallable", "episode", "tags", "recorded", "source",
        "trust", "visibility", "salience", "state", "key",
    ),
    "links": ("from_node", "to_node", "kind", "weight", "why", "evidence", "recorded"),
    "usage": ("context", "retrieved", "followed", "helped", "last_used"),
    "decays": ("episode", "node", "before", "after", "recorded"),
    "decisions": (
        "decision_id", "episode", "cue", "hits", "action_scores", "rendered", "action",
        "followed", "outcome", "recorded", "record",
    ),
    "model_state": ("name", "value", "recorded"),
    "aliases": ("node", "event_id", "text", "embedding", "recorded"),
    "journal": ("seq", "recorded", "op", "body", "chain"),
}  # fmt: skip
"""In the order of the table, without the last column, ``crc``."""

KEYS: dict[str, tuple[str, ...]] = {
    "episodes": ("episode_id",),
    "events": ("event_id",),
    "links": ("from_node", "to_node", "kind"),
    "usage": ("context",),
    "decays": ("episode", "node"),
    "decisions": ("decision_id",),
    "model_state": ("name",),
    "aliases": ("node",),
    "journal": ("seq",),
}

MOST_ID = 2**53
"""The bound of ids and counts: so far every number is exact in JSON, frames and other languages."""

# ASCII JSON is the same on every version of Python, which repr() is not.
_plain_json = json.JSONEncoder(separators=(",", ":")).encode


class Damage(NamedTuple):
    """A row whose checksum does not hold.

    Attributes
    ----------
    table : str
        Where it is.
    key : tuple
        Its primary key, as it reads now.
    """

    table: str
    key: tuple[object, ...]


def row_crc(*values: object) -> int:
    """Return the checksum of a row's values, in the order of its columns.

    Examples
    --------
    >>> row_crc(1, "a", None) != row_crc(1, "b", None)
    True
    """
    crc = 0
    plain = list(values)
    for at, value in enumerate(values):
        if type(value) is bytes:
            crc = zlib.crc32(value, crc)
            plain[at] = len(value)
        elif type(value) is float:
            # SQLite stores -0.0 as 0.0.
            plain[at] = value + 0.0
    return zlib.crc32(_plain_json(plain).encode("ascii"), crc)


def whole(row: Sequence[object]) -> bool:
    """Return whether a row, whose last value is its checksum, is what was written."""
    try:
        return row_crc(*row[:-1]) == row[-1]
    except (TypeError, ValueError):
        # Bytes where a text was, or half of a surrogate pair.
        return False


AMONG = "IN (SELECT value FROM json_each(?1))"
"""A condition on a column: one of the numbers that the first value lists, see ``listed``."""


def listed(numbers: Iterable[int]) -> str:
    """Return numbers as the one value that ``AMONG`` reads, however many there are."""
    return f"[{','.join(map(str, map(int, numbers)))}]"


def insert_sql(table: str, *, replace: bool = False) -> str:
    """Return the statement that inserts a row with its checksum."""
    names = (*COLUMNS[table], "crc")
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def crc_sql(names: Sequence[str]) -> str:
    """Return the expression for the checksum of these columns."""
    return f"cvx_crc({', '.join(names)})"


def renew_crc_sql(table: str, where: str) -> str:
    """Return the statement that computes checksums again after an update."""
    return f"UPDATE {table} SET crc = {crc_sql(COLUMNS[table])} WHERE {where}"


def damaged(db: sqlite3.Connection, tables: Iterable[str] = tuple(COLUMNS)) -> Iterator[Damage]:
    """Read every row of these tables and yield those whose checksum does not hold."""
    for table in tables:
        names = COLUMNS[table]
        width = len(KEYS[table])
        cursor = db.execute(f"SELECT {', '.join((*KEYS[table], *names))}, crc FROM {table}")
        for row in cursor:
            if not whole(row[width:]):
                yield Damage(table, tuple(row[:width]))
