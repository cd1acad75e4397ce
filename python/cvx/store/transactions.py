"""Writing to the record: transactions, and blocks of them that become durable at once."""

from __future__ import annotations

import itertools
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from cvx.errors import ReadOnlyError, RecordIOError, StoreError
from cvx.store.failpoints import reach
from cvx.store.following import Follower, typed_error
from cvx.store.lock import FileLock, Tail
from cvx.store.reads import Reads
from cvx.store.writer import Writer

_NUMBERS_AT_ONCE = 64
MOST_LOG = 16 * 2**20
"""Bytes of the write-ahead log between transactions, unless somebody reads all the while."""
_PATIENCE_MS, _USUAL_PATIENCE_MS = 100, 5_000
"""How long SQLite waits for readers: to shorten the log, and else."""


class Transactions(Reads):
    """The writing half of a record.

    Attributes
    ----------
    blocks_taken_back : int
        How many blocks of transactions ended with an error, through this object.
    """

    blocks_taken_back: int
    _refusal: str | None
    _clock: Callable[[], int]
    _writing: bool
    _block: int | None
    _followers: list[Follower]
    _file: FileLock | None
    _most_log: int
    _numbers: Iterator[int]

    @property
    def frozen(self) -> bool:
        """Whether it refuses to be written to."""
        return self._refusal is not None

    def refuse_writes(self, why: str) -> None:
        """Let nothing be written from here on; the error says why."""
        self._refusal = why

    def follow(self, follower: Follower) -> None:
        """Tell ``follower`` of every transaction from now on."""
        self._followers.append(follower)

    def follower_of(self, index: object) -> Any:
        """Return what keeps an index level with the record, None where nothing does."""
        found = (one for one in self._followers if getattr(one, "index", None) is index)
        return next(found, None)

    def refresh(self) -> None:
        """Let the followers see what other processes committed."""
        for follower in self._followers:
            follower.refresh()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other writer out, without a transaction; not inside one."""
        # The file first: while another process has it, this one's threads go on reading.
        with self._file or nullcontext(), self._lock:
            yield

    @contextmanager
    def typed_errors(self) -> Iterator[None]:
        """Turn the errors of SQLite into those of cvx."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            typed = typed_error(self.path, error)
            if typed is error:
                raise
            raise typed from error

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Open the one door for writing: all of the block is stored, or none of it.

        Yields
        ------
        Writer
            What may be written.

        Raises
        ------
        StoreError
            A transaction of this record is open already in this thread.
        StoreError, ReadOnlyError
            The record was closed, was opened before a fork, or may only be read.
        RecordIOError
            The disk is full or failed; nothing was stored.
        """
        self._writable()
        in_block = self._block == threading.get_ident()
        with nullcontext() if in_block else self.locked():
            db = self._writable()
            if self._writing:
                raise StoreError(
                    f"a transaction of {self.path} is open already: write inside that one"
                )
            self._check_not_reading(db, in_block)
            self._writing = True
            try:
                with self.typed_errors():
                    yield from self._part(db) if in_block else self._alone(db)
            finally:
                self._writing = False
                for follower in self._followers:
                    follower.ended()

    def _check_not_reading(self, db: sqlite3.Connection, in_block: bool) -> None:
        if db.in_transaction and not in_block:
            raise StoreError(
                f"{self.path} is being read by this thread: write after that has ended"
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make every transaction of the block durable at its end, or none of them.

        What is written can be read at once through this record, by nobody else before the end.
        Other threads and processes that want to write wait that long. A transaction that fails is
        taken back alone; an error that leaves the block takes back all, and what was built on
        the record in RAM, such as an ``ActiveMemory``, must be made anew.

        Raises
        ------
        StoreError
            A transaction, or another such block, is open already in this thread.
        StoreError, ReadOnlyError
            The record was closed, was opened before a fork, or may only be read.
        RecordIOError
            The disk is full or failed; nothing of the block was stored.
        """
        self._writable()
        with self.locked():
            db = self._writable()
            if self._writing or self._block is not None:
                raise StoreError(
                    f"a transaction of {self.path} is open already: end that one first"
                )
            self._check_not_reading(db, in_block=False)
            with self.typed_errors():
                self._block = threading.get_ident()
                try:
                    db.execute("BEGIN IMMEDIATE")
                    yield
                    self._check_block(db)
                    self._commit(db, self.tail())
                except BaseException:
                    _take_back(db)
                    self._numbers = iter(())
                    self.blocks_taken_back += 1
                    for follower in self._followers:
                        follower.taken_back()
                    raise
                finally:
                    self._block = None

    def take_decision_number(self) -> int:
        """Return a number for a decision that nobody else has or ever gets.

        Numbers are reserved by the block, each in a transaction of its own.
        """
        with self._lock:
            number = next(self._numbers, None)
            if number is None:
                self._numbers = self._more_numbers()
                number = next(self._numbers)
            return number

    def _more_numbers(self) -> Iterator[int]:
        if self.frozen:
            return itertools.count(int(self.meta("next_decision") or 0))
        try:
            with self.transaction() as write:
                return iter(write.take_decisions(_NUMBERS_AT_ONCE))
        except RecordIOError:
            # Reading goes on where nothing can be written: numbers that nobody else will draw.
            return itertools.count(random.SystemRandom().getrandbits(44) + 2**44)

    @property
    def writing(self) -> bool:
        """Whether something is written that is not durable yet."""
        return self._writing or self._block is not None

    def _writable(self) -> sqlite3.Connection:
        db = self._connection()
        if self._refusal is not None:
            raise ReadOnlyError(self._refusal)
        return db

    def _alone(self, db: sqlite3.Connection) -> Iterator[Writer]:
        db.execute("BEGIN IMMEDIATE")
        try:
            reach("transaction.begun")
            write = self._writer(db)
            yield write
            write.finish()
            reach("transaction.written")
            self._commit(db, write.tail)
        except BaseException:
            _take_back(db)
            raise

    def _check_block(self, db: sqlite3.Connection) -> None:
        # After some I/O errors SQLite takes everything back by itself; a savepoint would then
        # begin, and commit, a transaction of its own.
        if not db.in_transaction:
            raise RecordIOError(
                f"{self.path}: an I/O error took back all of the block: leave it, make room, and "
                "write it again"
            )

    def _part(self, db: sqlite3.Connection) -> Iterator[Writer]:
        self._check_block(db)
        db.execute("SAVEPOINT part")
        try:
            reach("transaction.begun")
            write = self._writer(db)
            yield write
            write.finish()
            reach("transaction.written")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK TO part")
                db.execute("RELEASE part")
            raise
        db.execute("RELEASE part")

    def _writer(self, db: sqlite3.Connection) -> Writer:
        write = Writer(db, self._clock())
        for follower in self._followers:
            follower.begun(write)
        return write

    def _commit(self, db: sqlite3.Connection, tail: Tail) -> None:
        db.execute("COMMIT")
        reach("transaction.committed")
        if self._file is not None:
            # What is written there is a hint: the record is whole without it.
            with suppress(OSError):
                self._file.note(tail)
        reach("tail.written")
        self._shorten_log(db)

    def _shorten_log(self, db: sqlite3.Connection) -> None:
        """Write the log back where a large transaction or a long read has left it too long."""
        # It is committed: whatever fails here is tried again after another one.
        with suppress(OSError, sqlite3.Error):
            size = 0 if self._file is None else Path(f"{self.path}-wal").stat().st_size
            if size <= MOST_LOG:
                self._most_log = MOST_LOG
            if size <= self._most_log:
                return
            db.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
            try:
                busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                db.execute(f"PRAGMA busy_timeout = {_USUAL_PATIENCE_MS}")
            # While somebody reads what is in it, not again after every transaction.
            self._most_log = size + MOST_LOG // 4 if busy else MOST_LOG


def _take_back(db: sqlite3.Connection) -> None:
    # After an I/O error SQLite may have taken it back by itself.
    if db.in_transaction:
        db.execute("ROLLBACK")
