"""The file behind the embedding cache: SQLite, one short connection for each operation.

A connection that lives for one operation survives forks, threads, and the file being set aside
by another process. An exclusive lock on a file beside it orders the operations of all processes,
so that SQLite never waits and nobody works on a file while it is being set aside.
"""

from __future__ import annotations

import math
import os
import sqlite3
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from cvx.embed.cachedb import (
    DamageError,
    checksum,
    file_lock,
    forget,
    prepare,
    sweep,
    transaction,
    used_bytes,
)
from cvx.errors import CacheWarning, EmbeddingCacheError
from cvx.types import Vector

T = TypeVar("T")

_TOUCH_AFTER_S = 3600
_KEYS_A_QUERY = 500
# What the machine around the file can refuse; everything else is damage in the file.
_OUTSIDE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}


class CacheFile:
    """Vectors by embedder id and text hash.

    Parameters
    ----------
    path : Path
        The file; made if it is not there.
    max_bytes : int
        Size at which the rows used longest ago go.
    clock : callable
        Seconds since 1970.

    Raises
    ------
    EmbeddingCacheError
        If it cannot be opened, or is a database of something else.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Callable[[], float]) -> None:
        self.path = path
        self.damaged = path.with_name(path.name + ".damaged")
        self._lock = path.with_name(path.name + ".lock")
        self._max_bytes = max_bytes
        self._clock = clock
        try:
            self._do(lambda _db: None)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error

    def read(self, embedder: str, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors that are there; none if the file cannot be read, with a warning."""
        return self._harmless(lambda db: self._read(db, embedder, keys), {})

    def write(self, embedder: str, rows: Mapping[bytes, Vector]) -> None:
        """Keep vectors; if the file cannot be written, warn and go on."""
        if rows:
            self._harmless(lambda db: self._write(db, embedder, rows), None)

    def forget(self, keys: Sequence[bytes]) -> int:
        """Remove vectors so that no byte of them stays in the folder.

        Returns
        -------
        int
            How many there were.

        Raises
        ------
        EmbeddingCacheError
            If that could not be done.
        """
        try:
            gone = self._do(lambda db: forget(db, keys))
            # Nobody can say what is in a damaged file.
            with file_lock(self._lock):
                self.damaged.unlink(missing_ok=True)
        except (sqlite3.Error, OSError) as error:
            raise EmbeddingCacheError(
                f"{self.path} could not forget: {error}; make the disk writable and try again, or "
                "delete the file"
            ) from error
        return gone

    def count(self) -> int:
        """How many vectors there are."""
        return self._do(lambda db: int(db.execute("SELECT count(*) FROM vectors").fetchone()[0]))

    def _harmless(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            return self._do(work)
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, EmbeddingCacheError):
                raise
            warnings.warn(
                f"{self.path} cannot be used ({error}): embedding without the cache",
                CacheWarning,
                stacklevel=5,
            )
            return otherwise

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work on the file; set it aside if it turns out damaged, and work on a new one."""
        with file_lock(self._lock):
            try:
                return self._attempt(work)
            except DamageError as error:
                damage = str(error)
                self.path.replace(self.damaged)
                for ending in ("-journal", "-wal", "-shm"):
                    self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
                result = self._attempt(work)
        warnings.warn(
            f"{self.path} was damaged ({damage}): it is now {self.damaged.name}, and a new cache "
            "was started; check the disk",
            CacheWarning,
            stacklevel=5,
        )
        return result

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with suppress(FileExistsError):
                # Vectors tell about texts: nobody else reads them.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as db:
                prepare(db, self.path)
                return work(db)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _OUTSIDE:
                raise
            raise DamageError(str(error)) from error

    def _read(
        self, db: sqlite3.Connection, embedder: str, keys: Sequence[bytes]
    ) -> dict[bytes, Vector]:
        found: dict[bytes, Vector] = {}
        now, stale = int(self._clock()), []
        for at in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[at : at + _KEYS_A_QUERY]
            for rowid, text, used, crc, blob in db.execute(
                "SELECT rowid, text, used, crc, vector FROM vectors WHERE embedder ="
                " (SELECT embedder FROM embedders WHERE id = ?) AND text IN"
                f" ({','.join('?' * len(some))})",
                (embedder, *some),
            ):
                if not isinstance(blob, bytes) or crc != checksum(embedder, text, blob):
                    raise DamageError(f"the checksum of row {rowid} does not hold")
                found[text] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
                if not isinstance(used, int) or now - used >= _TOUCH_AFTER_S:
                    stale.append((now, rowid))
        if stale:
            with suppress(sqlite3.OperationalError), transaction(db):
                db.executemany("UPDATE vectors SET used = ? WHERE rowid = ?", stale)
        return found

    def _write(self, db: sqlite3.Connection, embedder: str, rows: Mapping[bytes, Vector]) -> None:
        now = int(self._clock())
        # A kill loses nothing either way; what a power failure breaks, the checks find, and it
        # costs an embedding. Waiting for the disk would cost more than most of those.
        db.execute("PRAGMA synchronous = OFF")
        with transaction(db):
            db.execute("INSERT OR IGNORE INTO embedders (id) VALUES (?)", (embedder,))
            (number,) = db.execute(
                "SELECT embedder FROM embedders WHERE id = ?", (embedder,)
            ).fetchone()
            blobs = ((key, np.asarray(row, dtype="<f4").tobytes()) for key, row in rows.items())
            db.executemany(
                "INSERT OR IGNORE INTO vectors (text, embedder, used, crc, vector)"
                " VALUES (?, ?, ?, ?, ?)",
                ((key, number, now, checksum(embedder, key, blob), blob) for key, blob in blobs),
            )
            self._evict(db)
        sweep(db)

    def _evict(self, db: sqlite3.Connection) -> None:
        size = used_bytes(db)
        if size <= self._max_bytes:
            return
        # Down to three quarters at once, so that the sweep that follows is rare.
        (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
        excess = math.ceil(count * (1 - 0.75 * self._max_bytes / size))
        db.execute(
            "DELETE FROM vectors WHERE rowid IN"
            " (SELECT rowid FROM vectors ORDER BY used, rowid LIMIT ?)",
            (excess,),
        )
        db.execute("INSERT INTO remnants VALUES (1)")


def _unusable(path: Path, error: Exception) -> EmbeddingCacheError:
    if isinstance(error, EmbeddingCacheError):
        return error
    return EmbeddingCacheError(
        f"{path} cannot be opened: {error}; give a file in a folder that can be written"
    )
