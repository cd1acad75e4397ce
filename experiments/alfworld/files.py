"""Writing files that several processes may write and read at the same time."""

from __future__ import annotations

import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in its place when it is complete, so that a reader sees all of it or none.

    Parameters
    ----------
    path : Path
        Its folder is made if it is missing; a file that stands there is replaced.
    content : bytes
        All of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        draft = Path(file.name)
        try:
            file.write(content)
            file.close()
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
