"""The SQLite connection of a record: pragmas, reads in one snapshot, typed errors."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from cvx.errors import (
    DamagedStoreError,
    LockTimeoutError,
    LostTailError,
    RecordIOError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from cvx.store import fulltext, rows
from cvx.store.failpoints import reach
from cvx.store.files import make_private, refuse_foreign, refuse_network
from cvx.store.lock import FileLock, Tail, keep_after_fork, tail_in
from cvx.store.schema import SCHEMA_VERSION, migrate, version_of

T = TypeVar("T")
MOST_LOG = 16 * 2**20
"""Bytes of the write-ahead log between transactions, unless somebody reads all the while."""
_CACHE_KIB = 32_768
# Each checkpoint waits for the disk twice: seldom is cheaper, and 16 MB are read back in no time.
_CHECKPOINT_PAGES = 3_000
_IDLE_READERS = 4
"""So many connections wait for whoever reads next."""
_PATIENCE_MS, _USUAL_PATIENCE_MS = 100, 5_000
"""How long SQLite waits for readers: to shorten the log, and else."""
_SOON_S = 1.0
"""How long whoever closes waits for a thread that has just begun to write."""
_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
    f"cache_size = -{_CACHE_KIB}",
    f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
    f"journal_size_limit = {MOST_LOG}",
)

_Print: TypeAlias = tuple[int, int, int, int]


_WITHIN = nullcontext()


class _ThisThread(threading.local):
    """What a thread is in the middle of: its connection, and the end of the journal it sees."""

    reader: Connection | None = None
    sees_one_state = False
    reads = False
    tail: Tail | None = None
    patient_until: float | None = None


class Database:
    """The SQLite file of a record, open in one process, with the lock that keeps writers apart.

    Parameters
    ----------
    path : str
        The file, or ":memory:". The lock is the file LOCK beside a ``memory.db``, or the file's
        name with ``.lock``.
    read_only : bool, default False
        Read it without writing anything, also where nothing can be written.

    Attributes
    ----------
    mutex : threading.RLock
        Held by the thread that writes; may be taken again by its holder.
    follower_lock : threading.RLock
        Held by the thread that reads what follows the record in RAM, such as an index: one at a
        time brings it level and looks at it. Whoever holds it never takes ``mutex``, but for a
        database in RAM, where they are the same.

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
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.path = path
        self.mutex = threading.RLock()
        self._one_connection = path == ":memory:"
        # What it is, or is a view or a copy of: the file, or one in RAM.
        self._origin: object = object() if self._one_connection else os.path.realpath(path)
        self._stays_at = 0
        self.follower_lock = self.mutex if self._one_connection else threading.RLock()
        self._writer: int | None = None
        self._kept_followers: ExitStack | None = None
        self._idle: list[Connection] = []
        self._here = _ThisThread()
        self._closed = False
        self._process = os.getpid()
        self._file: FileLock | None = None
        self._still: _Print | None = None
        self._most_log = MOST_LOG
        try:
            if read_only:
                self._db, self._still = connect_to_read(Path(path))
            else:
                if path != ":memory:":
                    refuse_foreign(Path(path))
                    make_private(Path(path))
                self._db = connect(path)
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} cannot be opened ({error}): give a file in an existing folder"
            ) from error
        try:
            if read_only:
                self._check_readable()
            else:
                self._prepare()
        except BaseException:
            self._db.close()
            if self._file is not None:
                self._file.close()
            raise
        _open_connections[id(self._db)] = self._db

    def _prepare(self) -> None:
        # Looked at before anything is written: a file of somebody else stays as it is.
        version = self._version()
        self._db.create_function("cvx_crc", -1, rows.row_crc, deterministic=True)
        if self.path != ":memory:":
            refuse_network(Path(self.path).parent)
            self._file = FileLock(self._lock_path())
        # What is made already is opened without waiting for whoever writes.
        noted = self._file is not None and self._file.tail() is not None
        ready = noted and version == SCHEMA_VERSION
        with nullcontext() if ready else self.locked(), self.typed_errors():
            for setting in _SETTINGS:
                self._db.execute(f"PRAGMA {setting}")
            if not ready:
                version = self._version()
                if version != SCHEMA_VERSION:
                    migrate(self._db, version)
                if self._file is not None and self._file.tail() is None:
                    self._file.note(tail_of(self._db))

    def _check_readable(self) -> None:
        version = self._version()
        if version == 0:
            raise StoreNotFoundError(f"{self.path} is empty: open it to write, and it is made")
        if version != SCHEMA_VERSION:
            raise StoreVersionError(
                f"{self.path} has schema version {version}, only {SCHEMA_VERSION} can be read "
                "without writing: open it once without read_only, or a copy of it"
            )

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
        """Close it. Closing it again does nothing.

        Raises
        ------
        LockTimeoutError
            Another thread has been writing through it for too long: it stays open.
        """
        if self.closed:
            return
        # The last connection to close writes the log back: a checkpoint like any other.
        with ExitStack() as held:
            try:
                held.enter_context(self.locked())
            except LockTimeoutError:
                # Whoever else has the lock writes the log back, now or when it closes.
                if self.is_busy or not self.mutex.acquire(timeout=_SOON_S):
                    raise
                held.callback(self.mutex.release)
            held.enter_context(self.follower_lock)
            if not self._closed:
                self._closed = True
                while self._idle:
                    _close(self._idle.pop())
                with suppress(sqlite3.Error):
                    if self._file is not None and next(self._views(), None) is not None:
                        # The last one to close is a view, which writes nothing back.
                        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
                with suppress(sqlite3.Error):
                    _close(self._db)
                    reach("close.checkpointed")
        if self._file is not None:
            self._file.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or was opened before a fork."""
        return self._closed or os.getpid() != self._process

    def connection(self) -> Connection:
        """Return the connection of the read that this thread is in, else that of writers.

        Raises
        ------
        StoreError
            It was closed, or was opened before a fork.
        """
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.path} was opened by process {self._process}, this is {os.getpid()}: open "
                "it again in the child"
            )
        if self._closed:
            raise StoreError(f"the record {self.path} is closed: open it again")
        return self._here.reader or self._db

    @contextmanager
    def borrowed(self) -> Iterator[Connection]:
        """Yield a connection that no other thread uses in the block.

        Whoever writes reads what it has written; everybody else has a connection of its own, and
        waits for nobody. A database in RAM has but one.
        """
        if self._one_connection or self.is_writer:
            with self.mutex:
                db = self.connection()
                if db.covered and not db.in_transaction:
                    # An error has ended the read, and with it what lay over the tables.
                    raise RecordIOError(
                        f"this view of the past of {self.path} was lost with an error of the disk: "
                        "make it anew"
                    )
                yield db
            return
        db = self.connection()
        if db is not self._db:
            yield db
            return
        try:
            db = self._idle.pop()
        except IndexError:
            db = self._reader()
        try:
            yield db
        finally:
            if self._closed or len(self._idle) >= _IDLE_READERS:
                _close(db)
            else:
                self._idle.append(db)

    def _reader(self) -> Connection:
        with self.typed_errors():
            db, _ = connect_to_read(Path(self.path))
            db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        _open_connections[id(db)] = db
        return db

    @property
    def is_writer(self) -> bool:
        """Whether this thread keeps all others from writing."""
        return self._writer == threading.get_ident()

    @property
    def may_write_at_once(self) -> bool:
        """Whether nobody keeps this thread from writing at this moment."""
        return not self.is_busy and (self._file is None or self._file.free)

    @property
    def is_busy(self) -> bool:
        """Whether another thread keeps this one from writing."""
        return self._writer not in (None, threading.get_ident())

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
    def locked(self) -> Iterator[None]:
        """Keep every other writer out, without a transaction; not inside one.

        Raises
        ------
        StoreError
            This thread is in the middle of a read, or writing already.
        """
        if self.path != ":memory:" and self.connection() is not self._db:
            raise StoreError(
                f"{self.path} is being read by this thread: write after that has ended"
            )
        with ExitStack() as held:
            # The file first: while another process has it, this one's threads go on.
            if self._file is not None:
                self._file.acquire(self._here.patient_until)
                held.callback(self._file.release)
            held.enter_context(self.mutex)
            before, self._writer = self._writer, threading.get_ident()
            try:
                yield
            finally:
                self._writer = before

    @contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Let this thread wait for other writers for so long in all of the block; 0: try at once.

        What takes longer is a ``LockTimeoutError``. A database in RAM knows no other process.
        """
        before = self._here.patient_until
        self._here.patient_until = time.monotonic() + seconds
        try:
            yield
        finally:
            self._here.patient_until = before

    @contextmanager
    def keep_followers(self) -> Iterator[None]:
        """Keep what follows the record to this thread, from its first look at it to the end.

        What it takes in meanwhile may be taken back, and is nothing that others should see.
        """
        with ExitStack() as held:
            self._kept_followers = held
            try:
                yield
            finally:
                self._kept_followers = None

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """See one state of the rows in all reads of the block."""
        with self.borrowed() as db:
            if db.in_transaction:
                yield
                return
            if db is not self._db:
                self._here.reader = db
            with self.typed_errors():
                try:
                    db.execute("BEGIN")
                    self._here.sees_one_state = True
                    yield
                finally:
                    self._here.reader = self._here.tail = None
                    self._here.sees_one_state = False
                    take_back(db)

    def reading(self) -> AbstractContextManager[None]:
        """See one state, of what follows the record too; as ``Record.reading``."""
        return _WITHIN if self._here.reads else self._reading()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self.follower_lock:
            if self._kept_followers is not None and self.is_writer:
                held, self._kept_followers = self._kept_followers, None
                held.enter_context(self.follower_lock)
            with self.one_state():
                self._here.reads = self._here.sees_one_state
                try:
                    yield
                finally:
                    self._here.reads = False

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement."""
        return self.ask(lambda db: db.execute(sql, values).fetchall())

    def ask(self, read: Callable[..., T], *values: object) -> T:
        """Return what a function reads from a connection that no other thread uses meanwhile."""
        # A thread in the middle of a read has a connection that no other one uses.
        alone = self._here.reader or (self._here.sees_one_state and not self._db.covered)
        lent = nullcontext(self.connection()) if alone else self.borrowed()
        with lent as db:
            try:
                return read(db, *values)
            except sqlite3.DatabaseError:
                with self.typed_errors():
                    raise

    def tail(self) -> Tail:
        """Return the end of the journal; in a block that sees one state it is read but once."""
        found = self._here.tail
        if found is None:
            found = self.ask(tail_of)
            if self._here.sees_one_state:
                self._here.tail = found
        return found

    def check_unchanged(self) -> None:
        """See that a file that is read as it stands is as it was.

        Raises
        ------
        RecordIOError
            Somebody has written to it.
        """
        if self._still is not None and _print_of(Path(self.path)) != self._still:
            raise RecordIOError(
                f"{self.path} has changed since it was opened to be read only: open it again"
            )

    def commit(self, db: sqlite3.Connection, tail: Tail) -> None:
        """Commit, and write down beside the database how far its journal goes now."""
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

    def noted_tail(self) -> Tail | None:
        """Return the end of the journal that the lock file remembers, None if none is legible."""
        if self._file is not None:
            return self._file.tail()
        return None if self._one_connection else tail_in(self._lock_path())

    def note_tail(self) -> None:
        """Let the lock file remember the end that the journal has; the caller holds the lock."""
        if self._file is not None:
            self._file.note(tail_of(self.connection()))

    def copy_into(self, other: Database) -> None:
        """Copy everything into another one, which is in RAM and of the same schema."""
        with self.mutex, self.typed_errors():
            source, target = self.connection(), other.connection()
            if not source.in_transaction:
                source.backup(target)
                return
            # A backup waits for whoever writes: also for its own thread, for ever.
            target.execute("BEGIN")
            for table in ("meta", *rows.COLUMNS):
                target.execute(f"DELETE FROM {table}")
                names = ("key", "value") if table == "meta" else rows.stored_columns(table)
                found = source.execute(f"SELECT {', '.join(names)} FROM {table}")
                marks = ", ".join("?" * len(names))
                target.executemany(
                    f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", found
                )
            fulltext.refill(target)
            target.execute("COMMIT")

    def stay(self, source: Database) -> Connection:
        """See the rows for good as they are now, whoever writes; tables in RAM may cover them.

        Until it is closed, the write-ahead log keeps what is written meanwhile; ``end_views`` of
        the source, which it is a view or a copy of, closes it.
        """
        self._origin = source._origin
        self._one_connection, self.follower_lock = True, self.mutex
        self._db.create_function("cvx_crc", -1, rows.row_crc, deterministic=True)
        with self.typed_errors():
            self._db.execute("BEGIN")
            self._stays_at = tail_of(self._db).seq
        # Whoever lets go of it closes it.
        weakref.finalize(self, _close, self._db)
        _views[id(self)] = self
        return self._db

    def end_views_of_erased(self, after: int) -> None:
        """Close those that show what was erased, here or elsewhere, after a number of the journal.

        What a view shows has no later change.
        """
        if _views:
            erased = "SELECT ifnull(max(seq), 0) FROM journal WHERE seq > ? AND op = 'erase'"
            self.end_views(before=self.query(erased, (after,))[0][0])

    def end_views(self, before: int = 2**63 - 1) -> None:
        """Close all that stay what they were before a change, of this file and in this process."""
        for view in self._views():
            if view._stays_at < before:
                view.close()

    def _views(self) -> Iterator[Database]:
        # References are listed at once: another thread may make a view meanwhile.
        for view in (one() for one in _views.valuerefs()):
            if view is not None and view is not self and view._origin == self._origin:
                yield view


_open_connections: dict[int, sqlite3.Connection] = {}
_views: weakref.WeakValueDictionary[int, Database] = weakref.WeakValueDictionary()


def _close(db: sqlite3.Connection) -> None:
    # One of before a fork is nothing that the child may close.
    if _open_connections.pop(id(db), None) is not None:
        db.close()


def _after_fork_in_child() -> None:
    for connection in _open_connections.values():
        keep_after_fork(connection)
    _open_connections.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)


def take_back(db: sqlite3.Connection) -> None:
    """Roll back what is open."""
    # After an I/O error SQLite may have taken it back by itself.
    if db.in_transaction:
        db.execute("ROLLBACK")


def tail_of(db: sqlite3.Connection) -> Tail:
    """Return the end of the journal."""
    found = db.execute("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    return Tail(*found) if found else Tail(0, 0)


def reaches(db: sqlite3.Connection, tail: Tail) -> bool:
    """Return whether the journal once ended exactly so."""
    if tail.seq == 0:
        return True
    found = db.execute("SELECT chain FROM journal WHERE seq = ?", (tail.seq,)).fetchone()
    return found is not None and found[0] == tail.chain


class Connection(sqlite3.Connection):
    """Gives a statement with ``?1``, ``?2``... its values by number.

    Python counts these as names, and from 3.14 on refuses to bind them to a sequence.

    Attributes
    ----------
    covered : bool
        Whether views of the past are laid over its tables.
    """

    covered = False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement; one with numbered parameters has no other kind."""
        if parameters and "?1" in sql and not isinstance(parameters, Mapping):
            parameters = {str(place): one for place, one in enumerate(parameters, start=1)}
        return super().execute(sql, parameters)


def connect(address: str | Path, *, uri: bool = False) -> Connection:
    """Connect to a database, in autocommit, and trust nothing that its schema says.

    Parameters
    ----------
    address : str or Path
        A file, ":memory:", or an address of SQLite's.
    uri : bool, default False
        Whether it is an address.
    """
    db = sqlite3.connect(
        address, uri=uri, isolation_level=None, check_same_thread=False, factory=Connection
    )
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def lenient(
    db: sqlite3.Connection, errors: str = "surrogateescape"
) -> Iterator[sqlite3.Connection]:
    """Read texts that are no UTF-8 in the block, too."""
    factory, db.text_factory = db.text_factory, lambda raw: raw.decode("utf-8", errors)
    try:
        yield db
    finally:
        db.text_factory = factory


def _print_of(path: Path) -> _Print:
    """Return what tells a file from itself after a write.

    Raises
    ------
    RecordIOError
        It cannot be read.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise RecordIOError(f"{path} cannot be read ({error.strerror})") from error
    return found.st_ino, found.st_size, found.st_mtime_ns, _log_of(path)


def connect_to_read(path: Path) -> tuple[Connection, _Print | None]:
    """Connect to a database for reading.

    Where SQLite's shared memory can be found or made, what others commit is seen. In a folder
    that cannot be written to and has none, the file is read as it stands; that needs an empty
    write-ahead log, as a clean close leaves it.

    Parameters
    ----------
    path : Path
        The database.

    Returns
    -------
    connection : Connection
        In autocommit.
    still : tuple of int, or None
        What the file is known by, if it is read as it stands.

    Raises
    ------
    RecordIOError
        It cannot be read, or only together with a write-ahead log that would have to be taken in;
        or it leads elsewhere.
    """
    refuse_foreign(path)
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _connected(address), None
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") not in _NO_SHARED_MEMORY:
            raise
        if _log_of(path):
            raise RecordIOError(
                f"{path} was not closed: its write-ahead log can be read only where SQLite may "
                "write beside it; copy the whole folder to such a place and open it there"
            ) from error
    still = _print_of(path)
    return _connected(f"{address}&immutable=1"), still


_NO_SHARED_MEMORY = ("SQLITE_CANTOPEN", "SQLITE_READONLY_CANTINIT", "SQLITE_READONLY_DIRECTORY")


def _log_of(path: Path) -> int:
    with suppress(OSError):
        return path.with_name(f"{path.name}-wal").stat().st_size
    return 0


def _connected(address: str) -> Connection:
    with ExitStack() as opened:
        db = opened.enter_context(closing(connect(address, uri=True)))
        db.execute("PRAGMA temp_store = MEMORY")
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except UnicodeDecodeError as error:
            raise sqlite3.DatabaseError("malformed: its schema is no text") from error
        opened.pop_all()
    return db


_MEANINGS: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (
        ("disk is full", "disk I/O error"),
        RecordIOError,
        "{path}: {said}: nothing of the transaction was stored; make room, then write again",
    ),
    (
        ("unable to open database file", "readonly database"),
        RecordIOError,
        "{path}: {said}: make it and its folder writable, or open it with read_only=True",
    ),
    # "malformed JSON" too: JSON in a record is written by cvx alone, so that is a damaged row.
    (
        (
            *("malformed", "vtable constructor failed", "not a database", "corrupt"),
            "decode to UTF-8",
        ),
        DamagedStoreError,
        "{path} is damaged ({said}): restore a copy, or let doctor save the rest",
    ),
)
"""What SQLite says, in words, and the error that it is of cvx."""


def typed_error(path: str, error: sqlite3.DatabaseError) -> Exception:
    """Return the error of cvx for one of SQLite, or the same where there is none."""
    said = str(error)
    for words, kind, told in () if isinstance(error, sqlite3.IntegrityError) else _MEANINGS:
        if any(word in said for word in words):
            return kind(told.format(path=path, said=said))
    return error


@dataclass(frozen=True, slots=True)
class Description:
    """What the record of a store says of itself.

    Parameters
    ----------
    uuid : str
        Of the record, "" where its schema is older than that.
    schema_version : int
        Of its tables.
    embedder : str or None
        The id of the embedder of its vectors; None while nothing was opened with one.
    metric : str
        How they are compared.
    dim : int or None
        Length of the vectors.
    spec : str or None
        How to make the embedder, where the store was told (``cvx.embed.registry``).
    """

    uuid: str
    schema_version: int
    embedder: str | None
    metric: str
    dim: int | None
    spec: str | None


@contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a record for reading, in one view of it that writers do not change.

    Parameters
    ----------
    path : Path
        The database, or the folder with ``memory.db`` in it.

    Raises
    ------
    StoreNotFoundError
        There is no such file, or nothing in it yet.
    LostTailError
        So it is, and LOCK remembers that something was written.
    RecordIOError, DamagedStoreError
        It cannot be read.
    StoreVersionError, DamagedStoreError
        It is a database of something else, or something else stands in for a table of it.
    """
    path = path if path.is_file() else path / "memory.db"
    if not path.is_file():
        raise _absent(path, "there is no memory.db in it")
    try:
        db, _ = connect_to_read(path)
    except sqlite3.DatabaseError as error:
        raise _typed(path, error) from error
    with closing(db):
        try:
            db.execute("BEGIN")
            if not version_of(db, str(path), to_examine=True):
                raise _absent(path, "its memory.db is empty")
            yield db
        except sqlite3.DatabaseError as error:
            raise _typed(path, error) from error


def _typed(path: Path, error: sqlite3.DatabaseError) -> Exception:
    # Only the making of a record, before its write-ahead log, is rolled back by a journal.
    if getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK":
        return _absent(path, "its making broke off")
    return typed_error(str(path), error)


def _absent(path: Path, what: str) -> StoreError:
    """A record without anything in it was never made to the end, or it is lost."""
    tail = tail_in(path.with_name("LOCK"))
    if tail is not None and tail.seq:
        return LostTailError(
            f"{path.parent} was written up to change {tail.seq}, and {what}: restore a copy, or "
            "begin anew in another folder"
        )
    return StoreNotFoundError(f"{path.parent} is no store: {what}; `cvx add` makes one")


def describe(folder: Path) -> Description:
    """Return what a store says of itself.

    Raises
    ------
    StoreNotFoundError, LostTailError, RecordIOError, DamagedStoreError
        As for ``read_only``.
    StoreVersionError, DamagedStoreError
        ``memory.db`` is a database of something else.
    """
    with read_only(folder) as db:
        meta = dict(db.execute("SELECT key, value FROM meta WHERE typeof(value) = 'text'"))
    dim = meta.get("dim")
    if dim is not None and not re.fullmatch("[1-9][0-9]{0,8}", dim):
        raise DamagedStoreError(
            f"{folder / 'memory.db'} says that its vectors have {dim!r} dimensions: restore a copy"
        )
    return Description(
        uuid=meta.get("uuid", ""),
        schema_version=int(meta["schema_version"]),
        embedder=meta.get("embedder"),
        metric=meta.get("metric", "cosine"),
        dim=None if dim is None else int(dim),
        spec=meta.get("embedder_spec"),
    )
