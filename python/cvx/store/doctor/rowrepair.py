"""Damaged rows, orphans and gaps: put right, or moved aside with what hangs on them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cvx.errors import DamagedStoreError
from cvx.store import rows
from cvx.store.doctor import aside
from cvx.store.doctor.bitflip import put_right
from cvx.store.doctor.findings import Check, Finding
from cvx.store.doctor.history import PLACEHOLDER
from cvx.store.doctor.rowwise import row_check
from cvx.store.writer import Writer
from cvx.validation import cleaned

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
    row = aside.read(db, table, key)
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
    row = aside.read(write.connection, table, key)
    if row is None:
        return
    clean = cleaned_row(table, row[:-1])
    why = row_check(write.connection).refusal(table, clean)
    if why is None and _rewrite(write.connection, table, key, clean):
        out.texts_changed = True
        out.done.append(f"replaced what cannot be stored in {table} {list(key)} by U+FFFD or null")
        return
    why = why or "its key is taken"
    if table == "journal":
        _mark(write, int(str(key[0])), why, out)
        return
    _move_aside(write, table, key, row, why, out)


def cleaned_row(table: str, row: aside.Row) -> aside.Row:
    """Return a row, without its checksum, in which what cannot be stored is replaced."""
    return tuple(_clean(name, value) for name, value in zip(rows.COLUMNS[table], row, strict=True))


def _clean(name: str, value: Any) -> Any:
    if name in ("tags", "metadata"):
        with suppress(ValueError, RecursionError):
            return json.dumps(cleaned(json.loads(value)), separators=(",", ":"))
    return cleaned(value) if isinstance(value, str) else value


def _move_aside(
    write: Writer, table: str, key: Sequence[object], row: aside.Row, why: str, out: Mended
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
    aside.move(db, table, key, why, write.recorded)
    out.done.append(f"moved {shown} to the table set_aside: {why}")


def _rewrite(db: sqlite3.Connection, table: str, key: Sequence[object], right: aside.Row) -> bool:
    names = rows.COLUMNS[table]
    condition, values = aside.where(table, key)
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


def _event(write: Writer, row: aside.Row, why: str, out: Mended) -> None:
    """Move aside what only makes sense with the event."""
    db, event = write.connection, row[0]
    out.texts_changed = True
    found = db.execute("SELECT node FROM aliases WHERE event_id = ?", (event,)).fetchall()
    aliases = [node for (node,) in found]
    own = row[rows.COLUMNS["events"].index("node")]
    nodes = [*aliases, own] if isinstance(own, int) else aliases
    _hanging_on(write, nodes, out)
    for node in aliases:
        aside.move(db, "aliases", (node,), f"its event {event}: {why}", write.recorded)
    aside.move(db, "usage", (f'["event",{event}]',), f"its event: {why}", write.recorded)


def _hanging_on(write: Writer, nodes: Sequence[int], out: Mended) -> None:
    db = write.connection
    for node in nodes:
        out.nodes.add(node)
        why = f"node {node} was set aside"
        for key in db.execute(
            "SELECT from_node, to_node, kind FROM links WHERE from_node = ?1 OR to_node = ?1",
            (node,),
        ).fetchall():
            aside.move(db, "links", key, why, write.recorded)
        for key in db.execute(
            "SELECT episode, node FROM decays WHERE node = ?", (node,)
        ).fetchall():
            aside.move(db, "decays", key, why, write.recorded)
        aside.move(db, "usage", (f'["node",{node}]',), why, write.recorded)


def _orphan(write: Writer, one: Finding, out: Mended) -> None:
    table = str(one.table)
    if table in ("events", "decisions"):
        _detach_one(write, table, one.key)
        out.done.append(f"detached {one.where} from an episode that does not exist")
        return
    aside.move(write.connection, table, one.key, one.what, write.recorded)
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
    row = aside.read(db, table, key)
    if row is None or rows.row_crc(*row[:-1]) != row[-1]:
        return
    condition, values = aside.where(table, key)
    db.execute(f"UPDATE {table} SET episode = NULL WHERE {condition}", values)
    db.execute(rows.renew_crc_sql(table, condition), values)


def _mark(write: Writer, seq: int, why: str, out: Mended) -> None:
    aside.move(write.connection, "journal", (seq,), why, write.recorded)
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
