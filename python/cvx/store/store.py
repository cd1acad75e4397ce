"""`Store`: opens a folder, holds record and index together, snapshots and compacts."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cvx.errors import (
    DamagedStoreError,
    InvalidInputError,
    LostTailError,
    RecordIOError,
    SettingsMismatchError,
    SnapshotError,
    StoreError,
    StoreNotFoundError,
)
from cvx.index import RawIndex
from cvx.store.database import Description
from cvx.store.failpoints import reach
from cvx.store.files import HALF_IMPORT, make_folders, regular
from cvx.store.history import History, HistoryLimits
from cvx.store.lock import Tail
from cvx.store.record import Record
from cvx.store.replica import Replica
from cvx.store.row_validation import explaining
from cvx.store.snapshots import Snapshots
from cvx.store.transactions import Follower
from cvx.store.writer import Writer

_FIRST_SNAPSHOT = 5_000
_MOST_UNREAD = 1_000
"""A snapshot is written again when so many rows of the journal, though of no use to an index,
would have to be read at the next opening."""


class EmbedderGuard(Follower):
    """Refuses reads and writes after another process changed the store's embedder.

    An index and an embedder that were opened before the move know nothing of it: what they would
    write and answer is of other vectors than what is stored.

    Parameters
    ----------
    record : Record
        What is followed.
    embedder : str
        The id of the embedder that it was opened with.
    """

    def __init__(self, record: Record, embedder: str) -> None:
        self._record = record
        self._embedder = embedder
        self._same_at: Tail | None = None

    def begun(self, write: Writer) -> None:
        """Refuse a transaction, before anything is written.

        Raises
        ------
        SettingsMismatchError
            The vectors are those of another embedder by now.
        """
        del write
        self.refresh()

    def refresh(self) -> None:
        """Refuse to read, as ``begun`` to write."""
        # A move to another embedder writes to the journal.
        tail = self._record.tail()
        if tail == self._same_at:
            return
        stored = self._record.meta("embedder")
        if stored != self._embedder:
            raise SettingsMismatchError(
                f"{self._record.path} was opened with {self._embedder} and has been moved to "
                f"{stored} since: open it again with that embedder"
            )
        self._same_at = tail


@dataclass(frozen=True, slots=True)
class IndexKind:
    """Which index a store has.

    Parameters
    ----------
    embedder, metric : str
        What the vectors are, and how they are compared.
    dim : int
        Length of the vectors.
    settings : mapping of str to int
        Of the index of a store that is made; one that is there keeps its own.
    """

    embedder: str
    metric: str
    dim: int
    settings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Description) -> IndexKind | None:
        """Return the kind of index that a store has; None where no memory opened it yet."""
        if known.embedder is None or known.dim is None:
            return None
        return cls(known.embedder, known.metric, known.dim)

    @property
    def made(self) -> tuple[str, str, int]:
        """Embedder, metric and dimension, as a snapshot names them."""
        return self.embedder, self.metric, self.dim

    def empty(self, record: Record) -> RawIndex:
        """Make an empty index for a record, with the settings that it was made with."""
        settings = record.told("index", dict)
        try:
            return RawIndex(self.dim, metric=self.metric, **settings)
        except (InvalidInputError, TypeError) as error:
            raise DamagedStoreError(
                f"{record.path} says {str(settings)[:80]} of its index, and none can be made with "
                f"that ({error}): restore a copy"
            ) from error


def _broke_off(folder: Path) -> bool:
    """Return whether an import was killed here: one that is under way keeps the folder locked."""
    if not (folder / HALF_IMPORT).is_dir():
        return False
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


class Store:
    """A folder with ``memory.db``, ``LOCK`` and ``index/``; or the same in RAM.

    Parameters
    ----------
    folder : Path or None
        Made if it does not exist; ``None`` for a store that lives as long as the object.
    kind : IndexKind
        Its index.
    clock : callable, optional
        As for ``Record``.
    create : bool, default True
        Whether a folder that is no store becomes one.
    record : Record, optional
        One in RAM that is there already, such as a copy of the past.
    read_only : bool, default False
        Write nothing, also no snapshot.
    kept : mapping of str to str, optional
        Further settings that a new store keeps.
    loaded : (RawIndex, int), optional
        The index of such a record, and the number of the journal that it holds.

    Raises
    ------
    StoreNotFoundError
        There is no store, and none is to be made.
    SettingsMismatchError
        The vectors in the store are those of another embedder.
    LostTailError
        The record ends before something that was written.
    StoreError
        It is the folder of a cluster, or one into which an import broke off.
    """

    def __init__(
        self,
        folder: Path | None,
        kind: IndexKind,
        *,
        clock: Callable[[], int] | None = None,
        create: bool = True,
        record: Record | None = None,
        read_only: bool = False,
        kept: Mapping[str, str] | None = None,
        loaded: tuple[RawIndex, int] | None = None,
    ) -> None:
        self.folder = folder
        self.snapshots: Snapshots | None = None
        self._kind = kind
        if folder is not None:
            self._make(folder, create and not read_only)
        self.record = record or Record(
            ":memory:" if folder is None else folder / "memory.db",
            clock=clock,
            read_only=read_only,
        )
        try:
            with explaining(self.record):
                self._begin(kept or {}, loaded)
        except BaseException:
            self.record.close()
            raise

    def _begin(self, kept: Mapping[str, str], loaded: tuple[RawIndex, int] | None) -> None:
        # Before anything is written: LOCK would forget how far it went.
        self._refuse(self.record.lost_tail())
        self._check_kind(kept)
        snapshots = None
        if self.folder is not None:
            kind = self._kind.made
            self.snapshots = snapshots = Snapshots(self.folder / "index", self.record, kind)
            self._refuse(snapshots.ahead())
            loaded = snapshots.newest()
        self._written = self._nodes_written = self._changes_written = 0
        # Before the index: it must not follow what it cannot hold.
        self.record.follow(EmbedderGuard(self.record, self._kind.embedder))
        self.replica = Replica(self.record, self.fresh, loaded)
        self.history = History(
            self.record, lambda: None if snapshots is None else snapshots.oldest()
        )
        self.record.follow(self.history)
        if loaded is not None:
            self._written, self._nodes_written = loaded[1], self._nodes()

    @staticmethod
    def _make(folder: Path, create: bool) -> None:
        there = (folder / "memory.db").is_file()
        if not there and (folder / "cluster.json").is_file():
            raise StoreError(
                f"{folder} is the folder of a cluster, whose shards are below it: open it with "
                "cvx.cluster.open"
            )
        if not there and _broke_off(folder):
            raise StoreError(
                f"an import or a repair into {folder} broke off, and nothing of it was taken in: "
                f"import again, which begins anew, or remove {folder / HALF_IMPORT}"
            )
        if not create and not there:
            raise StoreNotFoundError(f"{folder} is no store: there is no memory.db in it")
        if create:
            make_folders(folder)

    def _check_kind(self, kept: Mapping[str, str]) -> None:
        own = {
            "embedder": self._kind.embedder,
            "metric": self._kind.metric,
            "dim": str(self._kind.dim),
        }
        if self.record.meta("embedder") is None:
            with self.record.transaction() as write:
                if self.record.meta("embedder") is None:
                    self._check_first_vector()
                    for name, value in {**own, **kept}.items():
                        write.set_meta(name, value)
                    write.set_meta("index", json.dumps(dict(self._kind.settings)))
        for name, value in own.items():
            stored = self.record.meta(name)
            if stored != value:
                embedder = str(self.record.meta("embedder"))[:80]
                raise SettingsMismatchError(
                    f"{self.folder} holds vectors of {name} {str(stored)[:80]}, this is {value}: "
                    f"open it with embedder {embedder}, or move it over with reembed"
                )

    def _check_first_vector(self) -> None:
        # A record of the first version does not say what its vectors are.
        found = self.record.query(
            "SELECT length(embedding) / 4 FROM events WHERE embedding IS NOT NULL LIMIT 1"
        )
        if found and found[0][0] != self._kind.dim:
            raise SettingsMismatchError(
                f"{self.folder} holds vectors of dimension {found[0][0]}, this embedder makes "
                f"{self._kind.dim}: open it with the one that it was made with"
            )

    def _refuse(self, lost: Tail | None) -> None:
        if lost is not None:
            raise LostTailError(
                f"{self.folder} was written up to change {lost.seq}, its record ends at "
                f"{self.record.tail().seq}: restore a copy, or go on from there with "
                "`cvx doctor --repair NEW_FOLDER`"
            )

    def fresh(self) -> RawIndex:
        """Make an empty index of the store's kind and settings."""
        return self._kind.empty(self.record)

    @property
    def index(self) -> RawIndex:
        """The index, level with the record as it was at the last ``refresh``."""
        return self.replica.index

    def refresh(self) -> None:
        """See what other processes committed."""
        self.record.refresh()

    def _nodes(self) -> int:
        return int(self.index.stats()["ids_given"])

    def snapshot(self) -> bool:
        """Write a snapshot if something changed since the last one; tell whether one is there.

        An index without the damaged rows is not written: the damage would be forgotten. Nor is
        one of a store that may only be read.

        Raises
        ------
        SnapshotError, RecordIOError
            The file system refused. The record is untouched.
        """
        if self.snapshots is None or self.record.frozen:
            return False
        with self.record.locked():
            self.refresh()
            self.replica.catch_up()
            if self.replica.incomplete:
                return False
            unread = self.replica.seq - self._written
            if self.replica.changes > self._changes_written or unread > _MOST_UNREAD:
                self.snapshots.write(self.index, self.record.tail())
                self._written, self._nodes_written = self.replica.seq, self._nodes()
                self._changes_written = self.replica.changes
        return True

    def forget_snapshots(self) -> None:
        """Take note that there is no snapshot any more."""
        self._written = self._nodes_written = 0
        self._changes_written = -1

    def snapshot_if_grown(self) -> None:
        """Write a snapshot when a rebuild would cost twice what it did at the last one.

        Also where the last one keeps more of the journal than the limits of the history do.
        """
        if self.snapshots is None or self.record.writing:
            return
        grown = self._nodes() >= max(_FIRST_SNAPSHOT, 2 * self._nodes_written)
        if grown or self.history.held_back:
            self.history.held_back = False
            # The record has it all: a snapshot that fails costs time, never an answer.
            with suppress(SnapshotError, RecordIOError):
                self.snapshot()

    def close(self) -> None:
        """Write a snapshot and close. Closing again does nothing."""
        if self.record.closed:
            return
        try:
            with (
                explaining(self.record),
                suppress(SnapshotError, RecordIOError, SettingsMismatchError),
            ):
                self.snapshot()
            reach("close.snapshot")
        finally:
            self.record.close()

    def stats(self) -> dict[str, Any]:
        """Count what the store holds, and say how its index came about."""
        count = self.record.query(
            "SELECT count(*), ifnull(sum(state = 'active'), 0),"
            " ifnull(sum(length(CAST(text AS BLOB)) + ifnull(length(embedding), 0)), 0)"
            " FROM events"
        )[0]
        limits = HistoryLimits.stored(self.record)
        return {
            "events": count[0],
            "active": count[1],
            "bytes": count[2],
            "links": self.record.query("SELECT count(*) FROM links")[0][0],
            "episodes": self.record.query("SELECT count(*) FROM episodes")[0][0],
            "seq": self.record.tail().seq,
            "history": {
                "decisions": self.record.query("SELECT count(*) FROM decisions")[0][0],
                "most_decisions": limits.decisions,
                "changes": self.record.query("SELECT count(*) FROM journal")[0][0],
                "most_changes": limits.changes,
            },
            "snapshot_seq": self._written,
            "rebuilds": self.replica.rebuilds,
            "damaged": list(self.record.damaged),
            "snapshots_refused": [
                *([] if self.snapshots is None else self.snapshots.refused),
                *self.replica.refused,
            ],
            "embedder": self._kind.embedder,
            "index": self.index.stats(),
        }


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


def compact(store: Store) -> Compacted:
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
