"""Exports as Parquet: each file is read after another process has shown that it can be.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cvx.errors import ExportError, FileError
from cvx.extras import needs
from cvx.store import rows
from cvx.store.files import open_own, read_own, written_whole
from cvx.store.transfer.format import (
    MOST_ROWS,
    VECTOR,
    Batch,
    Header,
    Incoming,
    Row,
    Types,
)

with needs("frames"):
    import polars as pl

_SPARE_BYTES, _MOST_PACKED = 64 << 20, 1_000
_TIMES_TEXT = 4
"""Reading takes so many times the text that a file may stand for."""
_LEAST_SECONDS, _BYTES_A_SECOND = 60, 1 << 20
_ALONE = {"POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
# The modules are those of this process: not what lies in the folder of the user.
_CHILD = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from cvx.store.transfer.parquet_file import _read_all; _read_all()"
)


def write(path: Path, header: Header, types: Types, found: Iterable[Batch]) -> None:
    """Write an export; the folder is there whole or not at all.

    Every table has at least one file, so that its columns can be seen. Vectors are lists of
    float32.
    """
    with written_whole(path) as beside:
        write_into(beside, header, types, found)


def write_into(folder: Path, header: Header, types: Types, found: Iterable[Batch]) -> None:
    """Write the files of an export into a folder that is made here."""
    numbers = dict.fromkeys(rows.COLUMNS, 0)
    for table in rows.COLUMNS:
        (folder / table).mkdir(parents=True)
    for table, some in chain(found, ((table, []) for table in rows.COLUMNS)):
        if some or not numbers[table]:
            place = folder / table / f"{numbers[table]:05}.parquet"
            frame(table, types[table], some).write_parquet(place)
            numbers[table] += 1
    (folder / "header.json").write_text(header.to_text() + "\n", encoding="utf-8")


def frame(table: str, types: Mapping[str, str], some: list[Row]) -> pl.DataFrame:
    """Return rows as a frame."""
    plain = {"INTEGER": pl.Int64, "REAL": pl.Float64, "TEXT": pl.String, "BLOB": pl.Binary}
    series = []
    for place, name in enumerate(rows.stored_columns(table)):
        values = [row[place] for row in some]
        if name == VECTOR:
            series.append(_lists(values))
        elif name == "helped":
            # A count that is not always whole.
            series.append(pl.Series(name, map(float, values), dtype=pl.Float64))
        else:
            series.append(pl.Series(name, values, dtype=plain[types[name]], strict=True))
    return pl.DataFrame(series)


def _lists(blobs: list[bytes | None]) -> pl.Series:
    kind, nothing = pl.List(pl.Float32), bytes(max(len(blob or b"") for blob in (*blobs, None)))
    if not nothing:
        return pl.Series(VECTOR, [None] * len(blobs), dtype=kind)
    matrix = np.frombuffer(b"".join(blob or nothing for blob in blobs), dtype="<f4")
    there = [blob is not None for blob in blobs]
    found = pl.DataFrame({VECTOR: matrix.reshape(len(blobs), -1), "there": there})
    return found.select(pl.when("there").then(VECTOR).cast(kind).alias(VECTOR)).to_series()


def read(path: Path) -> Incoming:
    """Begin to read an export from its folder.

    Raises
    ------
    FileError
        It cannot be read.
    ExportError
        It is no export.
    """
    try:
        told = read_own(path / "header.json", most=1 << 20)
    except OSError as error:
        raise FileError(
            f"{path} cannot be read as an export in Parquet ({error.strerror}): it is a folder "
            "with header.json in it"
        ) from error
    header = Header.from_text(told, str(path / "header.json"))
    found = [(table, file) for table in rows.COLUMNS for file in _files_of(path / table)]
    return Incoming(header, _tried(found))


def _tried(found: list[tuple[str, Path]]) -> Iterator[Batch]:
    if not found:
        return
    with tried([(file, rows.stored_columns(table)) for table, file in found]) as wait_for:
        for number, (table, file) in enumerate(found):
            wait_for(number)
            if some := _rows_of(file, table):
                yield table, some


def _files_of(folder: Path) -> list[Path]:
    if folder.is_symlink():
        raise ExportError(f"{folder} is a symbolic link: give the folder that was exported")
    return sorted(folder.glob("*.parquet"))


def _rows_of(path: Path, table: str) -> list[Row]:
    wanted = rows.stored_columns(table)
    try:
        found, size = read_columns(path, wanted)
        _check_frame(found, table, size)
        parts = [_values(found.get_column(name), name) for name in wanted]
        return list(zip(*parts, strict=True))
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, error) from error
    except pl.exceptions.PanicException as error:
        raise unreadable(path, error) from None


def _check_frame(found: pl.DataFrame, table: str, size: int) -> None:
    """Raise a ValueError where a file holds something else than we write, or far more."""
    for name, dtype in found.schema.items():
        kinds = [pl.List(pl.Float32)] if name == VECTOR else [pl.Int64, pl.Float64, pl.String]
        if dtype not in kinds:
            raise ValueError(f"{name} is of type {dtype}")
    if len(found) > MOST_ROWS:
        raise ValueError(f"it has more than {MOST_ROWS} rows of {table}")
    bytes_there = sum(
        int(found.get_column(name).str.len_bytes().sum())
        for name, dtype in found.schema.items()
        if dtype == pl.String
    )
    if bytes_there > most_text(size):
        raise ValueError(f"{size} bytes stand for {bytes_there} of text")


def _values(series: pl.Series, name: str) -> list[Any]:
    """Return a column as what SQLite stores: vectors as bytes."""
    if name == "helped":
        return [int(value) if value.is_integer() else value for value in series.to_list()]
    if name != VECTOR:
        return series.to_list()
    lengths = series.list.len()
    if lengths.n_unique() == 1 and not series.has_nulls() and (dim := lengths[0]):
        # Rows of one length lie behind each other.
        joined = series.explode().to_numpy().astype("<f4", copy=False).tobytes()
        return [joined[at : at + 4 * dim] for at in range(0, len(joined), 4 * dim)]
    return [None if one is None else one.to_numpy().astype("<f4").tobytes() for one in series]


def most_text(size: int) -> int:
    """Return how many bytes of text a file of so many bytes may stand for."""
    return _SPARE_BYTES + _MOST_PACKED * size


def read_columns(path: Path, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Return columns of a file, of at most ``MOST_ROWS + 1`` rows, and its size in bytes.

    Raises
    ------
    OSError, polars.exceptions.PolarsError, polars.exceptions.PanicException
        It cannot be read.
    """
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
    ExportError
        That process could not be started.
    """
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
