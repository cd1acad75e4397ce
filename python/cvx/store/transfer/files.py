"""Writing beside the place and renaming, so that what is there is whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cvx.errors import CvxError, FileError
from cvx.store.ownfiles import sync_folder, sync_whole


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
        sync_whole(beside)
        beside.rename(path)
        sync_folder(path.absolute().parent)
    except CvxError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written ({error.strerror or error})") from error
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)
