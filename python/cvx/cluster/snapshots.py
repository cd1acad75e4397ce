"""Snapshots of shards in object storage, and the changes since, through fsspec."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from cvx.cluster import replication
from cvx.cluster.replication import Change
from cvx.extras import needs
from cvx.store import Record
from cvx.store.files import make_folders, make_private

_MOST = 2_000
"""After so many changes a new snapshot takes the place of all before it."""


def _files(url: str, shard: int) -> tuple[Any, str]:
    """Return the file system of a bucket, and the folder of a shard in it."""
    with needs("cluster"):
        import fsspec
    files, root = fsspec.core.url_to_fs(url)
    return files, f"{str(root).rstrip('/')}/shard-{shard:05d}"


class Archive:
    """Writes a shard's snapshots and changes to a bucket, in the name of one epoch.

    An object is written whole under its final name, which begins with the epoch of who leads: a
    restart takes the newest snapshot of the newest epoch and the changes after it, so that what an
    older leader still writes is passed over.

    Parameters
    ----------
    url : str
        Of the bucket, as fsspec knows it.
    shard, epoch : int
        Whose, and by which leader.
    record : Record
        Its record.
    """

    def __init__(self, url: str, shard: int, epoch: int, record: Record) -> None:
        self._files, self._root = _files(url, shard)
        self._epoch, self._record = epoch, record
        self._files.makedirs(self._root, exist_ok=True)
        self._waiting: list[str] = []
        self._lock = threading.RLock()
        self._number = self._since = 0

    def _next(self, ending: str) -> str:
        self._number += 1
        return f"{self._root}/{self._epoch:08d}-{self._number:012d}.{ending}"

    def note(self, change: Change) -> None:
        """Keep a change to be written."""
        with self._lock:
            self._waiting.append(change.to_json())

    def keep_up(self) -> None:
        """Write what waits, or a new snapshot where there are many changes since the last."""
        if self._since + len(self._waiting) >= _MOST:
            self.snapshot()
        else:
            self.flush()

    def flush(self) -> None:
        """Write the changes that wait."""
        with self._lock:
            if self._waiting:
                self._files.pipe_file(self._next("changes"), "\n".join(self._waiting).encode())
                self._since += len(self._waiting)
                self._waiting.clear()

    def snapshot(self) -> str:
        """Write a snapshot, and remove what it makes needless; returns its name."""
        with self._lock:
            self.flush()
            copy = Path(self._record.path).with_suffix(".snapshot")
            try:
                replication.copy_to(self._record, copy)
                name = self._next("db")
                self._files.put_file(str(copy), name)
            finally:
                copy.unlink(missing_ok=True)
            for old in self._files.ls(self._root, detail=False):
                # Not those of a later leader, if this one does not know yet that there is one.
                if Path(old).name < Path(name).name:
                    self._files.rm_file(old)
            self._since = 0
            return name


def remove(url: str, shard: int) -> None:
    """Remove all that there is of a shard."""
    files, root = _files(url, shard)
    if files.exists(root):
        files.rm(root, recursive=True)


def restore(url: str, shard: int, folder: Path) -> bool:
    """Make a shard's store of the newest snapshot and the changes after it; tell if it could."""
    files, root = _files(url, shard)
    listed = sorted(str(one) for one in files.ls(root, detail=False)) if files.exists(root) else []
    made = [place for place, one in enumerate(listed) if one.endswith(".db")]
    if not made:
        return False
    make_folders(folder)
    make_private(folder / "memory.db")
    files.get_file(listed[made[-1]], str(folder / "memory.db"))
    with Record(folder / "memory.db") as record:
        for name in listed[made[-1] + 1 :]:
            for line in files.cat_file(name).decode().splitlines():
                replication.apply(record, Change.from_json(line))
    return True
