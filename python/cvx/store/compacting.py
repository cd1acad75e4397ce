"""Giving back the room that a store does not need."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cvx.store.cached import Index
from cvx.store.ownfiles import regular
from cvx.store.store import Store


class Compacted(NamedTuple):
    """What compacting did.

    Attributes
    ----------
    before, after : int
        Bytes of all files of the store, without SQLite's shared memory.
    complete : bool
        Whether the write-ahead log could be emptied; another process that is reading keeps it.
    """

    before: int
    after: int
    complete: bool


def compact(store: Store[Index]) -> Compacted:
    """Write the database without free pages, keep one fresh snapshot, empty the log.

    Raises
    ------
    RecordIOError, SnapshotError
        There is no room for the copies that this takes for a moment; nothing is lost.
    """
    before = size_of(store.folder)
    store.snapshot()
    if store.snapshots is not None:
        with store.record.locked():
            store.snapshots.prune(1)
    complete = store.record.compact()
    return Compacted(before, size_of(store.folder), complete)


def size_of(folder: Path | None) -> int:
    """Return the bytes of all files that stay below a folder; 0 for a store in RAM."""
    if folder is None:
        return 0
    total = 0
    for path in folder.rglob("*"):
        # SQLite's shared memory grows with the log that compacting writes, and goes at close.
        if path.name.endswith("-shm"):
            continue
        try:
            total += path.stat(follow_symlinks=False).st_size if regular(path) else 0
        except FileNotFoundError:
            # A log may go away while we look.
            continue
    return total
