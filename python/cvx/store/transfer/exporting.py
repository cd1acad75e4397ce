"""Exports a record to a file; chooses the format by name or ending."""

from __future__ import annotations

from pathlib import Path

from cvx.errors import InvalidInputError
from cvx.store import rows
from cvx.store.record import Record
from cvx.store.transfer.format import (
    Header,
    Incoming,
    Progress,
    batches,
    counted,
    read_jsonlines,
    types,
    write_jsonlines,
)

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
    ending = path.suffix.lower()
    found = "jsonl" if str(path) == "-" else None
    found = next((name for name, endings in FORMATS.items() if ending in endings), found)
    asked = path.name if wanted is None else wanted
    found = found if wanted is None else wanted
    if found in FORMATS:
        return str(found)
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
    with record.database.one_state():
        db = record.database.connection()
        header = Header.of(db)
        found = counted(batches(db), header.total, progress)
        if kind == "jsonl":
            write_jsonlines(path, header, found)
            return header
        declared = {table: types(db, table) for table in rows.COLUMNS}
        if kind == "parquet":
            from cvx.store.transfer import parquet_file

            parquet_file.write(path, header, declared, found)
        else:
            from cvx.store.transfer import duckdb_file

            duckdb_file.write(path, header, declared, found, db)
    return header


def reader_of(path: Path, kind: str) -> Incoming:
    """Return what reads an export of a format."""
    if kind == "duckdb":
        from cvx.store.transfer import duckdb_file

        return duckdb_file.read(path)
    if kind == "parquet":
        from cvx.store.transfer import parquet_file

        return parquet_file.read(path)
    return read_jsonlines(path)
