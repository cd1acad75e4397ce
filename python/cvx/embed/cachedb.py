"""What the embedding cache does to its SQLite file: making, checking, forgetting, locking."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cvx.errors import EmbeddingCacheError

_APPLICATION = 0x63767845
_FORMAT = 1
_PAGE_BYTES = 16384
_SCHEMA = """
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
"""


class DamageError(Exception):
    """The file is not what was written."""


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables in a new file; refuse a file of something else."""
    db.execute("PRAGMA secure_delete = ON")
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if (application, version) == (_APPLICATION, _FORMAT):
        return
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if "vectors" in tables and "embedders" in tables:
        raise DamageError(f"its header says application {application:#x}, format {version}")
    if tables or application:
        raise EmbeddingCacheError(
            f"{path} is a database of something else ({', '.join(sorted(tables)[:5])}): "
            "give the cache a file of its own"
        )
    db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    db.executescript(
        f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION};"
        f" PRAGMA user_version = {_FORMAT}; COMMIT;"
    )


def is_cache(path: Path) -> bool:
    """Return whether a file is an embedding cache that can be read, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == _APPLICATION.to_bytes(4)


def forget(db: sqlite3.Connection, keys: Sequence[bytes]) -> int:
    """Delete the rows of these texts, whoever embedded them, and every trace of them."""
    with transaction(db):
        before = db.total_changes
        db.executemany("DELETE FROM vectors WHERE text = ?", ((key,) for key in keys))
        gone = db.total_changes - before
        if gone:
            db.execute("INSERT INTO remnants VALUES (1)")
    sweep(db)
    return gone


def sweep(db: sqlite3.Connection) -> None:
    """Write the file anew if rows were deleted since that was last done."""
    # secure_delete zeroes deleted cells, but SQLite does not promise it for cells that moved
    # between pages before. Writing all pages anew needs no such promise. The mark stays until
    # that is done, so that a crash in between does not lose the duty.
    if db.execute("SELECT 1 FROM remnants LIMIT 1").fetchone():
        db.execute("PRAGMA synchronous = FULL")
        db.execute("VACUUM")
        db.execute("DELETE FROM remnants")


def used_bytes(db: sqlite3.Connection) -> int:
    """Size of the pages in use."""
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def checksum(embedder: str, text: object, blob: bytes) -> int:
    """CRC-32 of a row."""
    head = zlib.crc32(embedder.encode("utf-8", "surrogatepass"))
    return zlib.crc32(blob, zlib.crc32(text if isinstance(text, bytes) else b"", head))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end, or roll back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock alone, among threads and processes."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: SQLite's own locks have to do
        yield
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Said aloud: a child forked meanwhile holds a copy of the handle.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
