"""Snapshots of shards in object storage, and the changes since, through fsspec."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from cvx.cluster import shipping
from cvx.cluster.shipping import Change
from cvx.extras import needs
from cvx.store import Record

_MUCH = 200
"""So many changes wait at the most before they are written as one object."""
_MOST = 2_000
"""After so many changes a new snapshot takes the place of all before it."""


def _files(url: str) -> tuple[Any, str]:
    with needs("cluster"):
        import fsspec
    files, root = fsspec.core.url_to_fs(url)
    return files, str(root).rstrip("/")


class Archive:
    """Writes a shard's snapshots and changes to a bucket.

    An object is written whole under its final name; a restart takes the newest snapshot and every
    change after it.

    Parameters
    ----------
    url : str
        Of the bucket, as fsspec knows it.
    shard : int
        Whose.
    record : Record
        Its record.
    """

    def __init__(self, url: str, shard: int, record: Record) -> None:
        self._files, root = _files(url)
        self._root, self._record = f"{root}/shard-{shard:05d}", record
        self._files.makedirs(self._root, exist_ok=True)
        self._waiting: list[str] = []
        self._lock = threading.RLock()
        names = [int(Path(one).name.split(".")[0]) for one in self._listed()]
        self._number, self._since = max(names, default=0), 0

    def _listed(self) -> list[str]:
        return sorted(str(one) for one in self._files.ls(self._root, detail=False))

    def note(self, change: Change) -> None:
        """Keep a change to be written."""
        with self._lock:
            self._waiting.append(change.to_json())

    @property
    def is_due(self) -> bool:
        """Whether so many changes wait that they should be written."""
        return len(self._waiting) >= _MUCH

    def keep_up(self, folder: Path) -> None:
        """Write what waits, or a new snapshot where there are many changes since the last."""
        if self._since + len(self._waiting) >= _MOST:
            self.snapshot(folder)
        else:
            self.flush()

    def flush(self) -> None:
        """Write the changes that wait."""
        with self._lock:
            if self._waiting:
                self._number += 1
                name = f"{self._root}/{self._number:012d}.changes"
                self._files.pipe_file(name, "\n".join(self._waiting).encode())
                self._since += len(self._waiting)
                self._waiting.clear()

    def snapshot(self, folder: Path) -> str:
        """Write a snapshot, and remove what it makes needless; returns its name."""
        with self._lock:
            self.flush()
            before = self._listed()
            copy = folder / f"{Path(self._root).name}.snapshot"
            try:
                shipping.copy_to(self._record, copy)
                self._number += 1
                name = f"{self._root}/{self._number:012d}.db"
                self._files.put_file(str(copy), name)
            finally:
                copy.unlink(missing_ok=True)
            for old in before:
                self._files.rm_file(old)
            self._since = 0
            return name


def restore(url: str, shard: int, folder: Path) -> bool:
    """Make a shard's store of the newest snapshot and the changes after it; tell if it could."""
    files, root = _files(url)
    root = f"{root}/shard-{shard:05d}"
    listed = sorted(str(one) for one in files.ls(root, detail=False)) if files.exists(root) else []
    snapshots = [one for one in listed if one.endswith(".db")]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "memory.db"
    if snapshots:
        files.get_file(snapshots[-1], str(target))
        listed = listed[listed.index(snapshots[-1]) + 1 :]
    if not listed and not snapshots:
        return False
    with Record(target) as record:
        for name in listed:
            for line in files.cat_file(name).decode().splitlines():
                shipping.apply(record, Change.from_json(line))
    return True
