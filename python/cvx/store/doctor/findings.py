"""The findings of the doctor: every kind of damage, and the report of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Check(StrEnum):
    """Every kind of finding; the names are stable, scripts may ask for them."""

    FILE = "file"
    SCHEMA = "schema"
    ROW = "row"
    VALUE = "value"
    PAGE = "page"
    WORDS = "words"
    ORPHAN = "orphan"
    COUNTER = "counter"
    JOURNAL = "journal"
    LOST_TAIL = "lost_tail"
    LOCK = "lock"
    SNAPSHOT = "snapshot"
    MISPLACED = "misplaced"
    STRAY_FILE = "stray_file"
    ERASE_UNFINISHED = "erase_unfinished"
    REMAINS = "remains"
    EXPOSED = "exposed"
    CLOCK_AHEAD = "clock_ahead"


_HARMLESS = frozenset(
    {
        Check.LOCK,
        Check.SNAPSHOT,
        Check.STRAY_FILE,
        Check.EXPOSED,
        Check.CLOCK_AHEAD,
    }
)
"""What a killed process may leave, a copy or a wrong clock: the next opening puts it right, or
nothing is lost by it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Parameters
    ----------
    check : Check
        What kind of thing.
    where : str
        A row as ``table [key]``, or a file.
    what : str
        What is wrong, in words.
    table : str, optional
        The table of a row.
    key : tuple
        Its primary key.
    """

    check: Check
    where: str
    what: str
    table: str | None = None
    key: tuple[object, ...] = ()

    @property
    def harmless(self) -> bool:
        """Whether nothing is lost by it, and the store works."""
        return self.check in _HARMLESS


@dataclass(frozen=True, slots=True)
class Report:
    """What an examination found.

    Parameters
    ----------
    findings : tuple of Finding
        What was found.
    rows : mapping
        How many rows of each table were read.
    """

    findings: tuple[Finding, ...]
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether all that was found is harmless."""
        return all(finding.harmless for finding in self.findings)
