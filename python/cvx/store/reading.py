"""Connecting to a database that may be somebody else's, also where nothing can be written."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from cvx.errors import RecordIOError
from cvx.store.ownfiles import refuse_link

_Print: TypeAlias = tuple[int, int, int]


def connect(address: str | Path, *, uri: bool = False) -> sqlite3.Connection:
    """Connect to a database, in autocommit, and trust nothing that its schema says.

    Parameters
    ----------
    address : str or Path
        A file, ":memory:", or an address of SQLite's.
    uri : bool, default False
        Whether it is an address.
    """
    db = sqlite3.connect(address, uri=uri, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        db.close()
        raise
    return db


class Still:
    """A database that is read as it stands, and therefore must not change meanwhile.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._print = self._look()

    def _look(self) -> _Print:
        try:
            found = self._path.stat()
        except OSError as error:
            raise RecordIOError(f"{self._path} cannot be read ({error.strerror})") from error
        return found.st_ino, found.st_size, found.st_mtime_ns

    def check(self) -> None:
        """See that nobody has written since.

        Raises
        ------
        RecordIOError
            Somebody has.
        """
        if self._look() != self._print or _log_of(self._path) > 0:
            raise RecordIOError(
                f"{self._path} has changed since it was opened to be read only: open it again"
            )


def connect_to_read(path: Path) -> tuple[sqlite3.Connection, Still | None]:
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
    connection : sqlite3.Connection
        In autocommit.
    still : Still or None
        The file, if it is read as it stands.

    Raises
    ------
    RecordIOError
        It cannot be read, or only together with a write-ahead log that would have to be taken in;
        or it is a link.
    """
    refuse_link(path)
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
    still = Still(path)
    return _connected(f"{address}&immutable=1"), still


_NO_SHARED_MEMORY = ("SQLITE_CANTOPEN", "SQLITE_READONLY_CANTINIT", "SQLITE_READONLY_DIRECTORY")


def _log_of(path: Path) -> int:
    with suppress(OSError):
        return path.with_name(f"{path.name}-wal").stat().st_size
    return 0


def _connected(address: str) -> sqlite3.Connection:
    db = connect(address, uri=True)
    try:
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db
