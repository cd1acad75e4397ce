"""Parquet: a folder with ``header.json`` and a folder of numbered files for each table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.errors import ExportError, FileError
from cvx.extras import needs
from cvx.store import rows
from cvx.store.files import open_own, read_own, written_whole
from cvx.store.transfer.format import Batch, Header, Incoming, Row

if TYPE_CHECKING:
    import polars as pl

Types = Mapping[str, Mapping[str, str]]
"""Declared types by table and column."""

_VECTOR = "embedding"
_MOST_ROWS = 5_000
"""As many as ``tables.batches`` yields at once, and a file is given."""
_SPARE_BYTES, _MOST_PACKED = 64 << 20, 1_000
"""So many bytes of text may a file stand for, and so many times its own."""


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
    folder.mkdir()
    for table in rows.COLUMNS:
        (folder / table).mkdir()
    for table, some in found:
        frame(table, types[table], some).write_parquet(
            folder / table / f"{numbers[table]:05}.parquet"
        )
        numbers[table] += 1
    for table in rows.COLUMNS:
        if not numbers[table]:
            frame(table, types[table], []).write_parquet(folder / table / "00000.parquet")
    (folder / "header.json").write_text(header.to_text() + "\n", encoding="utf-8")


def frame(table: str, types: Mapping[str, str], some: list[Row]) -> pl.DataFrame:
    """Return rows as a frame."""
    with needs("frames"):
        import polars as pl

    plain = {"INTEGER": pl.Int64, "REAL": pl.Float64, "TEXT": pl.String, "BLOB": pl.Binary}
    series = []
    for place, name in enumerate(rows.stored_columns(table)):
        values = [row[place] for row in some]
        if name == _VECTOR:
            series.append(_lists(values))
        elif name == "helped":
            # A count that is not always whole.
            series.append(pl.Series(name, map(float, values), dtype=pl.Float64))
        else:
            series.append(pl.Series(name, values, dtype=plain[types[name]], strict=True))
    return pl.DataFrame(series)


def _lists(blobs: list[bytes | None]) -> pl.Series:
    with needs("frames"):
        import polars as pl

    there = [place for place, blob in enumerate(blobs) if blob is not None]
    kind = pl.List(pl.Float32)
    if not there:
        return pl.Series(_VECTOR, [None] * len(blobs), dtype=kind)
    flat = np.frombuffer(b"".join(blob for blob in blobs if blob is not None), dtype="<f4")
    matrix = flat.reshape(len(there), -1)
    made = pl.DataFrame({"at": np.array(there, dtype=np.int64), _VECTOR: matrix})
    every = pl.DataFrame({"at": np.arange(len(blobs), dtype=np.int64)})
    joined = every.join(made, on="at", how="left", maintain_order="left")
    return joined.get_column(_VECTOR).cast(kind)


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
    return Incoming(Header.from_text(told, str(path / "header.json")), _batches(path))


def _batches(folder: Path) -> Iterator[Batch]:
    for table in rows.COLUMNS:
        if (folder / table).is_symlink():
            raise ExportError(
                f"{folder / table} is a symbolic link: give the folder that was exported"
            )
        for path in sorted((folder / table).glob("*.parquet")):
            if some := _read(path, table):
                yield table, some


def _read(path: Path, table: str) -> list[Row]:
    with needs("frames"):
        import polars as pl

    wanted = rows.stored_columns(table)
    try:
        # An open file: no pattern, no address and no link stands for another one.
        with open_own(path) as file:
            found = pl.read_parquet(
                file, columns=list(wanted), n_rows=_MOST_ROWS + 1, hive_partitioning=False
            )
            size = os.fstat(file.fileno()).st_size
        _check_frame(found, table, size)
        parts = [_values(found.get_column(name), name) for name in wanted]
        return list(zip(*parts, strict=True))
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from error
    except pl.exceptions.PanicException as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: BaseException) -> ExportError:
    said = str(error)[:200]
    return ExportError(f"{path} cannot be read ({said}): export again. Nothing was taken in")


def _check_frame(found: pl.DataFrame, table: str, size: int) -> None:
    """Raise a ValueError where a file holds something else than we write, or far more."""
    with needs("frames"):
        import polars as pl

    for name, dtype in found.schema.items():
        kinds = [pl.List(pl.Float32)] if name == _VECTOR else [pl.Int64, pl.Float64, pl.String]
        if dtype not in kinds:
            raise ValueError(f"{name} is of type {dtype}")
    if len(found) > _MOST_ROWS:
        raise ValueError(f"it has more than {_MOST_ROWS} rows of {table}")
    bytes_there = sum(
        int(found.get_column(name).str.len_bytes().sum())
        for name, dtype in found.schema.items()
        if dtype == pl.String
    )
    if bytes_there > _SPARE_BYTES + _MOST_PACKED * size:
        raise ValueError(f"{size} bytes stand for {bytes_there} of text")


def _values(series: pl.Series, name: str) -> list[Any]:
    """Return a column as what SQLite stores: vectors as bytes."""
    if name == "helped":
        return [int(value) if value.is_integer() else value for value in series.to_list()]
    if name != _VECTOR:
        return series.to_list()
    lengths = series.list.len().to_list()
    flat = series.drop_nulls().list.explode().to_numpy().astype("<f4", copy=False)
    out, at = list[bytes | None](), 0
    for length in lengths:
        out.append(None if length is None else flat[at : at + length].tobytes())
        at += length or 0
    return out
