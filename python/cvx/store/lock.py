"""The write lock: one writer at a time over threads, processes and forks."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import stat
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cvx.errors import LockTimeoutError, RecordIOError, StoreError
from cvx.store.files import read_own, refuse_link

_TAIL = re.compile(rb"(\d{20}) ([0-9a-f]{8})\n")
_SIZE = 30


class Tail(NamedTuple):
    """The end of the journal: its last number and a running checksum."""

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
_waiting: set[int] = set()
"""Descriptors that a thread waits on: a child that is forked meanwhile must not keep them."""


class FileLock:
    """The lock of a record: ``flock`` on a file, which the system drops when its holder dies.

    The file also says how far the journal went when it was last written; a record that ends
    earlier has lost its tail. Where the file was deleted or replaced, the next one to ask locks
    what stands there now.

    Parameters
    ----------
    path : Path
        Made if it does not exist, for its owner alone.
    timeout_s : float, default 60
        How long to wait for it.

    Raises
    ------
    RecordIOError
        The file system refused, or there is something else in its place.
    """

    def __init__(self, path: Path, timeout_s: float = 60.0) -> None:
        self.path = path
        self.timeout_s = timeout_s
        self._fd = self._open()
        self._mutex = _mutex_of(self._fd)
        _locks.add(self)

    def _open(self) -> int:
        refuse_link(self.path)
        how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            fd = os.open(self.path, how, 0o600)
        except OSError as error:
            raise RecordIOError(
                f"{self.path} cannot be opened ({error.strerror}): make its folder writable, or "
                "open the store with read_only=True"
            ) from error
        known = os.fstat(fd)
        if not stat.S_ISREG(known.st_mode) or known.st_size > _SIZE:
            # Whatever it is, it was not written here.
            os.close(fd)
            what = f"holds {known.st_size} bytes, a lock at most {_SIZE}"
            if not stat.S_ISREG(known.st_mode):
                what = "is no regular file"
            raise RecordIOError(f"{self.path} {what}: move it away, and it is made anew")
        return fd

    @property
    def free(self) -> bool:
        """Whether nobody, not even this thread, holds the lock at this moment."""
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return True

    def acquire(self, until: float | None = None) -> None:
        """Wait for the lock.

        Parameters
        ----------
        until : float, optional
            When to give up, by ``time.monotonic``; default ``timeout_s`` from now. What has passed
            already tries once, without waiting.

        Raises
        ------
        StoreError
            This thread holds it already, perhaps through another object.
        LockTimeoutError
            Somebody else has held it for longer.
        """
        me, began = threading.get_ident(), time.monotonic()
        until = began + self.timeout_s if until is None else until
        while True:
            mutex = self._mutex
            if mutex.owner == me:
                raise StoreError(
                    f"this thread is writing to {self.path.parent} already: finish that first"
                )
            if not mutex.lock.acquire(timeout=max(until - time.monotonic(), 0)):
                raise self._timeout(until - began)
            try:
                if self._mutex is mutex and self._lock_file(began, until):
                    mutex.owner = me
                    return
            except BaseException:
                mutex.lock.release()
                raise
            mutex.lock.release()

    def _lock_file(self, began: float, until: float) -> bool:
        """Lock the file; False where it is not the one that stands at the path any more."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # A descriptor of its own: one that is given up must not unlock what others hold.
            fd = _flock_until(self._open(), until) if until > time.monotonic() else -1
            if fd < 0:
                raise self._timeout(until - began) from None
            if _mutex_of(fd) is not self._mutex:
                fcntl.flock(fd, fcntl.LOCK_UN)
                self._replace(fd)
                return False
            self._replace(fd)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._fd), self.path.stat()):
                return True
        self._replace(self._open())
        return False

    def _replace(self, fd: int) -> None:
        self.close()
        self._fd = fd
        # Last: whoever takes this mutex may use the descriptor.
        self._mutex = _mutex_of(fd)

    def _timeout(self, waited_s: float) -> LockTimeoutError:
        return LockTimeoutError(
            f"{self.path} was held for more than {max(waited_s, 0.0):g} s by another thread or "
            "process: let it finish, or end it, and try again"
        )

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

    def note(self, tail: Tail) -> None:
        """Write down how far the journal goes; never synced, so never ahead of the record."""
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


def _mutex_of(fd: int) -> _Mutex:
    known = os.fstat(fd)
    with _mutexes_guard:
        return _mutexes.setdefault((known.st_dev, known.st_ino), _Mutex())


def _flock_until(fd: int, until: float) -> int:
    """Wait in a thread, in the system's fair queue; return fd locked, or -1 once time is up."""
    guard = threading.Lock()
    done = threading.Event()
    given_up = False

    def wait() -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with guard:
            _waiting.discard(fd)
            if given_up:
                os.close(fd)
            else:
                done.set()

    _waiting.add(fd)
    threading.Thread(target=wait, name="cvx-lock", daemon=True).start()
    done.wait(max(until - time.monotonic(), 0))
    with guard:
        given_up = not done.is_set()
    return -1 if given_up else fd


def keep_after_fork(thing: object) -> None:
    """Never free an object that a fork inherited: SQLite forbids closing it in the child."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork_in_child() -> None:
    global _mutexes_guard
    _mutexes_guard = threading.Lock()
    # The descriptor is shared with the parent: left open here, it would hold the lock after the
    # parent's death. Closing it does not unlock.
    for lock in list(_locks):
        lock.close()
    for fd in _waiting:
        os.close(fd)
    _waiting.clear()
    _mutexes.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
