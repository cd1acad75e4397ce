"""What an export says of itself: enough to refuse what does not fit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from cvx.errors import ExportError
from cvx.store import rows
from cvx.store.schema import SCHEMA_VERSION

FORMAT = 1
OWN = ("uuid", "schema_version", "erasing", "reembed", "imported")
"""What a record says of itself alone, which no other takes over."""


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
        end = db.execute("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
        seq, chain = end or (0, 0)
        return cls(
            uuid=meta["uuid"],
            seq=seq,
            chain=chain,
            meta={key: value for key, value in meta.items() if key not in OWN},
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
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ExportError(
                f"{where} is no export of cvx ({type(error).__name__}: {error}): give what "
                "`cvx export` wrote; `cvx add --file` takes other JSON Lines"
            ) from error
        if (header.format, header.schema) != (FORMAT, SCHEMA_VERSION):
            raise ExportError(
                f"{where} has format {header.format} of schema {header.schema}, this cvx reads "
                f"{FORMAT} of {SCHEMA_VERSION}: open that store with this cvx and export it again"
            )
        return header
