"""Repairs damaged rows, orphans and gaps, or moves them aside with what depends on them."""

from __future__ import annotations

import base64
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cvx.errors import DamagedStoreError
from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.doctor.record_checks import PLACEHOLDER
from cvx.store.record import Record
from cvx.store.row_validation import RowCheck
from cvx.store.rows import row_crc
from cvx.store.schema import SET_ASIDE
from cvx.store.writer import Writer
from cvx.validation import cleaned

Row = tuple[Any, ...]
_MOST_BITS = 400_000
"""Larger rows are not tried: it would take minutes."""


def put_right(row: Sequence[object], crc: object) -> Row | None:
    """Return a row as it was written, if a single flipped bit explains its checksum.

    Parameters
    ----------
    row : sequence
        Its values, without the checksum; text that is no UTF-8 with surrogate escapes.
    crc : object
        The checksum that is stored with it.

    Returns
    -------
    tuple or None
        The values. They are those of ``row`` where the flip was in the checksum itself.

    Examples
    --------
    >>> crc = row_crc(1, "a mug", 0.5)
    >>> put_right((1, "a muf", 0.5), crc), put_right((1, "a cup", 0.5), crc)
    ((1, 'a mug', 0.5), None)
    """
    if not isinstance(crc, int):
        return None
    try:
        if (row_crc(*row) ^ crc).bit_count() == 1:
            return tuple(row)
    except (TypeError, ValueError):
        return None
    if sum(map(_bits, row)) > _MOST_BITS:
        return None
    for place, value in enumerate(row):
        for other in _flipped(value):
            candidate = (*row[:place], other, *row[place + 1 :])
            if row_crc(*candidate) == crc:
                return candidate
    return None


def _bits(value: object) -> int:
    if isinstance(value, bytes):
        return 8 * len(value)
    return 32 * len(value) if isinstance(value, str) else 64


def _flipped(value: object) -> Iterator[object]:
    """Yield everything that the value may have been, one bit away in the file."""
    if isinstance(value, int):
        yield from (other for bit in range(64) if -(2**63) <= (other := value ^ (1 << bit)) < 2**63)
    elif isinstance(value, float):
        (raw,) = struct.unpack("<Q", struct.pack("<d", value))
        for bit in range(64):
            yield struct.unpack("<d", struct.pack("<Q", raw ^ (1 << bit)))[0]
        # A whole number is kept as an integer in the file, also where the column is a REAL.
        if value.is_integer() and abs(value) < 2**62:
            yield from (float(int(value) ^ (1 << bit)) for bit in range(48))
    elif isinstance(value, bytes):
        yield from _bytes_flipped(value)
    elif isinstance(value, str):
        for raw_text in _bytes_flipped(value.encode("utf-8", "surrogateescape")):
            try:
                yield raw_text.decode("utf-8")
            except UnicodeDecodeError:
                continue


def _bytes_flipped(raw: bytes) -> Iterator[bytes]:
    changed = bytearray(raw)
    for at in range(len(changed)):
        for bit in range(8):
            changed[at] ^= 1 << bit
            yield bytes(changed)
            changed[at] ^= 1 << bit


TABLE = "set_aside"


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
    """Put right what can be, and move the rest into ``set_aside``, inside a transaction."""
    out = Mended()
    listed = list(findings)
    for one in listed:
        if one.check is Check.ROW and one.table is not None:
            _damaged(write, one.table, one.key, out)
        elif one.check is Check.VALUE and one.table is not None:
            _unstorable(write, one.table, one.key, out)
    for one in listed:
        if one.check is Check.ORPHAN and one.table is not None:
            _orphan(write, one, out)
        elif one.check is Check.JOURNAL_GAP:
            first, last = (int(str(number)) for number in one.key)
            _fill_gap(write, first, last)
            out.done.append(f"marked the lost changes {first}..{last} in the journal")
    return out


def _damaged(write: Writer, table: str, key: Sequence[object], out: Mended) -> None:
    db = write.connection
    row = _stored(db, table, key)
    if row is None:
        return
    shown = f"{table} {list(key)}"
    right = put_right(row[:-1], row[-1])
    if right is not None and _rewrite(db, table, key, right):
        out.done.append(f"put {shown} right: one bit had flipped, the checksum says which")
        out.texts_changed |= table in ("events", "aliases")
        return
    why = "its checksum did not hold"
    if table == "journal":
        _mark(write, int(str(key[0])), why, out)
        return
    _move_aside(write, table, key, row, why, out)


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
    why = why or "its key is taken"
    if table == "journal":
        _mark(write, int(str(key[0])), why, out)
        return
    _move_aside(write, table, key, row, why, out)


def cleaned_row(table: str, row: Row) -> Row:
    """Return a row, without its checksum, in which what cannot be stored is replaced."""
    return tuple(_clean(name, value) for name, value in zip(rows.COLUMNS[table], row, strict=True))


def _clean(name: str, value: Any) -> Any:
    if name in ("tags", "metadata"):
        with suppress(ValueError, RecursionError):
            return json.dumps(cleaned(json.loads(value)), separators=(",", ":"))
    return cleaned(value) if isinstance(value, str) else value


def _move_aside(
    write: Writer, table: str, key: Sequence[object], row: Row, why: str, out: Mended
) -> None:
    """Move a row into ``set_aside`` with what only makes sense beside it."""
    db, shown = write.connection, f"{table} {list(key)}"
    if table == "events":
        _event(write, row, why, out)
    elif table == "episodes":
        _detach(write, "events", row[0])
        _detach(write, "decisions", row[0])
        out.done.append(f"the steps of episode {row[0]} stay as events of their own")
    elif table == "aliases":
        out.texts_changed = True
        _hanging_on(write, [row[0]], out)
    set_row_aside(db, table, key, why, write.recorded)
    out.done.append(f"moved {shown} to the table set_aside: {why}")


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


def _event(write: Writer, row: Row, why: str, out: Mended) -> None:
    """Move aside what only makes sense with the event."""
    db, event = write.connection, row[0]
    out.texts_changed = True
    found = db.execute("SELECT node FROM aliases WHERE event_id = ?", (event,)).fetchall()
    aliases = [node for (node,) in found]
    own = row[rows.COLUMNS["events"].index("node")]
    nodes = [*aliases, own] if isinstance(own, int) else aliases
    _hanging_on(write, nodes, out)
    for node in aliases:
        set_row_aside(db, "aliases", (node,), f"its event {event}: {why}", write.recorded)
    set_row_aside(db, "usage", (f'["event",{event}]',), f"its event: {why}", write.recorded)


def _hanging_on(write: Writer, nodes: Sequence[int], out: Mended) -> None:
    db = write.connection
    for node in nodes:
        out.nodes.add(node)
        why = f"node {node} was set aside"
        for key in db.execute(
            "SELECT from_node, to_node, kind FROM links WHERE from_node = ?1 OR to_node = ?1",
            (node,),
        ).fetchall():
            set_row_aside(db, "links", key, why, write.recorded)
        for key in db.execute(
            "SELECT episode, node FROM decays WHERE node = ?", (node,)
        ).fetchall():
            set_row_aside(db, "decays", key, why, write.recorded)
        set_row_aside(db, "usage", (f'["node",{node}]',), why, write.recorded)


def _orphan(write: Writer, one: Finding, out: Mended) -> None:
    table = str(one.table)
    if table in ("events", "decisions"):
        _detach_one(write, table, one.key)
        out.done.append(f"detached {one.where} from an episode that does not exist")
        return
    set_row_aside(write.connection, table, one.key, one.what, write.recorded)
    out.texts_changed |= table == "aliases"
    if table == "aliases" and isinstance(one.key[0], int):
        out.nodes.add(one.key[0])
    out.done.append(f"moved {one.where} to the table set_aside: {one.what}")


def _detach(write: Writer, table: str, episode: Any) -> None:
    (key,) = rows.KEYS[table]
    for found in write.connection.execute(
        f"SELECT {key} FROM {table} WHERE episode = ?", (episode,)
    ).fetchall():
        _detach_one(write, table, found)


def _detach_one(write: Writer, table: str, key: Sequence[object]) -> None:
    db = write.connection
    row = _stored(db, table, key)
    if row is None or rows.row_crc(*row[:-1]) != row[-1]:
        return
    condition, values = _where(table, key)
    db.execute(f"UPDATE {table} SET episode = NULL WHERE {condition}", values)
    db.execute(rows.renew_crc_sql(table, condition), values)


def _mark(write: Writer, seq: int, why: str, out: Mended) -> None:
    set_row_aside(write.connection, "journal", (seq,), why, write.recorded)
    _fill_gap(write, seq, seq)
    out.done.append(f"moved journal [{seq}] to the table set_aside: {why}")


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
