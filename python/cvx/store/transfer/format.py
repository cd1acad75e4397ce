"""The export format: header and rows of each table; as JSON Lines."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

from cvx.arguments import whole
from cvx.errors import DamagedStoreError, ExportError, FileError
from cvx.escaping import printable
from cvx.index import RawIndex
from cvx.store import rows
from cvx.store.database import tail_of
from cvx.store.files import written_whole
from cvx.store.lock import Tail
from cvx.store.row_validation import TAKEN_OVER, may_say
from cvx.store.schema import SCHEMA_VERSION

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first thing in every export.

    Parameters
    ----------
    uuid : str
        Of the store.
    seq, chain : int
        The end of its journal.
    meta : mapping
        What the record says of itself: embedder, dimension, metric, counters, edge kinds.
    counts : mapping
        Rows of each table.
    format : int
        Of the export.
    schema : int
        Version of the tables.
    """

    uuid: str
    seq: int
    chain: int
    meta: Mapping[str, str]
    counts: Mapping[str, int]
    format: int = FORMAT
    schema: int = SCHEMA_VERSION

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Self:
        """Describe a record."""
        meta = dict(db.execute("SELECT key, value FROM meta ORDER BY key").fetchall())
        seq, chain = tail_of(db)
        return cls(
            uuid=meta["uuid"],
            seq=seq,
            chain=chain,
            meta={key: value for key, value in meta.items() if key in TAKEN_OVER},
            counts={
                table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in rows.COLUMNS
            },
        )

    @property
    def name(self) -> str:
        """What tells this export from others: the store and how far its journal went."""
        return f"{self.uuid}:{self.seq}:{self.chain}"

    @property
    def total(self) -> int:
        """How many rows there are."""
        return sum(self.counts.values())

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps({"cvx": "export", **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str | bytes, where: str) -> Self:
        """Read it back.

        Raises
        ------
        ExportError
            It is none, or of another version.
        """
        try:
            told: dict[str, Any] = json.loads(text)
            told.pop("cvx")
            header = cls(**told)
            header._check()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            why = (
                "it has no header"
                if isinstance(error, LookupError)
                else f"{type(error).__name__}: {error}"
            )
            raise ExportError(
                f"{where} is no export of cvx ({why}): give what `cvx export` wrote; other "
                "JSON Lines are taken in by `cvx import --from jsonl` or `cvx add --file`"
            ) from error
        if (header.format, header.schema) != (FORMAT, SCHEMA_VERSION):
            raise ExportError(
                f"{where} has format {header.format} of schema {header.schema}, this cvx reads "
                f"{FORMAT} of {SCHEMA_VERSION}: open that store with this cvx and export it again"
            )
        return header

    def _check(self) -> None:
        """Raise a ValueError or TypeError where it says something that no header does."""
        if not isinstance(self.uuid, str) or not re.fullmatch("[0-9a-f]{0,64}", self.uuid):
            raise ValueError(f"uuid is {self.uuid!r}")
        for name, number in (("seq", self.seq), ("chain", self.chain), *self.counts.items()):
            whole(0, rows.MOST_ID)(f"the number of {name}", number)
        if self.counts.keys() != rows.COLUMNS.keys():
            raise ValueError(f"it counts {', '.join(self.counts)}")
        for key, value in self.meta.items():
            if not may_say(key, value):
                raise ValueError(f"it says {value!r} of {key!r}")


Row = tuple[Any, ...]
Batch = tuple[str, list[Row]]
Progress = Callable[[int, int], None] | None
Types = Mapping[str, Mapping[str, str]]
"""Declared types by table and column."""

MOST_ROWS = 5_000
"""So many rows come at once, and has a file of an export in Parquet at most."""


def types(db: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return the declared type of each column: INTEGER, REAL, TEXT or BLOB."""
    declared = {row[1]: row[2] for row in db.execute(f"PRAGMA table_info({table})")}
    return {name: declared[name] for name in rows.stored_columns(table)}


def batches(db: sqlite3.Connection) -> Iterator[Batch]:
    """Yield every row of a record with its checksum, table by table, some thousand at once.

    Raises
    ------
    DamagedStoreError
        A row is not what was written.
    """
    for table in rows.COLUMNS:
        key = ", ".join(rows.KEYS[table])
        cursor = db.execute(
            f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} ORDER BY {key}"
        )
        while some := cursor.fetchmany(MOST_ROWS):
            for row, sound in zip(some, rows.whole_rows(some), strict=True):
                if not sound:
                    raise DamagedStoreError(
                        f"row {rows.key_of(table, row)} of {table} is not what was written: run "
                        "`cvx doctor --repair NEW_FOLDER` and export that"
                    )
            yield table, some


def counted(found: Iterable[Batch], total: int, progress: Progress) -> Iterator[Batch]:
    """Pass batches on, and say how far they are."""
    done = 0
    for table, some in found:
        yield table, some
        done += len(some)
        if progress is not None:
            progress(done, total)


class Incoming(NamedTuple):
    """An export that is being read.

    Attributes
    ----------
    header : Header
        What it says of itself.
    batches : iterator of (str, list of tuple)
        Every row with its checksum, unchecked, in the order of ``rows.COLUMNS``. Raises
        ``ExportError`` where something is no row, or the end is missing.
    """

    header: Header
    batches: Iterator[Batch]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Parameters
    ----------
    merged : bool
        Whether the record held something before: ids are new ones then.
    counts : mapping
        Rows of each table that were taken in.
    left_out : mapping
        Rows of each table that a merge leaves out: what was learned and logged in another
        history.
    index : (RawIndex, Tail), optional
        Of a record that was empty: the index of all that it holds, and the end of its journal.
    """

    merged: bool
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    index: tuple[RawIndex, Tail] | None = field(default=None, repr=False, compare=False)


VECTOR = "embedding"
"""The column of vectors: bytes in a record, Base64 in JSON, a list of float32 in Parquet."""
_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_ORDER = list(rows.COLUMNS)
_LONGEST = 1 << 28
"""So many bytes may a line have: more than any text that was ever remembered."""


def write_jsonlines(path: Path, header: Header, found: Iterable[Batch]) -> None:
    """Write an export; the file is there whole or not at all. "-" is the standard output."""
    with _opened(path) as file:
        file.write(header.to_text() + "\n")
        number = 0
        for table, some in found:
            names = rows.stored_columns(table)
            for row in some:
                file.write(_line(table, names, row))
            number += len(some)
        file.write(json.dumps({"end": number}) + "\n")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if str(path) == "-":
        yield sys.stdout
        return
    with written_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield file


def _line(table: str, names: tuple[str, ...], row: Row) -> str:
    plain = dict(zip(names, row, strict=True))
    raw = plain.get(VECTOR)
    if raw is not None:
        plain[VECTOR] = base64.b64encode(raw).decode("ascii")
    told = json.dumps({"table": table, **plain}, separators=(",", ":"), ensure_ascii=False)
    # Standard output may be a terminal; JSON reads the same.
    return printable(told) + "\n"


def read_jsonlines(path: Path) -> Incoming:
    """Begin to read an export.

    Raises
    ------
    FileError
        It cannot be read.
    ExportError
        It is no export.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from error
    return Incoming(Header.from_text(first, str(path)), _lines(path))


def _lines(path: Path) -> Iterator[Batch]:
    number, table, some = 0, "", list[Row]()
    end: int | None = None
    with path.open("rb") as file:
        file.readline(_LONGEST)
        for place, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), 2):
            where = f"{path}, line {place}"
            if end is not None:
                raise ExportError(f"{where}: there is something after the end")
            its_table, row = _parsed(raw, where)
            if its_table == "end":
                end = row[0]
                continue
            if its_table != table or len(some) >= MOST_ROWS:
                if some:
                    yield table, some
                if _ORDER.index(its_table) < _ORDER.index(table or its_table):
                    raise ExportError(
                        f"{where}: a row of {its_table} after those of {table}: sort by table"
                    )
                table, some = its_table, []
            some.append(row)
            number += 1
    if some:
        yield table, some
    if end != number:
        raise ExportError(
            f"{path} has {number} rows and "
            + ("no last line" if end is None else f"says {end}")
            + ": it was cut; export again. Nothing was taken in"
        )


def _parsed(raw: bytes, where: str) -> tuple[str, Row]:
    try:
        told: dict[str, Any] = json.loads(raw)
        if "end" in told:
            return "end", (int(told["end"]),)
        table = told.pop("table")
        return table, _row(told, rows.stored_columns(table))
    except _UNREADABLE as error:
        raise ExportError(
            f"{where} is no row of an export ({type(error).__name__}: {error}): nothing was taken "
            "in"
        ) from error


def _row(told: dict[str, Any], names: tuple[str, ...]) -> Row:
    if told.get(VECTOR) is not None:
        told[VECTOR] = base64.b64decode(told[VECTOR], validate=True)
    if len(told) != len(names):
        raise ValueError(f"it has {sorted(told)}")
    return tuple(told[name] for name in names)
