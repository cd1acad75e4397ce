"""Which format is meant, and the two ways through it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cvx.errors import CvxError, ExportError, InvalidInputError, SettingsMismatchError
from cvx.store.cached import CachedIndex
from cvx.store.failpoints import reach
from cvx.store.peek import read_only
from cvx.store.record import Record
from cvx.store.replica import build
from cvx.store.transfer import jsonlines, parquet
from cvx.store.transfer.header import Header
from cvx.store.transfer.incoming import Imported, Incoming
from cvx.store.transfer.merging import merge
from cvx.store.transfer.restoring import restore
from cvx.store.transfer.tables import ORDER, Progress, batches, counted, types
from cvx.store.writer import Writer

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
        declared = {table: types(db, table) for table in ORDER}
        if kind == "parquet":
            parquet.write(path, header, declared, found)
        else:
            from cvx.store.transfer import duck

            duck.write(path, header, declared, found, db)
    return header


@contextmanager
def _view(record: Record) -> Iterator[sqlite3.Connection]:
    if record.path == ":memory:":
        with record.mutex:
            yield record._connection()
    else:
        with read_only(Path(record.path)) as db:
            yield db


def reader_of(path: Path, kind: str) -> Incoming:
    """Return what reads an export of a format."""
    if kind == "jsonl":
        return jsonlines.JsonLines(path)
    if kind == "parquet":
        return parquet.Parquet(path)
    from cvx.store.transfer import duck

    return duck.DuckDB(path)


def import_into(
    record: Record,
    incoming: Incoming,
    fresh: Callable[..., CachedIndex],
    *,
    again: bool = False,
    progress: Progress = None,
) -> Imported:
    """Take an export in, all of it or nothing, in one transaction.

    An empty record becomes what was exported, ids and journal included, and takes over its
    embedder. One that holds something gets the events under new ids, recorded now. Every row is
    held to what a write is held to, and an index is made of them, before anything is committed.

    Parameters
    ----------
    record : Record
        One that no index follows.
    incoming : Incoming
        The export.
    fresh : callable
        Makes an empty index from a dimension, a metric and settings.
    again : bool, default False
        Take it in although that was done before, or it is this record's own.
    progress : callable, optional
        Is told (rows read, of how many).

    Raises
    ------
    SettingsMismatchError
        Its vectors are those of another embedder.
    ExportError
        It is damaged, cut, holds what no cvx could have written, or was taken in before; nothing
        was stored.
    """
    try:
        with record.transaction() as write:
            first = write.next_node
            done = _take_in(record, write, incoming, again=again, progress=progress)
            _feed(record, fresh, first)
            return done
    except sqlite3.IntegrityError as error:
        raise ExportError(
            f"the export contradicts itself, a row is there twice or refers to none ({error}): "
            "export again. Nothing was taken in"
        ) from error


def _feed(record: Record, fresh: Callable[..., CachedIndex], first: int) -> None:
    """Make an index of the nodes from a number on, only to see that one can be made."""
    dim, metric = record.meta("dim"), record.meta("metric")
    if dim is None or metric is None:
        return
    known = len(record.damaged)
    try:
        settings = record.told("index", dict)
        fresh(int(dim), metric, **settings)
        # How well it would find is no matter here: few links are soon made.
        build(record, fresh(int(dim), metric, **settings | {"m": 2, "ef_construction": 2}), first)
    except (CvxError, TypeError, ValueError) as error:
        raise ExportError(
            f"no index can be made of the export ({error}): export again. Nothing was taken in"
        ) from error
    refused = [*record.damaged][known:]
    if refused:
        raise ExportError(
            f"no index takes {len(refused)} rows of the export ({'; '.join(refused[:3])}): export "
            "again. Nothing was taken in"
        )


def _take_in(
    record: Record, write: Writer, incoming: Incoming, *, again: bool, progress: Progress
) -> Imported:
    header = incoming.header
    taken = record.told("imported", list)
    if not again and (header.name in taken or header.uuid == record.meta("uuid")):
        raise ExportError(
            "this export was taken in before, or is this store's own: its events are here; "
            "say again (--again) to have them twice"
        )
    empty = record.tail().seq == 0 and not record.query("SELECT 1 FROM events LIMIT 1")
    if not empty:
        _check_embedder(record, header)
    done = (restore if empty else merge)(write, incoming, progress)
    write.set_meta("imported", json.dumps([*taken, header.name]))
    reach("import.finished")
    return done


def _check_embedder(record: Record, header: Header) -> None:
    for name in ("embedder", "dim", "metric"):
        own, other = record.meta(name), header.meta.get(name)
        if own != other:
            raise SettingsMismatchError(
                f"the export holds vectors of {name} {other}, this store those of {own}: import "
                "into a new store, move that one with reembed, and export it again"
            )
