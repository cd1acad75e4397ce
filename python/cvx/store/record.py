"""The record: episodes, events, links, usage, decisions and model state in one SQLite database."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from cvx.errors import (
    RecordIOError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from cvx.store import rows
from cvx.store.failpoints import reach
from cvx.store.following import Follower, typed_error
from cvx.store.lock import FileLock, Tail, keep_after_fork, tail_in
from cvx.store.ownfiles import make_private, refuse_link, refuse_network
from cvx.store.reading import Still, connect, connect_to_read
from cvx.store.schema import SCHEMA_VERSION, migrate, version_of
from cvx.store.transactions import MOST_LOG, Transactions

_CACHE_KIB = 32_768
# Each checkpoint waits for the disk twice: seldom is cheaper, and 16 MB are read back in no time.
_CHECKPOINT_PAGES = 3_000


class Record(Transactions):
    """Everything that was written, in the standard library's SQLite.

    Reading is done by the methods here; writing only inside ``transaction``, one writer at a time
    over all threads and processes. Every row carries a checksum, and every row read is checked.

    Parameters
    ----------
    path : str or Path, default ":memory:"
        A database file, or ":memory:" for one that lives as long as the object. The lock is the
        file LOCK beside a ``memory.db``, or the file's name with ``.lock``.
    read_only : bool, default False
        Read it without writing anything, also where nothing can be written. The database must be
        there, and of this version.
    clock : callable, optional
        Returns the time of recording in microseconds since 1970-01-01 UTC; the system's by
        default. A transaction is recorded later than the one before it, whatever the clock says.

    Raises
    ------
    StoreVersionError
        The file was written by a later version of cvx, or is no record at all.
    DamagedStoreError
        It has triggers, views, tables or indexes that no record has, or not those of one.
    StoreError
        The file cannot be opened.
    StoreNotFoundError
        There is nothing in it, and it is only to be read.

    Examples
    --------
    >>> from cvx.types import Episode, Event
    >>> record = Record()
    >>> with record.transaction() as write:
    ...     episode_id = write.add_episode(Episode(entity_id=0, reward=1.0, steps=(
    ...         Event(entity_id=0, timestamp=0, text="a door", action="open door"),)))
    >>> [episode.actions for episode in record.episodes()]
    [('open door',)]
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        clock: Callable[[], int] | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = str(path)
        self._refusal = None
        self._still: Still | None = None
        self.damaged: dict[str, None] = {}
        self.refused: set[int] = set()
        self.blocks_taken_back = 0
        self._clock = clock or (lambda: time.time_ns() // 1000)
        self._lock = threading.RLock()
        self._writing = False
        # The thread that makes several transactions durable at once, if any.
        self._block: int | None = None
        self._closed = False
        self._most_log = MOST_LOG
        self._followers: list[Follower] = []
        self._numbers: Iterator[int] = iter(())
        self._process = os.getpid()
        self._file: FileLock | None = None
        try:
            if read_only:
                self._db, self._still = connect_to_read(Path(path))
            else:
                if self.path != ":memory:":
                    refuse_link(Path(path))
                    make_private(Path(path))
                self._db = connect(self.path)
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be opened ({error}): give a file in an existing folder"
            ) from error
        try:
            if read_only:
                self._open_to_read()
            else:
                self._open()
        except BaseException:
            self._db.close()
            if self._file is not None:
                self._file.close()
            raise
        _open_records[id(self)] = self._db

    def _open(self) -> None:
        # Looked at before anything is written: a file of somebody else stays as it is.
        self._version()
        self._db.create_function("cvx_crc", -1, rows.row_crc, deterministic=True)
        if self.path != ":memory:":
            refuse_network(Path(self.path).parent)
            self._file = FileLock(self._lock_path())
        with self.locked(), self.typed_errors():
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            self._db.execute(f"PRAGMA journal_size_limit = {MOST_LOG}")
            version = self._version()
            if version != SCHEMA_VERSION:
                migrate(self._db, version)
            if self._file is not None and self._file.tail() is None:
                self._file.note(self.tail())

    def _open_to_read(self) -> None:
        version = self._version()
        if version == 0:
            raise StoreNotFoundError(f"{self.path} is empty: open it to write, and it is made")
        if version != SCHEMA_VERSION:
            raise StoreVersionError(
                f"{self.path} has schema version {version}, only {SCHEMA_VERSION} can be read "
                "without writing: open it once without read_only, or a copy of it"
            )
        self.refuse_writes(f"{self.path} was opened to be read only: open it without read_only")

    def _lock_path(self) -> Path:
        path = Path(self.path)
        return path.with_name("LOCK" if path.name == "memory.db" else f"{path.name}.lock")

    def _version(self) -> int:
        """The schema version of the file, 0 for an empty one."""
        try:
            version = version_of(self._db, self.path)
        except sqlite3.DatabaseError as error:
            typed = typed_error(self.path, error)
            if isinstance(typed, RecordIOError):
                raise typed from error
            raise StoreVersionError(
                f"{self.path} is no record of cvx ({error}): give another file"
            ) from error
        if version > SCHEMA_VERSION:
            raise StoreVersionError(
                f"{self.path} has schema version {version}, this cvx reads 1 to {SCHEMA_VERSION}: "
                "open it with the cvx that wrote it"
            )
        return version

    def close(self) -> None:
        """Close the database. Closing it again does nothing.

        Raises
        ------
        StoreError
            This thread is writing to it, or to the same file through another object; it stays open.
        """
        with self._lock:
            if os.getpid() != self._process:
                self._closed = True
            if self._closed:
                return
            if self.writing:
                raise StoreError(
                    f"something is being written to {self.path}: close it after that has ended"
                )
        # The last connection to close writes the log back: a checkpoint like any other.
        with self.locked():
            if not self._closed:
                self._closed = True
                _open_records.pop(id(self), None)
                with suppress(sqlite3.Error):
                    self._db.close()
                    reach("close.checkpointed")
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def _connection(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.path} was opened by process {self._process}, this is {os.getpid()}: open "
                "it again in the child"
            )
        if self._closed:
            raise StoreError(f"the record {self.path} is closed: open it again")
        return self._db

    def copy(self) -> Record:
        """Return the whole record once more, in RAM."""
        twin = Record(clock=self._clock)
        with self._lock, self.typed_errors():
            self._connection().backup(twin._db)
        return twin

    def now(self) -> int:
        """Return the time of the clock of recording, in microseconds since 1970-01-01 UTC."""
        return self._clock()

    def lost_tail(self) -> Tail | None:
        """Return the end that the lock file remembers, if the record does not reach it."""
        with self.locked():
            noted = self._noted_tail()
            if noted is None or not self.keeps_changes_after(noted.seq - 1):
                return None
            return None if self.reaches(noted) else noted

    def _noted_tail(self) -> Tail | None:
        if self._file is not None:
            return self._file.tail()
        return None if self.path == ":memory:" else tail_in(self._lock_path())

    def data_version(self) -> int:
        """Return a number that differs after another connection has committed.

        Raises
        ------
        RecordIOError
            The file is read as it stands, and somebody has written to it.
        """
        if self._still is not None:
            self._still.check()
        return super().data_version()

    def forget_lost_tail(self) -> None:
        """Take the record as it is for the whole of it."""
        with self.locked():
            if self._file is not None:
                self._file.note(self.tail())

    def compact(self) -> bool:
        """Write the database anew, without free pages, and empty the write-ahead log.

        Returns
        -------
        bool
            Whether the log could be emptied; another process that is reading keeps it.
        """
        with self.locked(), self.typed_errors():
            db = self._writable()
            db.execute("VACUUM")
            reach("erase.vacuumed")
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            reach("erase.truncated")
            return not busy


_open_records: dict[int, sqlite3.Connection] = {}


def _after_fork_in_child() -> None:
    for connection in _open_records.values():
        keep_after_fork(connection)
    _open_records.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
