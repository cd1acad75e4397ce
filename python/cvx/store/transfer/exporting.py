"""Exports a record to a file of another format, and tells which format is meant."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cvx.errors import InvalidInputError
from cvx.store import rows
from cvx.store.database import read_only
from cvx.store.record import Record
from cvx.store.transfer import jsonlines, parquet
from cvx.store.transfer.format import Header, Incoming, Progress, batches, counted, types

FORMATS = {"jsonl": (".jsonl", ".ndjson"), "parquet": (".parquet",), "duckdb": (".duckdb", ".db")}
"""Endings of names by format; the first is the usual one."""


def format_of(path: Path, wanted: str | None = None) -> str:
    """Return the format that is named, or that the name of a file says.

    Raises
    ------
    InvalidInputError
        Neither says one.

    Examples
    --------
    >>> format_of(Path("all.jsonl")), format_of(Path("all"), "parquet")
    ('jsonl', 'parquet')
    """
    if wanted is not None:
        if wanted in FORMATS:
            return wanted
    elif str(path) == "-":
        return "jsonl"
    else:
        for name, endings in FORMATS.items():
            if path.suffix.lower() in endings:
                return name
    asked = wanted if wanted is not None else path.name
    raise InvalidInputError(
        f"{asked!r} is no format: give one of {', '.join(FORMATS)}, or a file that ends in "
        f"{', '.join(ending for endings in FORMATS.values() for ending in endings)}"
    )


def export_record(
    record: Record, path: Path, wanted: str | None = None, progress: Progress = None
) -> Header:
    """Write everything of a record to a file, or a folder for Parquet.

    What others write meanwhile is not in it: it is one view of the record.

    Parameters
    ----------
    record : Record
        What is written.
    path : Path
        Where to; there must be nothing. "-" is the standard output, in JSON Lines.
    wanted : {"jsonl", "parquet", "duckdb"}, optional
        The format; by default what the name says.
    progress : callable, optional
        Is told (rows written, of how many).

    Returns
    -------
    Header
        What was written.

    Raises
    ------
    InvalidInputError
        No format.
    FileError
        It cannot be written there.
    DamagedStoreError
        A row is not what was written.
    MissingExtraError
        The package for the format is not installed.
    """
    kind = format_of(path, wanted)
    with _view(record) as db:
        header = Header.of(db)
        found = counted(batches(db), header.total, progress)
        if kind == "jsonl":
            jsonlines.write(path, header, found)
            return header
        declared = {table: types(db, table) for table in rows.COLUMNS}
        if kind == "parquet":
            parquet.write(path, header, declared, found)
        else:
            from cvx.store.transfer import duckdb_file

            duckdb_file.write(path, header, declared, found, db)
    return header


@contextmanager
def _view(record: Record) -> Iterator[sqlite3.Connection]:
    if record.path == ":memory:":
        with record.mutex:
            yield record.database.connection()
    else:
        with read_only(Path(record.path)) as db:
            yield db


def reader_of(path: Path, kind: str) -> Incoming:
    """Return what reads an export of a format."""
    if kind == "jsonl":
        return jsonlines.JsonLines(path)
    if kind == "parquet":
        return parquet.Parquet(path)
    from cvx.store.transfer import duckdb_file

    return duckdb_file.DuckDB(path)
