"""What an export says of itself: enough to refuse what does not fit."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from cvx.arguments import whole
from cvx.errors import ExportError
from cvx.store import rows
from cvx.store.retention import FIRST_KEPT, LIMITS, HistoryLimits
from cvx.store.rowcheck import KIND
from cvx.store.schema import SCHEMA_VERSION
from cvx.validation import storable_text

FORMAT = 1
_METRICS = ("cosine", "l2", "ip")
_NUMBER = re.compile("0|[1-9][0-9]{0,18}")


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


def may_say(key: str, value: Any) -> bool:
    """Return whether a record may say this of itself, for another one to take over."""
    check = TAKEN_OVER.get(key)
    try:
        return check is not None and check(storable_text(key, value))
    except (ValueError, RecursionError):
        return False


def _settings(told: str) -> bool:
    values = json.loads(told)
    return isinstance(values, dict) and all(
        isinstance(value, int) and -(2**63) <= value < 2**63 for value in values.values()
    )


def _kinds(told: str) -> bool:
    names = json.loads(told)
    return isinstance(names, list) and all(
        isinstance(name, str) and KIND.fullmatch(name) for name in names
    )


def _is_number(told: str) -> bool:
    return _NUMBER.fullmatch(told) is not None and int(told) <= 2**62


TAKEN_OVER: Mapping[str, Callable[[str], bool]] = {
    "embedder": lambda told: 0 < len(told) < 2000,
    "dim": lambda told: _is_number(told) and 1 <= int(told) <= 2**16,
    "metric": lambda told: told in _METRICS,
    "index": _settings,
    "edge_kinds": _kinds,
    "next_node": _is_number,
    "next_event": _is_number,
    "next_decision": _is_number,
    "whole_since": _is_number,
    FIRST_KEPT: _is_number,
    LIMITS: lambda told: HistoryLimits.read(told) is not None,
    "embedder_spec": lambda told: len(told) < 2000,
}
"""What a record says of itself that another one takes over, and what may be said."""
