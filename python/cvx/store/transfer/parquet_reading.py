"""Reads Parquet files of an export, each after another process has shown that it can be read.

polars believes what a file says of itself: where a changed byte makes it ask for more memory than
there is, the whole process ends. So a Python of its own reads each file first, with little memory,
and nothing that it read is used.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.errors import ExportError
from cvx.extras import needs
from cvx.store.files import open_own

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 5_000
"""So many rows has a file of an export at most."""
_SPARE_BYTES, _MOST_PACKED = 64 << 20, 1_000
_TIMES_TEXT = 4
"""Reading takes so many times the text that a file may stand for."""
_LEAST_SECONDS, _BYTES_A_SECOND = 60, 1 << 20
_ALONE = {"POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
# The modules are those of this process: not what lies in the folder of the user.
_CHILD = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from cvx.store.transfer.parquet_reading import _read_all; _read_all()"
)


def most_text(size: int) -> int:
    """Return how many bytes of text a file of so many bytes may stand for."""
    return _SPARE_BYTES + _MOST_PACKED * size


def read_columns(path: Path, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return columns of a file, of at most ``MOST_ROWS + 1`` rows, and its size in bytes.

    Raises
    ------
    MissingExtraError
        The package polars is not installed.
    OSError, polars.exceptions.PolarsError, polars.exceptions.PanicException
        It cannot be read.
    """
    with needs("frames"):
        import polars as pl

    # An open file: no pattern, no address and no link stands for another one.
    with open_own(path) as file:
        found = pl.read_parquet(
            file, columns=list(names), n_rows=MOST_ROWS + 1, hive_partitioning=False
        )
        return found, os.fstat(file.fileno()).st_size


@contextmanager
def tried(files: Sequence[tuple[Path, Sequence[str]]]) -> Iterator[Callable[[int], None]]:
    """Have another process read columns of files, ahead of this one, and throw them away.

    It may take memory of four times the text that a file may stand for (1,000 times its size and
    64 MB), of half of the machine's at most, beyond what it takes itself, and a second for each MB
    of all files beyond the first minute.

    Yields
    ------
    callable
        Waits until the file of a number was read there; raises an ExportError with its name if
        that process failed, ended or took too long at it.

    Raises
    ------
    MissingExtraError
        The package polars is not installed.
    ExportError
        That process could not be started.
    """
    with needs("frames"):
        import polars  # noqa: F401

    size = sum(path.stat(follow_symlinks=False).st_size for path, _ in files)
    seconds = _LEAST_SECONDS + size // _BYTES_A_SECOND
    told = json.dumps([seconds, [(str(path), list(names)) for path, names in files]])
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _CHILD, *sys.path],
            env=os.environ | _ALONE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise unreadable(files[0][0].parent.parent, error) from error
    with child:
        begun, said = 0, list[bytes]()

        def wait_for(number: int) -> None:
            nonlocal begun
            assert child.stdout is not None
            # That a file was read is known when the next is begun, or all are done.
            while begun < number + 2 and (line := child.stdout.readline()):
                if line == b"%d\n" % begun:
                    begun += 1
                else:
                    said.append(line)
            if begun < number + 2 and child.wait():
                path = files[begun - 1][0] if begun else files[0][0].parent.parent
                raise unreadable(path, _why(child.returncode, b"".join(said)))

        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin:  # If it ended, who waits is told.
                child.stdin.write(told.encode())
            yield wait_for
        finally:
            child.kill()


def _why(code: int, said: bytes) -> str:
    """Return what a process that ended with a code has said of it."""
    lines = said.decode(errors="replace").strip().splitlines() or [""]
    return f"{signal.Signals(-code).name}: {lines[0]}" if code < 0 else lines[-1]


def unreadable(path: Path, why: object) -> ExportError:
    """Return the error for a file that polars does not read."""
    return ExportError(
        f"{path} cannot be read ({str(why)[:200]}): export again. Nothing was taken in"
    )


def _read_all() -> None:
    """Read the files that the standard input names; say before each which it is."""
    import polars  # noqa: F401

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds, files = json.load(sys.stdin)
    # Whatever it is doing then, it ends.
    signal.alarm(seconds)
    for number, (path, names) in enumerate(files):
        print(number, flush=True)
        _bound_memory(Path(path).stat(follow_symlinks=False).st_size)
        read_columns(Path(path), names)


def _bound_memory(size: int) -> None:
    """Take no more memory than the reading of a file of so many bytes can be worth."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return  # Linux alone holds a process to it.
    page = resource.getpagesize()
    half = os.sysconf("SC_PHYS_PAGES") * page // 2
    most = int(statm.read_text().split()[0]) * page + min(_TIMES_TEXT * most_text(size), half)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
