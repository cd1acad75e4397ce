"""Salvages what can be read of a database with damaged pages, into a new store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cvx.errors import DamagedStoreError, FileError, StoreNotFoundError
from cvx.store import fulltext, rows
from cvx.store.database import connect, tail_of
from cvx.store.doctor.record_checks import COUNTERS, highest_id
from cvx.store.doctor.row_repair import Row, cleaned_row
from cvx.store.files import make_folders, refuse_link
from cvx.store.record import Record
from cvx.store.row_validation import RowCheck, may_say
from cvx.store.writer import Writer

_AT_ONCE = 256
_FARTHEST = 1 << 40
"""A jump over rows that cannot be read gives up here."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was saved.

    Parameters
    ----------
    counts : dict
        Rows of each table that are in the new store.
    wrong : dict
        Rows of each table that could be read and were not what was written; they are left out.
    broken : tuple of str
        Tables with parts that could not be read.
    """

    counts: dict[str, int]
    wrong: dict[str, int]
    broken: tuple[str, ...]


def salvage(folder: Path, target: Path) -> Salvaged:
    """Copy every row that can be read, and is right, into a new store.

    The damaged one is only read. What refers to a row that was lost is found by an examination
    of the new store, as orphans.

    Parameters
    ----------
    folder : Path
        The damaged store.
    target : Path
        A folder that is not there yet.

    Raises
    ------
    StoreNotFoundError
        There is no ``memory.db``.
    FileError
        There is something at ``target``.
    DamagedStoreError
        Not even the list of tables can be read.
    """
    path = folder / "memory.db"
    if not path.is_file():
        raise StoreNotFoundError(f"{folder} is no store: there is no memory.db in it")
    refuse_link(path)
    if target.exists():
        raise FileError(f"{target} is there already: give a folder that is not")
    with closing(connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            _refuse_views(db)
            meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise DamagedStoreError(
                f"{path}: nothing can be read of it any more ({error}): restore a copy"
            ) from error
        make_folders(target)
        with Record(target / "memory.db") as record:
            # What a lost row was referred to by stays, for the examination to find.
            record.database.connection().execute("PRAGMA foreign_keys = OFF")
            with record.transaction() as write:
                return _copy(db, meta, write)


def _refuse_views(db: sqlite3.Connection) -> None:
    """Refuse a database in which something else stands in for a table: it may never end."""
    found = db.execute("SELECT name FROM sqlite_master WHERE type <> 'table'")
    views = sorted({str(name) for (name,) in found} & {"meta", *rows.COLUMNS})
    if views:
        raise sqlite3.DatabaseError(f"{', '.join(views)}: a view, not a table")


def _copy(db: sqlite3.Connection, meta: dict[str, str], write: Writer) -> Salvaged:
    counts, wrong, broken = dict.fromkeys(rows.COLUMNS, 0), dict.fromkeys(rows.COLUMNS, 0), []
    for key, value in meta.items():
        if may_say(key, value):
            write.set_meta(key, value)
    check = RowCheck.of(write.connection)
    for table in rows.COLUMNS:
        whole, found = _readable(db, table)
        if not whole:
            broken.append(table)
        for row in found:
            right = row[:-1] if rows.whole(row) else None
            if right is not None and check.refusal(table, right):
                right = cleaned_row(table, right)
            if right is None or check.refusal(table, right):
                wrong[table] += 1
            else:
                write.connection.execute(rows.insert_sql(table), (*right, rows.row_crc(*right)))
                counts[table] += 1
    for key in COUNTERS:
        highest, bound = highest_id(write.connection, key)
        told = meta.get(key, "0")
        following = int(told) if may_say(key, told) else 0
        write.set_meta(key, str(following if highest < following <= bound else highest + 1))
    fulltext.refill(write.connection)
    write.tail = tail_of(write.connection)
    return Salvaged(counts, wrong, tuple(broken))


def _readable(db: sqlite3.Connection, table: str) -> tuple[bool, list[Row]]:
    """Return whether a table could be read to its end, and every row that could."""
    if len(rows.KEYS[table]) == 1 and table not in ("usage", "model_state"):
        return _by_number(db, table)
    found: dict[tuple[object, ...], Row] = {}
    sql = f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} ORDER BY "
    # Where the one end cannot be reached, the other half may be read from the other one.
    for end in ("", " DESC"):
        try:
            for row in db.execute(sql + ", ".join(name + end for name in rows.KEYS[table])):
                found[tuple(rows.key_of(table, row))] = row
            return True, list(found.values())
        except sqlite3.DatabaseError:
            continue
    return False, list(found.values())


def _by_number(db: sqlite3.Connection, table: str) -> tuple[bool, list[Row]]:
    whole, found = True, list[Row]()
    (key,) = rows.KEYS[table]
    place = rows.COLUMNS[table].index(key)
    sql = f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} WHERE {key} > ?"
    after, limit, jump = -(2**62), _AT_ONCE, 1
    while jump < _FARTHEST:
        try:
            some = db.execute(f"{sql} ORDER BY {key} LIMIT ?", (after, limit)).fetchall()
        except sqlite3.DatabaseError:
            whole = False
            if limit > 1:
                limit = 1
            else:
                after, jump = max(after, 0) + jump, 2 * jump
            continue
        if not some:
            break
        found += some
        after, jump = some[-1][place], 1
        limit = min(2 * limit, _AT_ONCE)
    return whole, found
