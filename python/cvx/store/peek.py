"""What a store says of itself, without opening it: nothing is written, locked or migrated."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cvx.errors import DamagedStoreError, LostTailError, StoreError, StoreNotFoundError
from cvx.store.following import typed_error
from cvx.store.lock import tail_in
from cvx.store.reading import connect_to_read
from cvx.store.schema import version_of


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
        How to make the embedder, where the store was told (``cvx.embed.spec``).
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
