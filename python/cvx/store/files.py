"""File operations of a store: durable writes, private permissions, no symbolic links.

A folder may come from somebody else. A link in it could lead anywhere, so that what is read,
written or deleted through it would be another file of the user's.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cvx.errors import CvxError, FileError, RecordIOError
from cvx.store.failpoints import reach
from cvx.validation import names_another_file

SNAPSHOT = re.compile(r"(0|[1-9][0-9]{0,18})\.(json|cvx)")
"""What a snapshot is called: the number of the last change in it."""
HALF_SNAPSHOT = re.compile(r"[0-9]{1,19}\.(json\.tmp|cvx\.([0-9a-f]{16}|[0-9]+-[0-9]+)\.tmp)")
"""What is renamed into one, and left by a process that was killed before that."""
LEARNED_STATE = re.compile(r"learned-[0-9a-f]{16}\.(bin|seal)")
"""What a file with what was learned is called, by who may read it, and the seal beside it."""
HALF_LEARNED_STATE = re.compile(r"learned-[0-9a-f]{16}\.(bin|seal)\.tmp")
"""What is renamed into one."""
LOST_SNAPSHOT = re.compile(SNAPSHOT.pattern + r"\.lost")
"""One of a history that the record does not know, set aside."""
HALF_EXPORT = re.compile(r"\A.+\.[0-9]+\.partial(\.wal|\.tmp)?")
"""What an export writes to until it is whole, DuckDB's own log and folder beside it included."""
HALF_IMPORT = "import.partial"
"""Where a record grows before it gets its place. A process that was killed leaves it behind; the
next import there, and the doctor, clear it away."""
HALF_COPIES = HALF_EXPORT, re.compile(re.escape(HALF_IMPORT))
"""What copies of a whole record are called that are under way, or broke off."""


def named_like(folder: Path, *names: re.Pattern[str]) -> list[Path]:
    """Return what is in a folder under one of these names; nothing where there is none."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if any(name.fullmatch(path.name) for name in names))


def in_index(store: Path, *names: re.Pattern[str]) -> list[Path]:
    """Return what is beside the snapshots of a store; nothing where a link stands in their place.

    The folder of a store may be reached by a link, but none inside it is followed.
    """
    index = store / "index"
    return [] if index.is_symlink() else named_like(index, *names)


def sync(path: Path) -> None:
    """Make durable what a file holds, or which files a folder does."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], None]) -> None:
    """Write a file of a store, its owner's alone, all of it or nothing; durable at return.

    Parameters
    ----------
    path : Path
        Where it is when it is whole.
    content : bytes or callable
        What it holds, or who writes that.
    """
    beside = path.with_name(f"{path.name}.tmp")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        if callable(content):
            content(file)
        else:
            file.write(content)
        file.flush()
        reach("manifest.written")
        os.fsync(file.fileno())
    reach("manifest.synced")
    beside.replace(path)
    reach("manifest.renamed")
    sync(path.parent)


def make_folders(folder: Path) -> None:
    """Make a folder, its owner's alone, and its parents where there are none; durable at return.

    Raises
    ------
    RecordIOError
        It cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in missing:
            sync(one.parent)
    except OSError as error:
        raise RecordIOError(f"{folder} cannot be made ({error.strerror})") from error


def regular(path: Path) -> bool:
    """Return whether a path is a regular file and no link."""
    try:
        return stat.S_ISREG(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def refuse_link(path: Path) -> None:
    """Refuse a link where a file or folder of a store has its place.

    Raises
    ------
    RecordIOError
        There is one.
    """
    if path.is_symlink():
        raise RecordIOError(
            f"{path} is a symbolic link, and links in a store are not followed: move what is meant "
            "to its place, or remove the link"
        )


BESIDE_RECORD = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database: its name, and one of these."""


def refuse_foreign(record: Path) -> None:
    """Refuse to open a record through which SQLite would reach a file outside the folder.

    Raises
    ------
    RecordIOError
        It or what stands beside it is a link or no regular file, or its journal names another file.
    """
    for ending in ("", *BESIDE_RECORD):
        path = record.with_name(record.name + ending)
        refuse_link(path)
        # Others may remove it meanwhile; a pipe would be waited for without end.
        with suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(path.stat(follow_symlinks=False).st_mode):
                raise RecordIOError(f"{path} is no regular file: move it away")
    if names_another_file(record):
        raise RecordIOError(
            f"{record}-journal names another file, which SQLite would delete, and no cvx wrote it: "
            "remove that journal"
        )


def open_own(path: Path) -> BinaryIO:
    """Open a file of a store or an export for reading.

    Raises
    ------
    OSError
        There is none, or a link or something else in its place.
    """
    # A pipe would hold up whoever opens it.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(handle, "rb")


def read_own(path: Path, most: int = 1 << 16) -> bytes:
    """Return what a small file of a store holds, as far as ``most`` bytes.

    Raises
    ------
    OSError
        As for ``open_own``.
    """
    with open_own(path) as file:
        return file.read(most)


def make_private(path: Path) -> None:
    """Make an empty file that its owner alone may read, unless something is there already."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


_NETWORKED = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs", "lustre", "gfs2")
)


def refuse_network(folder: Path, mounts: str | None = None) -> None:
    """Raise where a folder lies on a file system whose locks do not keep machines apart.

    Parameters
    ----------
    folder : Path
        Of a store.
    mounts : str, optional
        What is mounted where, in the form of Linux's ``/proc/self/mountinfo``; by default that
        file. Where there is none, nothing is refused.

    Raises
    ------
    RecordIOError
        It does.

    References
    ----------
    SQLite, "Write-Ahead Logging": it "does not work over a network filesystem".
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        except OSError:
            return
    place = folder.resolve()
    kind, depth = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(_UNESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4]))
        # Of two on one point the later one hides the earlier.
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = after.split()[0], len(point.parts)
    if kind in _NETWORKED:
        raise RecordIOError(
            f"{folder} lies on a network file system ({kind}), where locks and SQLite's log cannot "
            "be relied on: keep the store on a local disk, and carry it over by export and import"
        )


_UNESCAPED = re.compile(r"\\([0-7]{3})")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path to write a file or a folder to, and put it in place when the block is done.

    It is durable then, and was before it had its name.

    Raises
    ------
    FileError
        There is something at the place already, or the file system refused.
    """
    if path.exists():
        raise FileError(f"{path} is there already: give another name, or remove it first")
    beside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield beside
        for one in (*beside.rglob("*"), beside):
            sync(one)
        beside.rename(path)
        sync(path.absolute().parent)
    except CvxError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written ({error.strerror or error})") from error
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)
