"""What keeps up with a record, and what the errors of SQLite are called here."""

from __future__ import annotations

import sqlite3
from typing import Protocol

from cvx.errors import DamagedStoreError, RecordIOError
from cvx.store.writer import Writer

_NO_ROOM = ("disk is full", "disk I/O error")
_NO_ACCESS = ("unable to open database file", "readonly database")
# "malformed JSON" too: JSON in a record is written by cvx alone, so that one is a damaged row.
_DAMAGED = ("malformed", "not a database", "corrupt", "decode to UTF-8")


class Follower(Protocol):
    """What keeps up with a record; ``Record.follow`` adds one."""

    def begun(self, write: Writer) -> None:
        """A transaction began: everything committed before it can be read."""
        ...

    def ended(self) -> None:
        """The transaction was committed or taken back."""
        ...

    def taken_back(self) -> None:
        """Transactions that had ended were taken back, with all others of their block."""
        ...

    def refresh(self) -> None:
        """Somebody is about to read."""
        ...


def typed_error(path: str, error: sqlite3.DatabaseError) -> Exception:
    """Return the error of cvx for one of SQLite, or the same where there is none."""
    said = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return error
    if any(words in said for words in _NO_ROOM):
        return RecordIOError(
            f"{path}: {said}: nothing of the transaction was stored; make room, then write again"
        )
    if any(words in said for words in _NO_ACCESS):
        return RecordIOError(
            f"{path}: {said}: make it and its folder writable, or open it with read_only=True"
        )
    if any(words in said for words in _DAMAGED):
        return DamagedStoreError(
            f"{path} is damaged ({said}): restore a copy, or let doctor save the rest"
        )
    return error
