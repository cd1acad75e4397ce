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
    SECONDARY_INDEX = "secondary_index"
    WORD_MISSING = "word_missing"
    WORD_EXTRA = "word_extra"
    WORD_DIFFERENT = "word_different"
    ORPHAN = "orphan"
    COUNTER = "counter"
    JOURNAL_GAP = "journal_gap"
    JOURNAL_CHAIN = "journal_chain"
    LOST_TAIL = "lost_tail"
    LOCK_MISSING = "lock_missing"
    LOCK_DAMAGED = "lock_damaged"
    LOCK_OLD = "lock_old"
    SNAPSHOT_DAMAGED = "snapshot_damaged"
    SNAPSHOT_FOREIGN = "snapshot_foreign"
    SNAPSHOT_AHEAD = "snapshot_ahead"
    MISPLACED = "misplaced"
    STRAY_FILE = "stray_file"
    ERASE_UNFINISHED = "erase_unfinished"
    REEMBED_UNFINISHED = "reembed_unfinished"
    STAGED_ROW = "staged_row"
    REMAINS = "remains"
    EXPOSED = "exposed"
    CLOCK_AHEAD = "clock_ahead"


_HARMLESS = frozenset(
    {
        Check.LOCK_MISSING,
        Check.LOCK_OLD,
        Check.STRAY_FILE,
        Check.REEMBED_UNFINISHED,
        Check.EXPOSED,
        Check.CLOCK_AHEAD,
    }
)
"""What a killed process may leave, a copy or a wrong clock, and nothing is lost by it."""


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
    """What an examination found, and what a repair did.

    Parameters
    ----------
    findings : tuple of Finding
        What was found at first.
    rows : mapping
        How many rows of each table were read.
    done : tuple of str
        What was repaired, in words; empty without a repair.
    left : tuple of Finding
        What is still there after it; the same as ``findings`` without a repair.
    """

    findings: tuple[Finding, ...]
    rows: Mapping[str, int] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    left: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is left but what is harmless."""
        return all(finding.harmless for finding in self.left)
