"""Makes a new store that gets its place in a folder only when all of it is there."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cvx.errors import CvxError, ExportError, RecordIOError
from cvx.store.files import HALF_IMPORT, make_folders, refuse_link, sync
from cvx.store.record import Record


@contextmanager
def founded(folder: Path) -> Iterator[Record]:
    """Make a record that gets its place in a folder at the end of a block.

    Parameters and errors are those of ``staged``.

    Yields
    ------
    Record
        An empty one, which nobody else has open.
    """
    with staged(folder) as staging, Record(staging / "memory.db") as record:
        # Nobody else reads it, and nothing of it is kept if the block ends early: its pages are
        # written once, without a write-ahead log.
        _keep_journal(record, "DELETE")
        yield record
        # Here already: a journal of this change would have to be beside it when it is opened next.
        _keep_journal(record, "WAL")


def _keep_journal(record: Record, mode: str) -> None:
    with record.database.typed_errors():
        record.database.connection().execute(f"PRAGMA journal_mode = {mode}")


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Let a store be made in a folder of its own, which gets its place at the end of a block.

    Nothing that is in the folder is ever replaced or taken away, so that a store which another
    process begins there meanwhile is safe. If the block fails, folders that were made for it go
    again, as far as nobody else put something into them.

    Parameters
    ----------
    folder : Path
        Made if there is none; it holds no ``memory.db``.

    Yields
    ------
    Path
        The folder to make it in. Whatever opened it must have closed it by the end of the block.

    Raises
    ------
    ExportError
        Another process has begun a store there in the meantime.
    RecordIOError
        The file system refused.
    """
    made = [one for one in [folder, *folder.parents] if not one.exists()]
    try:
        with _alone_in(folder):
            staging = folder / HALF_IMPORT
            refuse_link(staging)
            shutil.rmtree(staging, ignore_errors=True)
            try:
                staging.mkdir(mode=0o700)
                yield staging
                _place(staging, folder)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except BaseException:
        with suppress(OSError):
            for one in made:
                one.rmdir()
        raise


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait for other imports into a folder, which is made if it is not there."""
    try:
        handle = _locked(folder)
    except CvxError:
        raise
    except OSError as error:
        raise RecordIOError(f"{folder} cannot be made ({error.strerror})") from error
    try:
        yield
    finally:
        os.close(handle)


def _locked(folder: Path) -> int:
    while True:
        make_folders(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # An import that failed may have taken its folder away while this one waited for it.
        if folder.exists() and os.path.samestat(os.fstat(handle), folder.stat()):
            return handle
        os.close(handle)


def _place(staging: Path, folder: Path) -> None:
    if (staging / "memory.db-wal").exists():
        raise RecordIOError(f"{staging}: the write-ahead log could not be written back: make room")
    try:
        # Unlike a rename, a link never replaces what has the name by now.
        os.link(staging / "memory.db", folder / "memory.db")
        (staging / "memory.db").unlink()
    except FileExistsError as error:
        raise ExportError(
            f"another process has begun a store in {folder} meanwhile: import again to add the "
            "events to it. Nothing was taken in"
        ) from error
    except OSError as error:
        raise RecordIOError(f"{folder / 'memory.db'}: {error.strerror}") from error
    if (staging / "index").is_dir() and not os.path.lexists(folder / "index"):
        (staging / "index").rename(folder / "index")
    sync(folder)
    with Record(folder / "memory.db") as record:
        # A lock file of a store that was lost here goes further than the copy that replaces it.
        record.forget_lost_tail()
