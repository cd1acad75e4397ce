"""The base of every writer: counters, checked rows, and the journal."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from cvx.errors import DamagedStoreError
from cvx.store import rows
from cvx.store.lock import Tail
from cvx.validation import FURTHEST

_COUNTERS = ("next_node", "next_event", "next_decision")


def _counter(name: str, told: object) -> int:
    if (
        not isinstance(told, str)
        or not re.fullmatch("[0-9]{1,16}", told)
        or int(told) > rows.MOST_ID
    ):
        raise DamagedStoreError(
            f"the record says {str(told)[:20]} of {name}, from which no id can be given: "
            "`cvx doctor --repair` puts it right"
        )
    return int(str(told))


class Journalling:
    """An open transaction that can count, put rows and keep the journal.

    Attributes
    ----------
    recorded : int
        The time of recording of everything in the transaction.
    tail : Tail
        The end of the journal so far.
    next_node, next_event, next_decision : int
        The first ids that were never given.
    """

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._db = connection
        *tail, last = connection.execute(
            "SELECT seq, chain, recorded FROM journal ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0, 0, now - 1)
        if not all(type(number) is int for number in tail):
            raise DamagedStoreError(
                f"the journal ends with {tail}, which is no change: save what is sound with "
                "`cvx doctor --salvage`"
            )
        if type(last) is not int or last >= FURTHEST:
            # A time that nobody wrote here: what follows it goes on from the last that was.
            sound = "SELECT ifnull(max(recorded), 0) FROM journal WHERE recorded < ?"
            last = connection.execute(sound, (FURTHEST,)).fetchone()[0]
        self.tail = Tail(*tail)
        self.recorded = max(now, last + 1)
        found = dict(
            connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?, ?)", _COUNTERS)
        )
        self._stored = {name: _counter(name, found.get(name)) for name in _COUNTERS}
        self.next_node = self._stored["next_node"]
        self.next_event = self._stored["next_event"]
        self.next_decision = self._stored["next_decision"]

    @property
    def connection(self) -> sqlite3.Connection:
        """The database, inside the transaction."""
        return self._db

    def finish(self) -> None:
        """Store what the transaction counted; called once, before the commit."""
        for name, stored in self._stored.items():
            value = getattr(self, name)
            if value != stored:
                self.set_meta(name, str(value))

    def erased_after(self, seq: int) -> bool:
        """Return whether something may have been erased after a number of the journal."""
        found = self._db.execute(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE seq > ?1 AND op = 'erase')"
            " OR (SELECT min(seq) FROM journal) > ?1 + 1",
            (seq,),
        )
        return bool(found.fetchone()[0])

    def journal(self, op: str, body: object) -> None:
        """Add a row to the journal."""
        text_of_body = json.dumps(body, separators=(",", ":"), allow_nan=False)
        seq, chain = self.tail.seq + 1, zlib.crc32(text_of_body.encode(), self.tail.chain)
        self._put("journal", [(seq, self.recorded, op, text_of_body, chain)])
        self.tail = Tail(seq, chain)

    def _put(
        self, table: str, values: Iterable[tuple[object, ...]], *, replace: bool = False
    ) -> None:
        self._db.executemany(
            rows.insert_sql(table, replace=replace), ((*row, rows.row_crc(*row)) for row in values)
        )

    def _overwrite(self, table: str, values: Iterable[tuple[object, ...]]) -> None:
        """Put rows in the place of those with their keys, and what was there into the journal."""
        names, keys = rows.COLUMNS[table], rows.KEYS[table]
        listed = list(values)
        changes = []
        for row in listed:
            key = [row[names.index(name)] for name in keys]
            changes.append([table, key, self._row(table, key)])
        self._put(table, listed, replace=True)
        if changes:
            self.journal("row", changes)

    def _remove(self, table: str, where: str, values: Sequence[object]) -> None:
        """Take rows away, and put what was there into the journal."""
        names, keys = rows.COLUMNS[table], rows.KEYS[table]
        found = self._db.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {where}", values)
        changes = [[table, [row[names.index(name)] for name in keys], row] for row in found]
        self._db.execute(f"DELETE FROM {table} WHERE {where}", values)
        if changes:
            self.journal("row", changes)

    def _row(self, table: str, key: Sequence[object]) -> tuple[Any, ...] | None:
        where = " AND ".join(f"{name} = ?" for name in rows.KEYS[table])
        found: tuple[Any, ...] | None = self._db.execute(
            f"SELECT {', '.join(rows.COLUMNS[table])} FROM {table} WHERE {where}", key
        ).fetchone()
        return found

    def _renew(self, table: str, where: str, keys: Sequence[object]) -> None:
        self._db.executemany(rows.renew_crc_sql(table, where), ((key,) for key in keys))

    def set_meta(self, key: str, value: str) -> None:
        """Store what the record says of itself under a key."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def take_nodes(self, n: int) -> range:
        """Return the next n node ids; none of them was given before, or ever will be again."""
        first, self.next_node = self.next_node, self.next_node + n
        return range(first, first + n)

    def take_decisions(self, n: int) -> range:
        """Return the next n decision ids; none of them was given before, or ever will be again."""
        first, self.next_decision = self.next_decision, self.next_decision + n
        return range(first, first + n)
