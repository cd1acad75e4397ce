"""A cache of embeddings in an SQLite file, so that the same text is embedded once."""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cvx.arguments import whole
from cvx.embed.protocol import Embedder, Threaded, checked_rows, close, embed_query, listed
from cvx.errors import (
    CacheWarning,
    EmbedderDimensionError,
    EmbeddingCacheError,
    warn,
)
from cvx.types import Vector
from cvx.validation import names_another_file

T = TypeVar("T")
Rows = dict[bytes, Vector]
"""Vectors by the SHA-256 of their texts."""

_ROLES = ("document", "query")
_SMALLEST = 1 << 20
_TOUCH_AFTER_S = 3600
_KEYS_A_QUERY = 500
_APPLICATION = 0x63767845
_SCHEMA = f"""
BEGIN;
CREATE TABLE embedders (embedder INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE vectors (
    text BLOB NOT NULL,         -- SHA-256 of role and text
    embedder INTEGER NOT NULL,
    used INTEGER NOT NULL,      -- seconds since 1970, to the hour
    crc INTEGER NOT NULL,       -- over embedder id, text hash and vector
    vector BLOB NOT NULL,       -- float32, little-endian
    UNIQUE (text, embedder)
);
CREATE INDEX vectors_used ON vectors (used);
CREATE TABLE remnants (found INTEGER NOT NULL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = 1;
COMMIT;
"""
# What the machine around the file can refuse; every other error of SQLite is damage in the file.
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


class _DamageError(Exception):
    """The file is not what was written."""


class CachedEmbedder(Threaded):
    """Any embedder, with a file that remembers its vectors.

    Several threads and processes may use one file, with different embedders too: vectors are kept
    by the embedder's id and the SHA-256 of the text. The texts themselves are not kept. A file
    that turns out damaged is set aside as ``<name>.damaged`` with a warning and started anew; one
    that cannot be read or written costs a warning, never an answer.

    Parameters
    ----------
    inner : Embedder
        What embeds the texts that are not there.
    path : str or Path
        The file; made if it is not there, readable by its owner alone.
    max_bytes : int, default 1 GiB
        Size at which a quarter goes: the vectors used longest ago, to the hour. At least 1 MiB.
    clock : callable, default `time.time`
        Seconds since 1970.

    Attributes
    ----------
    hits, misses : int
        Texts found and not found since this object was made.

    Raises
    ------
    EmbeddingCacheError
        If the file cannot be opened, or is a database of something else.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> folder = tempfile.TemporaryDirectory()
    >>> cached = CachedEmbedder(LexicalEmbedder(8), folder.name + "/vectors.sqlite")
    >>> _ = cached.embed(["a mug"]), cached.embed(["a mug", "a shelf"])
    >>> cached.hits, cached.misses, cached.forget(["a mug"])
    (1, 2, 1)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        inner: Embedder,
        path: str | Path,
        *,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        whole(_SMALLEST)("max_bytes", max_bytes)
        self.inner = inner
        self.hits = 0
        self.misses = 0
        self._path = Path(path)
        self._damaged = self._path.with_name(self._path.name + ".damaged")
        self._max_bytes = max_bytes
        self._clock = clock
        try:
            self._use(lambda _db: None)
        except EmbeddingCacheError:
            raise
        except (OSError, sqlite3.Error) as error:
            raise EmbeddingCacheError(
                f"{path} cannot be opened: {error}; give a file in a folder that can be written"
            ) from error

    def info(self) -> Mapping[str, Any]:
        """Describe the inner embedder's vectors: they are the same."""
        return self.inner.info()

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed documents; those that are not remembered go to the inner embedder in one batch.

        Raises
        ------
        EmbedderDimensionError
            If the file remembers another dimension under the same embedder id.
        EmbedderError
            Whatever the inner embedder raises.
        """
        return self._through(listed(texts), "document", self.inner.embed)

    def embed_query(self, text: str) -> Vector:
        """Embed a query, apart from documents if the inner embedder tells them apart.

        Returns
        -------
        ndarray of shape (dim,), float32
        """
        apart = callable(getattr(self.inner, "embed_query", None))
        row: Vector = self._through(
            listed([text]),
            "query" if apart else "document",
            lambda missing: np.stack([embed_query(self.inner, one) for one in missing]),
        )[0]
        return row

    def forget(self, texts: Iterable[str]) -> int:
        """Remove what is known of these texts, under every embedder, from the disk as well.

        The whole file is written anew, which takes about as long as copying it: forget many
        texts in one call. A damaged file that was set aside is deleted too.

        Returns
        -------
        int
            How many vectors there were.

        Raises
        ------
        EmbeddingCacheError
            If that could not be done.
        """
        keys = [(_key(text, role),) for text in texts for role in _ROLES]

        def delete(db: sqlite3.Connection) -> int:
            with db:
                gone = db.executemany("DELETE FROM vectors WHERE text = ?", keys).rowcount
                if gone:
                    db.execute("INSERT INTO remnants VALUES (1)")
            _sweep(db)
            return gone

        try:
            gone = self._use(delete)
            # Nobody can say what is in a damaged file.
            with self._alone():
                self._damaged.unlink(missing_ok=True)
        except (sqlite3.Error, OSError) as error:
            raise EmbeddingCacheError(
                f"{self._path} could not forget: {error}; make the disk writable and try again, or "
                "delete the file"
            ) from error
        return gone

    def close(self) -> None:
        """Close the connections of the inner embedder, if it has any; the file is never open."""
        close(self.inner)

    def __repr__(self) -> str:
        return f"<CachedEmbedder of {self.inner!r}>"

    def __len__(self) -> int:
        """How many vectors the file remembers, those of other embedders included."""
        return self._use(lambda db: int(_one(db, "SELECT count(*) FROM vectors")))

    def _through(self, texts: list[str], role: str, embed: Callable[[list[str]], Vector]) -> Vector:
        info = self.inner.info()
        identity, dim = str(info["id"]), int(info["dim"])
        if not texts:
            return np.zeros((0, dim), dtype=np.float32)
        keys = [_key(text, role) for text in texts]
        nothing: Rows = {}
        known = self._harmless(
            lambda db: self._read(db, identity, list(dict.fromkeys(keys))), nothing
        )
        for row in known.values():
            if len(row) != dim:
                raise EmbedderDimensionError(
                    f"{self._path} remembers {len(row)} dimensions for {identity!r}, which "
                    f"says it gives {dim}: two models share an id; give one another name"
                )
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        self.hits += len(texts) - len(missing)
        self.misses += len(missing)
        if missing:
            answer = embed(list(missing.values()))
            rows = checked_rows(answer, len(missing), str(info.get("model", identity)), dim)
            fresh = dict(zip(missing, rows, strict=True))
            self._harmless(lambda db: self._write(db, identity, fresh), None)
            known |= fresh
        return np.stack([known[key] for key in keys])

    def _harmless(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Work on the file; where that cannot be, warn and go on without."""
        try:
            return self._use(work)
        except EmbeddingCacheError:
            raise
        except (sqlite3.Error, OSError) as error:
            warn(
                f"{self._path} cannot be used ({error}): embedding without the cache",
                CacheWarning,
            )
            return otherwise

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work on the file; set it aside if it turns out damaged, and work on a new one.

        One short connection for each piece of work survives forks, threads, and the file being set
        aside by another process.
        """
        with self._alone():
            try:
                return self._attempt(work)
            except _DamageError as error:
                damage = str(error)
                self._path.replace(self._damaged)
                for ending in ("-journal", "-wal", "-shm"):
                    self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
                result = self._attempt(work)
        warn(
            f"{self._path} was damaged ({damage}): it is now {self._damaged.name}, and a new cache "
            "was started; check the disk",
            CacheWarning,
        )
        return result

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep all other threads and processes away, so that SQLite never waits."""
        handle = os.open(
            self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600
        )
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            # Said aloud: a child forked meanwhile holds a copy of the handle.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with suppress(FileExistsError):
                # Vectors tell about texts: nobody else reads them.
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))
            if names_another_file(self._path):
                raise _DamageError("its journal names another file")
            # In each `with db:` of what works, the first change begins a transaction.
            with closing(
                sqlite3.connect(self._path, timeout=10, isolation_level="IMMEDIATE")
            ) as db:
                self._prepare(db)
                return work(db)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _OUTSIDE:
                raise
            raise _DamageError(str(error)) from error

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Make the tables in a new file; refuse a file of something else."""
        db.execute("PRAGMA secure_delete = ON")
        application = _one(db, "PRAGMA application_id")
        if (application, _one(db, "PRAGMA user_version")) == (_APPLICATION, 1):
            return
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if {"vectors", "embedders"} <= tables:
            raise _DamageError(f"its header says application {application:#x}")
        if tables or application:
            raise EmbeddingCacheError(
                f"{self._path} is a database of something else ({', '.join(sorted(tables)[:5])}): "
                "give the cache a file of its own"
            )
        db.execute("PRAGMA page_size = 16384")
        db.executescript(_SCHEMA)

    def _read(self, db: sqlite3.Connection, embedder: str, keys: Sequence[bytes]) -> Rows:
        found: Rows = {}
        now, stale = int(self._clock()), []
        for at in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[at : at + _KEYS_A_QUERY]
            for rowid, text, used, crc, blob in db.execute(
                "SELECT rowid, text, used, crc, vector FROM vectors WHERE embedder ="
                " (SELECT embedder FROM embedders WHERE id = ?) AND text IN"
                f" ({','.join('?' * len(some))})",
                (embedder, *some),
            ):
                if not isinstance(blob, bytes) or crc != _checksum(embedder, text, blob):
                    raise _DamageError(f"the checksum of row {rowid} does not hold")
                found[text] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
                if not isinstance(used, int) or now - used >= _TOUCH_AFTER_S:
                    stale.append((now, rowid))
        if stale:
            with suppress(sqlite3.OperationalError), db:
                db.executemany("UPDATE vectors SET used = ? WHERE rowid = ?", stale)
        return found

    def _write(self, db: sqlite3.Connection, embedder: str, rows: Rows) -> None:
        # A kill loses nothing either way; what a power failure breaks, the checks find, and it
        # costs an embedding. Waiting for the disk would cost more than most of those.
        db.execute("PRAGMA synchronous = OFF")
        with db:
            db.execute("INSERT OR IGNORE INTO embedders (id) VALUES (?)", (embedder,))
            number = _one(db, "SELECT embedder FROM embedders WHERE id = ?", embedder)
            now = int(self._clock())
            blobs = ((key, np.asarray(row, dtype="<f4").tobytes()) for key, row in rows.items())
            db.executemany(
                "INSERT OR IGNORE INTO vectors (text, embedder, used, crc, vector)"
                " VALUES (?, ?, ?, ?, ?)",
                ((key, number, now, _checksum(embedder, key, blob), blob) for key, blob in blobs),
            )
            pages = _one(db, "PRAGMA page_count") - _one(db, "PRAGMA freelist_count")
            full = pages * _one(db, "PRAGMA page_size") / self._max_bytes
            if full > 1:
                # Down to three quarters at once, so that the sweep that follows is rare.
                excess = math.ceil(_one(db, "SELECT count(*) FROM vectors") * (1 - 0.75 / full))
                db.execute(
                    "DELETE FROM vectors WHERE rowid IN"
                    " (SELECT rowid FROM vectors ORDER BY used, rowid LIMIT ?)",
                    (excess,),
                )
                db.execute("INSERT INTO remnants VALUES (1)")
        _sweep(db)


def is_cache(path: Path) -> bool:
    """Return whether a file is an embedding cache that can be read, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == _APPLICATION.to_bytes(4)


def _one(db: sqlite3.Connection, query: str, *values: object) -> Any:
    return db.execute(query, values).fetchone()[0]


def _sweep(db: sqlite3.Connection) -> None:
    """Write the file anew if rows were deleted since that was last done."""
    # secure_delete zeroes deleted cells, but SQLite does not promise it for cells that moved
    # between pages before. Writing all pages anew needs no such promise. The mark stays until
    # that is done, so that a crash in between does not lose the duty.
    if _one(db, "SELECT count(*) FROM remnants"):
        db.execute("PRAGMA synchronous = FULL")
        db.execute("VACUUM")
        with db:
            db.execute("DELETE FROM remnants")


def _checksum(embedder: str, text: object, blob: bytes) -> int:
    head = zlib.crc32(embedder.encode("utf-8", "surrogatepass"))
    return zlib.crc32(blob, zlib.crc32(text if isinstance(text, bytes) else b"", head))


def _key(text: str, role: str) -> bytes:
    return hashlib.sha256(f"{role}\0{text}".encode("utf-8", "surrogatepass")).digest()
