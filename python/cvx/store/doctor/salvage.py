"""Saves what is sound of a damaged store into a new one."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvx.arguments import a_folder
from cvx.errors import DamagedStoreError, FileError, StoreNotFoundError
from cvx.store import fulltext, rows
from cvx.store.database import connect_to_read, describe, tail_of
from cvx.store.doctor.record_checks import (
    COUNTERS,
    PLACEHOLDER,
    VECTORS,
    breaks,
    first_kept,
    gaps,
    highest_id,
    orphans,
)
from cvx.store.files import refuse_foreign
from cvx.store.history import FIRST_KEPT
from cvx.store.new_store import founded
from cvx.store.row_validation import RowCheck, may_say
from cvx.store.schema import check_version
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer
from cvx.validation import LAST_RECORDED, cleaned

Row = tuple[Any, ...]
_DEEPEST = 3
"""How many rows stand on each other: a link on an alias, that on its event."""
_MOST_LOST = 1_000_000
"""So many missing changes are marked as lost: a larger gap is that of a number nobody wrote."""
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
        Rows of each table that could be read and are left out: they were not what was written, or
        refer to one that is gone.
    broken : tuple of str
        Tables with parts that could not be read.
    """

    counts: dict[str, int]
    wrong: dict[str, int]
    broken: tuple[str, ...]


def repair(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Salvaged:
    """Save what is sound of a damaged memory into a new one, and build its index.

    The damaged one is only read, and nothing of it is followed but the tables of a record. What
    hangs on a row that is lost goes with it, but a step or a decision whose episode is gone is kept
    without; texts that cannot be stored are cleaned; changes that the record lacks are gone.

    Parameters
    ----------
    path : str or path
        The folder of the damaged memory.
    target : str or path
        A folder that is not there yet.

    Raises
    ------
    InvalidInputError
        A path that no folder can have.
    StoreNotFoundError
        There is no ``memory.db``.
    FileError
        There is something at ``target``.
    RecordIOError
        ``target`` cannot be made or written; nothing of it is left.
    StoreVersionError
        It is of another version, which has other columns.
    DamagedStoreError
        Not even the list of tables can be read.
    """
    new = a_folder("target", target)
    saved = _saved(a_folder("path", path), new)
    kind = IndexKind.of(describe(new))
    if kind is not None:
        with closing(Store(new, kind)) as store:
            store.snapshot()
    return saved


def _saved(folder: Path, target: Path) -> Salvaged:
    """Copy every row that can be read, and is right, into a new record."""
    path = folder / "memory.db"
    if not path.is_file():
        raise StoreNotFoundError(
            f"{folder} is no store, there is no memory.db in it: restore a copy"
        )
    refuse_foreign(path)
    if os.path.lexists(target):
        raise FileError(f"{target} is there already: give a folder that is not")
    with ExitStack() as opened:
        try:
            db = opened.enter_context(closing(connect_to_read(path)[0]))
            db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            # Another process may write meanwhile: all that is read is of one moment.
            db.execute("BEGIN")
            _refuse_views(db)
            meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise DamagedStoreError(
                f"{path}: nothing can be read of it any more ({error}): restore a copy"
            ) from error
        version = str(meta.get("schema_version"))
        if re.fullmatch("[1-9][0-9]{0,8}", version):
            check_version(int(version), str(folder))
        record = opened.enter_context(founded(target))
        # What a lost row was referred to by is looked for once all are there.
        record.database.connection().execute("PRAGMA foreign_keys = OFF")
        with record.transaction() as write:
            return _copy(db, meta, write)


def _refuse_views(db: sqlite3.Connection) -> None:
    """Refuse a database in which something else stands in for a table: it may never end."""
    found = db.execute("SELECT name FROM sqlite_master WHERE type <> 'table'")
    if views := sorted({str(name) for (name,) in found} & {"meta", *rows.COLUMNS}):
        raise sqlite3.DatabaseError(f"{', '.join(views)}: a view, not a table")


def _copy(db: sqlite3.Connection, meta: dict[str, str], write: Writer) -> Salvaged:
    new = write.connection
    counts, wrong, broken = dict.fromkeys(rows.COLUMNS, 0), dict.fromkeys(rows.COLUMNS, 0), []
    kept = {key: value for key, value in meta.items() if may_say(key, value)}
    if FIRST_KEPT in kept:
        kept[FIRST_KEPT] = str(first_kept(db))
    # Who opens it says anew what is not known of the vectors.
    unknown = () if kept.keys() >= {*VECTORS} else (*VECTORS, "index")
    for key, value in kept.items():
        if key not in unknown:
            write.set_meta(key, value)
    check = RowCheck.of(new)
    for table in rows.COLUMNS:
        whole, found = _readable(db, table)
        if not whole:
            broken.append(table)
        for row in found:
            right = row[:-1] if rows.whole(row) else None
            if right is not None and check.refusal(table, right):
                right = tuple(map(_clean, rows.COLUMNS[table], right))
            if right is None or check.refusal(table, right):
                wrong[table] += 1
            else:
                new.execute(rows.insert_sql(table), (*right, rows.row_crc(*right)))
                counts[table] += 1
    for table in _without_orphans(new):
        counts[table] -= 1
        wrong[table] += 1
    for key in COUNTERS:
        highest, bound = highest_id(new, key)
        told = meta.get(key, "0")
        following = int(told) if may_say(key, told) else 0
        write.set_meta(key, str(following if highest < following <= bound else highest + 1))
    fulltext.refill(new)
    missing = [*gaps(new)]
    for gap in missing:
        _fill_gap(new, *(int(str(number)) for number in gap.key))
    _put_in_order(new)
    write.tail = tail_of(new)
    if missing or next(breaks(new, ()), None) is not None:
        # No index follows what came before.
        write.journal("erase", [])
    return Salvaged(counts, wrong, tuple(broken))


def _without_orphans(db: sqlite3.Connection) -> list[str]:
    """Remove what refers to a row that is gone; return the table of each that went."""
    went = []
    for _ in range(_DEEPEST):
        for one in [*orphans(db)]:
            table = str(one.table)
            condition = " AND ".join(f"{name} = ?" for name in rows.KEYS[table])
            if table in ("events", "decisions"):
                rows.update(db, table, condition, one.key, {"episode": None})
            else:
                db.execute(f"DELETE FROM {table} WHERE {condition}", one.key)
                went.append(table)
    return went


def _clean(name: str, value: Any) -> Any:
    """Return a value of a column, another one where it cannot be stored."""
    if name in ("tags", "metadata"):
        with suppress(ValueError, RecursionError):
            return json.dumps(cleaned(json.loads(value)), separators=(",", ":"))
    if name == "recorded" and type(value) is int:
        # A time that nobody wrote; what was recorded then is right all the same.
        return value if 0 <= value < LAST_RECORDED else 0
    return cleaned(value) if isinstance(value, str) else value


def _fill_gap(db: sqlite3.Connection, first: int, last: int) -> None:
    """Mark changes as lost, so that the journal counts on."""
    before = db.execute(
        "SELECT recorded, chain FROM journal WHERE seq < ? ORDER BY seq DESC LIMIT 1", (first,)
    ).fetchone()
    recorded, chain = before or (0, 0)
    if last - first >= _MOST_LOST:
        raise DamagedStoreError(
            f"{last - first + 1:,} changes are missing before {last}, and at most {_MOST_LOST:,} "
            "are marked as lost: restore a copy"
        )
    for seq in range(first, last + 1):
        row = (seq, recorded, PLACEHOLDER, "[]", chain)
        db.execute(rows.insert_sql("journal"), (*row, rows.row_crc(*row)))


def _put_in_order(db: sqlite3.Connection) -> None:
    """Let no change be recorded before the one before it, and no row after the last."""
    kept = [0, 0]
    listed = db.execute("SELECT seq, recorded FROM journal ORDER BY seq").fetchall()
    for _, recorded in listed:
        if kept[-2] <= recorded < kept[-1]:
            # The one before alone is late.
            kept[-1] = recorded
        kept.append(max(recorded, kept[-1]))
    kept = kept[2:]
    moved = [(now, seq) for (seq, was), now in zip(listed, kept, strict=True) if was != now]
    db.executemany("UPDATE journal SET recorded = ? WHERE seq = ?", moved)
    if moved:
        db.execute(rows.renew_crc_sql("journal", "1"))
    for table, names in rows.COLUMNS.items():
        if kept and "recorded" in names:
            db.execute(f"UPDATE {table} SET recorded = ?1 WHERE recorded > ?1", kept[-1:])
            db.execute(rows.renew_crc_sql(table, "recorded = ?"), kept[-1:])


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
