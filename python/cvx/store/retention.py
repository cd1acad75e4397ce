"""Retention: how many decisions and rows of the journal a store keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cvx.arguments import whole
from cvx.store.record import Record
from cvx.store.writer import Writer

LIMITS = "history"
"""Under this the record has the limits of its history."""
FIRST_KEPT = "journal_since"
"""Under this the record says from which number on its journal is kept, if not from 1."""
_LOOK_EVERY = 1_024
_at_least_one = whole(1, 2**53)


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of its past a store keeps.

    Parameters
    ----------
    decisions : int, default 100_000
        The newest ones, at least 1.
    changes : int, default 1_000_000
        The newest rows of the journal, at least 1: views of the past reach as far back. Those
        that the snapshots of the index lack are kept however many they are.

    Raises
    ------
    InvalidInputError
        A number below 1.
    """

    decisions: int = 100_000
    changes: int = 1_000_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            _at_least_one(name, value)

    @classmethod
    def read(cls, told: str) -> HistoryLimits | None:
        """Return what a record says of them, None where that is not legible."""
        try:
            return cls(**json.loads(told))
        except (ValueError, TypeError, RecursionError):
            return None

    @classmethod
    def stored(cls, record: Record) -> HistoryLimits:
        """Return those of a record; the usual ones where it says nothing legible."""
        return cls.read(record.meta(LIMITS) or "{}") or cls()


def number_of(said: str | None) -> int | None:
    """Return a number that a record says under a key, None for anything else."""
    return int(said) if said is not None and said.isdecimal() and len(said) < 19 else None


class History:
    """Follows a record, and drops what is beyond its limits.

    That happens at the beginning of a transaction, each time that a thousand changes were made,
    or an eighth of a smaller limit.

    Parameters
    ----------
    record : Record
        What is followed.
    oldest_snapshot : callable
        Returns the number of the journal that the oldest snapshot of the index holds, or None.
    """

    def __init__(self, record: Record, oldest_snapshot: Callable[[], int | None]) -> None:
        self._record = record
        self._oldest_snapshot = oldest_snapshot
        self._due = 0
        self.held_back = False

    def begun(self, write: Writer) -> None:
        """Drop what is beyond the limits, if it is time to look."""
        if write.tail.seq >= self._due:
            self.shorten(write)

    def ended(self) -> None:
        """Do nothing: the next transaction looks."""

    def taken_back(self) -> None:
        """Look again: what was dropped may be back."""
        self._due = 0

    def refresh(self) -> None:
        """Do nothing: reading drops nothing."""

    def set_limits(self, limits: HistoryLimits) -> None:
        """Store other limits, and drop what is beyond them."""
        with self._record.transaction() as write:
            write.set_meta(LIMITS, json.dumps(asdict(limits)))
            self.shorten(write)

    def shorten(self, write: Writer) -> None:
        """Drop what is beyond the limits now."""
        limits = HistoryLimits.stored(self._record)
        self._shorten_decisions(write, limits.decisions)
        self._shorten_journal(write, limits.changes)
        smaller = min(limits.decisions, limits.changes)
        self._due = write.tail.seq + min(_LOOK_EVERY, smaller // 8 + 1)

    def _shorten_decisions(self, write: Writer, most: int) -> None:
        beyond = write.connection.execute("SELECT count(*) FROM decisions").fetchone()[0] - most
        if beyond > 0:
            write.connection.execute(
                "DELETE FROM decisions WHERE decision_id IN"
                " (SELECT decision_id FROM decisions ORDER BY decision_id LIMIT ?)",
                (beyond,),
            )

    def _shorten_journal(self, write: Writer, most: int) -> None:
        db = write.connection
        first = db.execute("SELECT min(seq) FROM journal").fetchone()[0]
        upto = write.tail.seq - most
        if first is None or upto < first:
            self.held_back = False
            return
        snapshot = self._oldest_snapshot()
        # The row of its own number tells the snapshot's history from others.
        self.held_back = snapshot is not None and snapshot <= upto
        if snapshot is not None:
            upto = min(upto, snapshot - 1)
        if upto < first:
            return
        dropped = db.execute("SELECT max(recorded) FROM journal WHERE seq <= ?", (upto,))
        since = max(dropped.fetchone()[0], number_of(self._record.meta("whole_since")) or 0)
        db.execute("DELETE FROM journal WHERE seq <= ?", (upto,))
        write.set_meta(FIRST_KEPT, str(upto + 1))
        write.set_meta("whole_since", str(since))
