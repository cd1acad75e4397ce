"""Rows with their checksums, the journal, and where it ends."""

from __future__ import annotations

import json
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from cvx.errors import DamagedStoreError
from cvx.store import rows
from cvx.store.lock import Tail

T = TypeVar("T")


class Journalled(ABC):
    """Checked rows, and what the record says of itself.

    Attributes
    ----------
    damaged : dict of str to None
        The rows that were left out because they are not what was written, in the order in which
        they were met. Reading what was asked for by name raises instead.
    refused : set of int
        The nodes whose rows the index would not take: no recall shows their events.
    """

    path: str
    damaged: dict[str, None]
    refused: set[int]
    _lock: threading.RLock

    @abstractmethod
    def _connection(self) -> sqlite3.Connection:
        """Return the open connection."""

    @abstractmethod
    def typed_errors(self) -> AbstractContextManager[None]:
        """Turn the errors of SQLite into those of cvx."""

    @property
    def mutex(self) -> threading.RLock:
        """What keeps the threads of this process apart; may be taken again by its holder."""
        return self._lock

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the record in all reads of the block, whoever commits meanwhile.

        Blocks may stand inside each other and inside a transaction, which is a state of its own;
        nothing may be written inside one.
        """
        with self._lock:
            db = self._connection()
            if db.in_transaction:
                yield
                return
            with self.typed_errors():
                db.execute("BEGIN")
                try:
                    yield
                finally:
                    # After an I/O error SQLite may have ended it by itself.
                    if db.in_transaction:
                        db.execute("ROLLBACK")

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, unchecked."""
        with self._lock, self.typed_errors():
            return self._connection().execute(sql, values).fetchall()

    def _checked(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Return rows, every one as it was written, or raise what is wrong with one."""
        found = self._read(table, rest, values)
        for row in found:
            if not rows.whole(row):
                raise DamagedStoreError(
                    f"{self.path}: row {_key(table, row)} of {table} is not what was written: "
                    "restore a copy, or let doctor save the rest"
                )
        return found

    def _whole(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows that are as they were written, and note the others as damaged."""
        found = []
        for row in self._read(table, rest, values):
            if rows.whole(row):
                found.append(row)
            else:
                self.damaged[f"{table} {_key(table, row)}"] = None
        return found

    def _read(self, table: str, rest: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        names = ", ".join(rows.COLUMNS[table])
        return self.query(f"SELECT {names}, crc FROM {table} {rest}", values)

    def meta(self, key: str) -> str | None:
        """Return what the record says of itself under a key, or None."""
        found = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def told(self, key: str, kind: type[T]) -> T:
        """Return what the record says of itself under a key, JSON of a kind; an empty one if none.

        Raises
        ------
        DamagedStoreError
            It says something else.
        """
        said = self.meta(key)
        if said is None:
            return kind()
        try:
            value = json.loads(said)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kind):
            raise DamagedStoreError(
                f"{self.path} says {said[:40]!r} of {key}, which cvx never does: restore a copy"
            )
        return value

    def tail(self) -> Tail:
        """Return the end of the journal."""
        found = self.query("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1")
        return Tail(*found[0]) if found else Tail(0, 0)

    def reaches(self, tail: Tail) -> bool:
        """Return whether the journal once ended exactly so."""
        if tail.seq == 0:
            return True
        found = self.query("SELECT chain FROM journal WHERE seq = ?", (tail.seq,))
        return bool(found) and found[0][0] == tail.chain

    def keeps_changes_after(self, seq: int) -> bool:
        """Return whether the journal still has every row after a number."""
        first = self.query("SELECT min(seq) FROM journal")[0][0]
        return first is None or int(first) <= seq + 1

    def journal(self, after: int = 0, op: str | None = None) -> list[tuple[int, int, str, Any]]:
        """Return what changed after a number, of every kind or one: (seq, recorded, op, body)."""
        found = self._checked(
            "journal", "WHERE seq > ?1 AND (?2 IS NULL OR op = ?2) ORDER BY seq", (after, op)
        )
        return [(row[0], row[1], row[2], self._body(row)) for row in found]

    def query_after(self, recorded: int) -> list[tuple[str, Any]]:
        """Return what was journalled after a time, as (op, body), in order."""
        found = self._checked("journal", "WHERE recorded > ? ORDER BY seq", (recorded,))
        return [(row[2], self._body(row)) for row in found]

    def _body(self, row: tuple[Any, ...]) -> list[Any]:
        try:
            body = json.loads(row[3])
        except (ValueError, TypeError, RecursionError):
            body = None
        if not isinstance(body, list):
            raise DamagedStoreError(
                f"{self.path}: change {row[0]} of the journal cannot be read: let doctor repair it"
            )
        return body

    def data_version(self) -> int:
        """Return a number that differs after another connection has committed."""
        return int(self.query("PRAGMA data_version")[0][0])

    def damage(self) -> list[str]:
        """Read everything, and name each row or page that is not what was written."""
        with self._lock:
            db = self._connection()
            factory = db.text_factory
            db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            try:
                found = [f"{d.table} {list(d.key)}" for d in rows.damaged(db)]
                pages = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
            except sqlite3.DatabaseError as error:
                return [str(error)]
            finally:
                db.text_factory = factory
        return found + [page for page in pages if page != "ok"]


def _key(table: str, row: tuple[Any, ...]) -> list[object]:
    names = rows.COLUMNS[table]
    return [row[names.index(name)] for name in rows.KEYS[table]]
