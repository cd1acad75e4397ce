"""Parquet: a folder with ``header.json`` and a folder of numbered files for each table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.errors import ExportError, InputFileError
from cvx.store import rows
from cvx.store.transfer.files import written_whole
from cvx.store.transfer.header import Header
from cvx.store.transfer.tables import ORDER, Batch, Row, columns, key_of

if TYPE_CHECKING:
    import polars as pl

Types = Mapping[str, Mapping[str, str]]
"""Declared types by table and column."""

_VECTOR = "embedding"


def write(path: Path, header: Header, types: Types, found: Iterable[Batch]) -> None:
    """Write an export; the folder is there whole or not at all.

    Every table has at least one file, so that its columns can be seen. Vectors are lists of
    float32.
    """
    with written_whole(path) as beside:
        write_into(beside, header, types, found)


def write_into(folder: Path, header: Header, types: Types, found: Iterable[Batch]) -> None:
    """Write the files of an export into a folder that is made here."""
    numbers = dict.fromkeys(ORDER, 0)
    folder.mkdir()
    for table in ORDER:
        (folder / table).mkdir()
    for table, some in found:
        frame(table, types[table], some).write_parquet(
            folder / table / f"{numbers[table]:05}.parquet"
        )
        numbers[table] += 1
    for table in ORDER:
        if not numbers[table]:
            frame(table, types[table], []).write_parquet(folder / table / "00000.parquet")
    (folder / "header.json").write_text(header.to_text() + "\n", encoding="utf-8")


def frame(table: str, types: Mapping[str, str], some: list[Row]) -> pl.DataFrame:
    """Return rows as a frame."""
    import polars as pl

    plain = {"INTEGER": pl.Int64, "REAL": pl.Float64, "TEXT": pl.String, "BLOB": pl.Binary}
    series = []
    for place, name in enumerate(columns(table)):
        values = [row[place] for row in some]
        if name == _VECTOR:
            series.append(_lists(values))
        else:
            series.append(pl.Series(name, values, dtype=plain[types[name]], strict=True))
    return pl.DataFrame(series)


def _lists(blobs: list[bytes | None]) -> pl.Series:
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


class Parquet:
    """An export in Parquet.

    Parameters
    ----------
    path : Path
        The folder.

    Raises
    ------
    InputFileError
        It cannot be read.
    ExportError
        It is no export.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            told = (path / "header.json").read_bytes()
        except OSError as error:
            raise InputFileError(
                f"{path} cannot be read as an export in Parquet ({error.strerror}): it is a folder "
                "with header.json in it"
            ) from error
        self.header = Header.from_text(told, str(path / "header.json"))

    def batches(self) -> Iterator[Batch]:
        """Yield every row, checked; see `Incoming`."""
        for table in ORDER:
            number = 0
            for path in sorted((self._path / table).glob("*.parquet")):
                some = _read(path, table)
                _check(some, table, path)
                number += len(some)
                if some:
                    yield table, some
            if number != self.header.counts[table]:
                raise ExportError(
                    f"{self._path / table} has {number} rows, {self.header.counts[table]} were "
                    "written: export again. Nothing was taken in"
                )


def _read(path: Path, table: str) -> list[Row]:
    import polars as pl

    try:
        found = pl.read_parquet(path, columns=list(columns(table)))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ExportError(
            f"{path} cannot be read ({str(error)[:200]}): export again. Nothing was taken in"
        ) from error
    parts: list[Iterable[Any]] = [
        _blobs(found.get_column(name)) if name == _VECTOR else found.get_column(name)
        for name in columns(table)
    ]
    return list(zip(*parts, strict=True))


def _blobs(series: pl.Series) -> list[bytes | None]:
    lengths = series.list.len().to_list()
    flat = series.drop_nulls().list.explode().to_numpy().astype("<f4", copy=False)
    out, at = list[bytes | None](), 0
    for length in lengths:
        out.append(None if length is None else flat[at : at + length].tobytes())
        at += length or 0
    return out


def _check(some: list[Row], table: str, path: Path) -> None:
    for place, row in enumerate(some):
        if rows.row_crc(*row[:-1]) != row[-1]:
            raise ExportError(
                f"{path}, row {place} (key {key_of(table, row)}) is not what was written: export "
                "again. Nothing was taken in"
            )
