"""Transactions of a record: one writer at a time, nested blocks, followers that are told."""

from __future__ import annotations

import itertools
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol

from cvx.errors import (
    ClockWarning,
    LockTimeoutError,
    ReadOnlyError,
    RecordIOError,
    StoreError,
    warn,
)
from cvx.store.database import Database, tail_of, take_back
from cvx.store.failpoints import reach
from cvx.store.lock import Tail
from cvx.store.writer import Writer

_NUMBERS_AT_ONCE = 64


class Follower(Protocol):
    """A protocol for parts that keep up with the record; each method does nothing by default."""

    def begun(self, write: Writer) -> None:
        """A transaction began: everything committed before it can be read."""
        del write

    def ended(self) -> None:
        """The transaction was committed or taken back."""
        return

    def taken_back(self) -> None:
        """Transactions that had ended were taken back, with all others of their block."""
        return

    def refresh(self) -> None:
        """Somebody is about to read."""
        return


_HOUR = 3_600_000_000


class Clock:
    """A clock of microseconds that is checked for jumps.

    One reading in the next century would put every later change there, since each is recorded
    after the one before it.

    Parameters
    ----------
    source : callable, optional
        Returns microseconds since 1970-01-01 UTC; the system's clock by default.
    """

    def __init__(self, source: Callable[[], int] | None = None) -> None:
        self._source = source or (lambda: time.time_ns() // 1000)
        self._before: tuple[int, int] | None = None
        self._warned = False

    def __call__(self) -> int:
        """Return the time."""
        passed, now = time.monotonic_ns() // 1000, self._source()
        if self._before is not None:
            expected = self._before[0] + passed - self._before[1]
            if now > expected + _HOUR:
                now = min(now, self._source())
        self._before = now, passed
        return now

    def compare(self, recorded: int, now: int) -> None:
        """Warn, once, where changes are recorded far ahead of the time that was read."""
        if recorded <= now + _HOUR or self._warned:
            return
        self._warned = True
        warn(
            f"the last change is recorded {(recorded - now) / 24 / _HOUR:,.1f} days ahead of this "
            "machine's clock: later ones are recorded right after it; set the clock right, or "
            "restore a copy",
            ClockWarning,
        )


class Transactions:
    """The part of a record that is about writing: transactions, and those who follow it.

    Parameters
    ----------
    database : Database
        Where is written.
    clock : callable, optional
        Returns the time of recording in microseconds since 1970-01-01 UTC; the system's by default.

    Attributes
    ----------
    followers : list of Follower
        Who is told of every transaction.
    taken_back : set of int
        Numbers of the blocks of transactions that ended with an error, through this object.
    """

    def __init__(self, database: Database, clock: Callable[[], int] | None) -> None:
        self.database = database
        self.followers: list[Follower] = []
        self.taken_back: set[int] = set()
        self._clock = clock if isinstance(clock, Clock) else Clock(clock)
        # Why nothing may be written, if so.
        self._refusal: str | None = None
        self._blocks = 0
        self._in_transaction = False
        # The thread that makes several transactions durable at once, if any.
        self._block_owner: int | None = None
        self._began: Tail | None = None
        self._numbers: Iterator[int] = iter(())

    def now(self) -> int:
        """Return the time of the clock of recording, in microseconds since 1970-01-01 UTC."""
        return self._clock()

    @property
    def writing(self) -> bool:
        """Whether something is written that is not durable yet."""
        return self._in_transaction or self._block_owner is not None

    @property
    def block(self) -> int | None:
        """The number of the block of transactions that this thread is in, None outside of any."""
        return self._blocks if self._block_owner == threading.get_ident() else None

    @property
    def frozen(self) -> bool:
        """Whether it refuses to be written to."""
        return self._refusal is not None

    def refuse_writes(self, why: str | None) -> None:
        """Let nothing be written from here on; the error says why. None: let it be again."""
        self._refusal = why

    def follow(self, follower: Follower) -> None:
        """Tell ``follower`` of every transaction from now on."""
        self.followers.append(follower)

    def refresh(self) -> None:
        """Let the followers see what other processes committed."""
        for follower in self.followers:
            follower.refresh()

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
        self.writable()
        database, in_block = self.database, self._block_owner == threading.get_ident()
        with nullcontext() if in_block else database.locked():
            db = self.writable()
            if self._in_transaction:
                raise StoreError(
                    f"a transaction of {database.path} is open already: write inside that one"
                )
            if not in_block:
                self._check_not_reading(db)
            self._in_transaction = True
            try:
                with database.typed_errors():
                    yield from self._part(db) if in_block else self._alone(db)
            finally:
                self._in_transaction, self._began = False, None
                for follower in self.followers:
                    follower.ended()

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
        self.writable()
        database = self.database
        with database.locked(), database.keep_followers():
            db = self.writable()
            if self.writing:
                raise StoreError(
                    f"a transaction of {database.path} is open already: end that one first"
                )
            self._check_not_reading(db)
            with database.typed_errors():
                self._block_owner = threading.get_ident()
                self._blocks += 1
                try:
                    db.execute("BEGIN IMMEDIATE")
                    yield
                    self._check_block(db)
                    database.commit(db, tail_of(db))
                except BaseException:
                    take_back(db)
                    self._numbers = iter(())
                    self.taken_back.add(self._blocks)
                    with database.follower_lock:
                        for follower in self.followers:
                            follower.taken_back()
                    raise
                finally:
                    self._block_owner = None

    def writable(self) -> sqlite3.Connection:
        """Return the connection, if it may be written to.

        Raises
        ------
        StoreError, ReadOnlyError
            The record was closed, was opened before a fork, or may only be read.
        """
        db = self.database.connection()
        if self._refusal is not None:
            raise ReadOnlyError(self._refusal)
        return db

    def take_decision_number(self) -> int:
        """Return a number for a decision that nobody else has or ever gets.

        Numbers are reserved by the block, each in a transaction of its own. While another thread or
        process writes, one is drawn at random: a read does not wait for it.
        """
        number = next(self._numbers, None)
        while number is None:
            if self.database.is_busy:
                return self.draw_decision_number()
            self._numbers = numbers = self._more_numbers()
            number = next(numbers, None)
        return number

    def _more_numbers(self) -> Iterator[int]:
        if self._refusal is not None:
            told = self.database.query("SELECT value FROM meta WHERE key = 'next_decision'")
            return itertools.count(int(told[0][0]) if told else 0)
        try:
            with self.database.patience(0.0), self.transaction() as write:
                return iter(write.take_decisions(_NUMBERS_AT_ONCE))
        except LockTimeoutError:
            return iter((self.draw_decision_number(),))
        except RecordIOError:
            # Reading goes on where nothing can be written.
            return itertools.count(self.draw_decision_number())

    @staticmethod
    def draw_decision_number() -> int:
        """Return a number that nobody else will draw, without a look at the record or its lock."""
        return random.SystemRandom().getrandbits(44) + 2**44

    def _check_not_reading(self, db: sqlite3.Connection) -> None:
        if db.in_transaction:
            raise StoreError(
                f"{self.database.path} is being read by this thread: write after that has ended"
            )

    def _check_block(self, db: sqlite3.Connection) -> None:
        # After some I/O errors SQLite takes everything back by itself; a savepoint would then
        # begin, and commit, a transaction of its own.
        if not db.in_transaction:
            raise RecordIOError(
                f"{self.database.path}: an I/O error took back all of the block: leave it, make "
                "room, and write it again"
            )

    def _alone(self, db: sqlite3.Connection) -> Iterator[Writer]:
        db.execute("BEGIN IMMEDIATE")
        try:
            write = yield from self._written(db)
            self.database.commit(db, write.tail)
        except BaseException:
            take_back(db)
            raise

    def _part(self, db: sqlite3.Connection) -> Iterator[Writer]:
        self._check_block(db)
        db.execute("SAVEPOINT part")
        try:
            yield from self._written(db)
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK TO part")
                db.execute("RELEASE part")
            raise
        db.execute("RELEASE part")

    def _written(self, db: sqlite3.Connection) -> Generator[Writer, None, Writer]:
        reach("transaction.begun")
        now = self._clock()
        write = Writer(db, now)
        self._began = write.tail
        self._clock.compare(write.recorded, now)
        for follower in self.followers:
            follower.begun(write)
        yield write
        write.finish()
        reach("transaction.written")
        return write
