"""The format that all exports share: a header, and the rows of each table."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from cvx.arguments import whole
from cvx.errors import DamagedStoreError, ExportError
from cvx.store import rows
from cvx.store.database import tail_of
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

_BATCH = 5_000


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
        while some := cursor.fetchmany(_BATCH):
            for row in some:
                if not rows.whole(row):
                    raise DamagedStoreError(
                        f"row {rows.key_of(table, row)} of {table} is not what was written: run "
                        "`cvx doctor --repair` before you export"
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
    """

    merged: bool
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
