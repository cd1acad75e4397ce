"""Rows against their checksums, pages and secondary indexes against the rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.rowcheck import RowCheck, node_bound

_MOST = 1000
_OF_AN_INDEX = re.compile(r"missing from index|entries in index|non-unique entry in index")
_OF_A_ROW = re.compile(r"CHECK constraint failed|NULL value in|non-\w+ value in")


def damaged_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that is not what was written."""
    for table in rows.COLUMNS:
        try:
            for damage in rows.damaged(db, (table,)):
                yield Finding(
                    Check.ROW,
                    f"{damage.table} {_shown(damage.key)}",
                    "the row is not what was written: its checksum does not hold",
                    damage.table,
                    damage.key,
                )
        except sqlite3.DatabaseError as error:
            yield Finding(Check.PAGE, table, f"the table cannot be read to its end ({error})")


def unstorable_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that is whole and that cvx could not have written."""
    check = row_check(db)
    for table, names in rows.COLUMNS.items():
        width = len(rows.KEYS[table])
        key = ", ".join(rows.KEYS[table])
        for found in db.execute(f"SELECT {key}, {', '.join(names)}, crc FROM {table}"):
            row = found[width:]
            what = check.refusal(table, row[:-1]) if rows.whole(row) else None
            if what is not None:
                where = f"{table} {_shown(found[:width])}"
                yield Finding(Check.VALUE, where, what, table, found[:width])


def row_check(db: sqlite3.Connection) -> RowCheck:
    """Return what says of the rows of a record whether cvx could have written them."""
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('dim', 'metric')"))
    (count,) = db.execute(
        "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
    ).fetchone()
    dim = str(meta.get("dim", "0"))
    return RowCheck(
        db, int(dim) if dim.isdecimal() else 0, str(meta.get("metric")), node_bound(count)
    )


def damaged_pages(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name what SQLite itself finds wrong with its pages and indexes."""
    try:
        said = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({_MOST})")]
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    for text in said:
        # What concerns the content of a row is found, and named better, by its checksum.
        if text == "ok" or _OF_A_ROW.search(text):
            continue
        check = Check.SECONDARY_INDEX if _OF_AN_INDEX.search(text) else Check.PAGE
        yield Finding(check, "memory.db", text)


def count_rows(db: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each checked table has; those that cannot be read have none."""
    out = {}
    for table in rows.COLUMNS:
        try:
            out[table] = int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.DatabaseError:
            out[table] = 0
    return out


def _shown(key: tuple[object, ...]) -> str:
    return str(list(key)).encode("ascii", "backslashreplace").decode()
