"""Repairs damaged rows, orphans and gaps, or moves them aside with what depends on them."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cvx.errors import DamagedStoreError
from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.doctor.record_checks import PLACEHOLDER, orphans
from cvx.store.record import Record
from cvx.store.row_validation import RowCheck
from cvx.store.schema import SET_ASIDE
from cvx.store.writer import Writer
from cvx.validation import cleaned

Row = tuple[Any, ...]
TABLE = "set_aside"
_DEEPEST = 3
"""How many rows stand on each other: a link on an alias, that on its event."""


def _stored(db: sqlite3.Connection, table: str, key: Sequence[object]) -> Row | None:
    """Return a row with its checksum, however damaged; None where it is gone."""
    names = (*rows.COLUMNS[table], "crc")
    condition, values = _where(table, key)
    found: Row | None = db.execute(
        f"SELECT {', '.join(names)} FROM {table} WHERE {condition}", values
    ).fetchone()
    return found


def set_row_aside(
    db: sqlite3.Connection, table: str, key: Sequence[object], why: str, recorded: int
) -> None:
    """Move one row into the table ``set_aside``, as it reads now."""
    row = _stored(db, table, key)
    if row is None:
        return
    names = (*rows.COLUMNS[table], "crc")
    kept = {name: _plain(value) for name, value in zip(names, row, strict=True)}
    db.execute(SET_ASIDE)
    db.execute(
        f"INSERT INTO {TABLE} (recorded, why, from_table, row) VALUES (?, ?, ?, ?)",
        (recorded, why, table, json.dumps(kept)),
    )
    condition, values = _where(table, key)
    db.execute(f"DELETE FROM {table} WHERE {condition}", values)


def set_aside(record: Record) -> int:
    """Return how many rows repairs have moved here."""
    if not record.query("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)):
        return 0
    return int(record.query(f"SELECT count(*) FROM {TABLE}")[0][0])


def discard(record: Record) -> int:
    """Throw away for good what repairs have moved here; returns how many rows that were."""
    number = set_aside(record)
    if number:
        with record.transaction() as write:
            write.connection.execute(f"DROP TABLE {TABLE}")
        record.compact()
    return number


def _where(table: str, key: Sequence[object]) -> tuple[str, list[object]]:
    """Return the condition for one primary key, damaged text included."""
    conditions, values = list[str](), list[object]()
    for name, value in zip(rows.KEYS[table], key, strict=True):
        if isinstance(value, str):
            conditions.append(f"CAST({name} AS BLOB) = ?")
            values.append(value.encode("utf-8", "surrogateescape"))
        else:
            conditions.append(f"{name} IS ?")
            values.append(value)
    return " AND ".join(conditions), values


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value


_MOST_LOST = 1_000_000
"""So many missing changes are marked as lost: a larger gap is that of a number nobody wrote."""


@dataclass(slots=True)
class Mended:
    """What became of the rows.

    Attributes
    ----------
    done : list of str
        In words.
    nodes : set of int
        Nodes that no event has any more.
    texts_changed : bool
        Whether the text index is to be built anew.
    """

    done: list[str] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)
    texts_changed: bool = False


def mend(write: Writer, findings: Iterable[Finding]) -> Mended:
    """Clean what can be, and move the rest into ``set_aside``, inside a transaction."""
    out = Mended()
    for one in findings:
        if one.check is Check.ROW and one.table is not None:
            _move_aside(write, one.table, one.key, "its checksum did not hold", out)
        elif one.check is Check.VALUE and one.table is not None:
            _unstorable(write, one.table, one.key, out)
        elif one.check is Check.JOURNAL_GAP:
            first, last = (int(str(number)) for number in one.key)
            _fill_gap(write, first, last)
            out.done.append(f"marked the lost changes {first}..{last} in the journal")
    # What hung on a row that went is an orphan by now, and so is what hangs on that.
    for _ in range(_DEEPEST):
        for one in [*orphans(write.connection)]:
            _orphan(write, one, out)
    return out


def _unstorable(write: Writer, table: str, key: Sequence[object], out: Mended) -> None:
    """Replace what cannot be stored in the texts of a row; move it aside where that is no cure."""
    row = _stored(write.connection, table, key)
    if row is None:
        return
    clean = cleaned_row(table, row[:-1])
    why = RowCheck.of(write.connection).refusal(table, clean)
    if why is None and _rewrite(write.connection, table, key, clean):
        out.texts_changed = True
        out.done.append(f"replaced what cannot be stored in {table} {list(key)} by U+FFFD or null")
        return
    _move_aside(write, table, key, why or "its key is taken", out)


def cleaned_row(table: str, row: Row) -> Row:
    """Return a row, without its checksum, in which what cannot be stored is replaced."""
    return tuple(_clean(name, value) for name, value in zip(rows.COLUMNS[table], row, strict=True))


def _clean(name: str, value: Any) -> Any:
    if name in ("tags", "metadata"):
        with suppress(ValueError, RecursionError):
            return json.dumps(cleaned(json.loads(value)), separators=(",", ":"))
    return cleaned(value) if isinstance(value, str) else value


def _move_aside(write: Writer, table: str, key: Sequence[object], why: str, out: Mended) -> None:
    """Move a row into ``set_aside``; in the journal a mark says that something was there."""
    row = _stored(write.connection, table, key)
    if row is None:
        return
    if table in ("events", "aliases"):
        out.texts_changed = True
        node = row[rows.COLUMNS[table].index("node")]
        out.nodes |= {node} if isinstance(node, int) else set()
    set_row_aside(write.connection, table, key, why, write.recorded)
    if table == "journal":
        _fill_gap(write, int(str(key[0])), int(str(key[0])))
    out.done.append(f"moved {table} {list(key)} to the table set_aside: {why}")


def _rewrite(db: sqlite3.Connection, table: str, key: Sequence[object], right: Row) -> bool:
    names = rows.COLUMNS[table]
    condition, values = _where(table, key)
    assignments = ", ".join(f"{name} = ?" for name in (*names, "crc"))
    try:
        db.execute(
            f"UPDATE {table} SET {assignments} WHERE {condition}",
            (*right, rows.row_crc(*right), *values),
        )
    except sqlite3.IntegrityError:
        # Its true key is taken by now.
        return False
    return True


def _orphan(write: Writer, one: Finding, out: Mended) -> None:
    table = str(one.table)
    if table not in ("events", "decisions"):
        _move_aside(write, table, one.key, one.what, out)
        return
    condition, values = _where(table, one.key)
    write.connection.execute(f"UPDATE {table} SET episode = NULL WHERE {condition}", values)
    write.connection.execute(rows.renew_crc_sql(table, condition), values)
    out.done.append(f"detached {one.where} from an episode that does not exist")


def _fill_gap(write: Writer, first: int, last: int) -> None:
    db = write.connection
    before = db.execute(
        "SELECT recorded, chain FROM journal WHERE seq < ? ORDER BY seq DESC LIMIT 1", (first,)
    ).fetchone()
    recorded, chain = before or (0, 0)
    if last - first >= _MOST_LOST:
        raise DamagedStoreError(
            f"{last - first + 1:,} changes are missing before {last}, and at most {_MOST_LOST:,} "
            "are marked as lost: save what is sound with `cvx doctor --salvage`"
        )
    for seq in range(first, last + 1):
        row = (seq, recorded, PLACEHOLDER, "[]", chain)
        db.execute(rows.insert_sql("journal"), (*row, rows.row_crc(*row)))
