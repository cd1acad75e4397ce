"""One writer at a time, over threads and processes, and what a fork may not take along."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import stat
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

from cvx.errors import NestedTransactionError, RecordIOError
from cvx.store.ownfiles import read_own, refuse_link

_TAIL = re.compile(rb"(\d{20}) ([0-9a-f]{8})\n")
_SIZE = 30


class Tail(NamedTuple):
    """The end of the journal: its last number, and the checksum over everything up to there."""

    seq: int
    chain: int


def parse_tail(content: bytes) -> Tail | None:
    """Return what a lock file says, None if nothing legible."""
    found = _TAIL.fullmatch(content)
    return Tail(int(found[1]), int(found[2], 16)) if found else None


def tail_in(path: Path) -> Tail | None:
    """Return what a lock file says, None if there is none that is legible."""
    try:
        return parse_tail(read_own(path))
    except OSError:
        return None


class _Mutex:
    """Held by one thread of this process, whichever object it came from."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner: int | None = None


_mutexes: dict[tuple[int, int], _Mutex] = {}
_mutexes_guard = threading.Lock()
_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """The lock of a record: ``flock`` on a file, which the system drops when its holder dies.

    The file also says how far the journal went when it was last written; a record that ends
    earlier has lost its tail.

    Parameters
    ----------
    path : Path
        Made if it does not exist.

    Raises
    ------
    RecordIOError
        The file system refused, or there is something else in its place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        refuse_link(path)
        how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._fd = os.open(path, how, 0o644)
        except OSError as error:
            raise RecordIOError(
                f"{path} cannot be opened ({error.strerror}): make its folder writable, or open "
                "the store with read_only=True"
            ) from error
        known = os.fstat(self._fd)
        if not stat.S_ISREG(known.st_mode) or known.st_size > _SIZE:
            # Whatever it is, it was not written here.
            os.close(self._fd)
            what = f"holds {known.st_size} bytes, a lock at most {_SIZE}"
            if not stat.S_ISREG(known.st_mode):
                what = "is no regular file"
            raise RecordIOError(f"{path} {what}: move it away, and it is made anew")
        with _mutexes_guard:
            self._mutex = _mutexes.setdefault((known.st_dev, known.st_ino), _Mutex())
        _locks.add(self)

    def acquire(self) -> None:
        """Wait for the lock.

        Raises
        ------
        NestedTransactionError
            This thread holds it already, perhaps through another object.
        """
        me = threading.get_ident()
        if self._mutex.owner == me:
            raise NestedTransactionError(
                f"this thread is writing to {self.path.parent} already: finish that first"
            )
        self._mutex.lock.acquire()
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except BaseException:
            self._mutex.lock.release()
            raise
        self._mutex.owner = me

    def release(self) -> None:
        """Let the next one in."""
        self._mutex.owner = None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._mutex.lock.release()

    def tail(self) -> Tail | None:
        """Return how far the journal went, None if nothing legible says so."""
        return parse_tail(os.pread(self._fd, 64, 0))

    def note(self, tail: Tail | None) -> None:
        """Write down how far the journal goes; never synced, so never ahead of the record."""
        if tail is None:
            os.ftruncate(self._fd, 0)
        else:
            os.pwrite(self._fd, b"%020d %08x\n" % tail, 0)

    def close(self) -> None:
        """Give the file back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


_kept: list[object] = []


def keep_after_fork(thing: object) -> None:
    """Never free an object that a fork inherited: SQLite forbids closing it in the child."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    _kept.append(thing)


def _after_fork_in_child() -> None:
    global _mutexes_guard
    _mutexes_guard = threading.Lock()
    # The descriptor is shared with the parent: left open here, it would hold the lock after the
    # parent's death. Closing it does not unlock.
    for lock in list(_locks):
        lock.close()
    _mutexes.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
