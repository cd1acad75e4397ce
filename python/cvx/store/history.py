"""Earlier versions of events, the state as of a time, and limits on what is kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, overload

from cvx.arguments import whole
from cvx.errors import UnknownError
from cvx.store import fulltext, rows
from cvx.store.database import Connection
from cvx.store.record import Record
from cvx.store.rows import event_of, unpacked
from cvx.store.transactions import Follower
from cvx.store.writer import Writer
from cvx.types import Event

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


class History(Follower):
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

    def taken_back(self) -> None:
        """Look again: what was dropped may be back."""
        self._due = 0

    def set_limits(self, limits: HistoryLimits) -> None:
        """Store other limits, and drop what is beyond them."""
        with self._record.transaction() as write:
            write.set_meta(LIMITS, json.dumps(asdict(limits)))
            self.shorten(write)

    def shorten(self, write: Writer) -> None:
        """Drop what is beyond the limits now."""
        limits = HistoryLimits.stored(self._record)
        write.connection.execute(
            "DELETE FROM decisions WHERE decision_id <= (SELECT decision_id FROM decisions"
            " ORDER BY decision_id DESC LIMIT 1 OFFSET ?)",
            (limits.decisions,),
        )
        self._shorten_journal(write, limits.changes)
        smaller = min(limits.decisions, limits.changes)
        self._due = write.tail.seq + min(_LOOK_EVERY, smaller // 8 + 1)

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


class EarlierVersions(Sequence[Event]):
    """The earlier versions of an event, oldest first, read from the journal when first looked at.

    Parameters
    ----------
    count : int
        How many there are.
    read : callable
        Returns them.
    """

    __slots__ = ("_count", "_kept", "_read")

    def __init__(self, count: int, read: Callable[[], tuple[Event, ...]]) -> None:
        self._count, self._read = count, read
        self._kept: tuple[Event, ...] | None = None

    def _events(self) -> tuple[Event, ...]:
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def __len__(self) -> int:
        return self._count if self._kept is None else len(self._kept)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        return self._events()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._events() == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._events())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._events(),)


class Versions(Follower):
    """Finds the earlier versions of events; reads each change of the journal once.

    Parameters
    ----------
    record : Record
        Whose journal it is.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._forget()
        record.follow(self)

    def _forget(self) -> None:
        self._seen = 0
        self._changes: dict[int, list[int]] = {}

    def taken_back(self) -> None:
        """Forget everything: some of it may never have been."""
        self._forget()

    def of_each(self, events: Iterable[Event]) -> list[Event]:
        """Return events with the number of their version and their history."""
        with self._record.reading():
            self._catch_up()
            changes = self._changes
        return [
            event.as_version(
                len(changes[event.id]) + 1,
                EarlierVersions(len(changes[event.id]), partial(self.of, event)),
            )
            if event.id in changes
            else event
            for event in events
        ]

    def of(self, event: Event) -> tuple[Event, ...]:
        """Return the earlier versions of an event, oldest first."""
        with self._record.reading():
            self._catch_up()
            numbers = self._changes.get(event.id, [])
            found = self._record.columns(
                "journal",
                f"WHERE seq {rows.AMONG} AND op = 'version' ORDER BY seq",
                (rows.listed(numbers),),
            )
            now = self._record.columns("events", "WHERE event_id = ?", (event.id,))
        if not now["event_id"]:
            return ()
        row = {name: column[0] for name, column in now.items()}
        out: list[Event] = []
        for body in found["body"]:
            for number, before, _ in json.loads(body):
                if number == event.id:
                    earlier = row | unpacked(before)
                    made = event_of([earlier[name] for name in rows.COLUMNS["events"]])
                    out.append(made.as_version(len(out) + 1))
        return tuple(out)

    def _catch_up(self) -> None:
        tail = self._record.tail().seq
        if tail == self._seen:
            return
        for seq, body in self._record.query(
            "SELECT seq, body FROM journal WHERE seq > ? AND op = 'version' ORDER BY seq",
            (self._seen,),
        ):
            for number, *_ in json.loads(body):
                self._changes.setdefault(number, []).append(seq)
        self._seen = tail


_COLUMNS = {
    "state": "state",
    "recallable": "recallable",
    "metadata": "metadata",
    "step_kind": "kind",
}
"""Columns of events by what the journal calls a change to them."""


_KNOWN = {
    "links": "true",
    "usage": "true",
    "journal": "seq <= {seq} AND recorded <= {recorded}",
}
"""Which rows of a table were there, other than by the time at which they were recorded."""


def _cover(db: Connection) -> None:
    """Lay views over the tables: what is changed or taken away through them is so in RAM alone.

    ``over_<table>`` has the keys of the rows that are not what they are today, ``past_<table>``
    has them as they were, if they were.
    """
    db.covered = True
    for table, keys in rows.KEYS.items():
        named = ", ".join(keys)
        for name, columns in (("over", keys), ("past", rows.stored_columns(table))):
            db.execute(
                f"CREATE TEMP TABLE {name}_{table} AS SELECT {', '.join(columns)}"
                f" FROM main.{table} WHERE false"
            )
            db.execute(f"CREATE UNIQUE INDEX temp.{name}_{table}_key ON {name}_{table} ({named})")
        _show(db, table)
        same = " AND ".join(f"{key} = {{0}}.{key}" for key in keys)
        told = ", ".join(f"{{0}}.{key}" for key in keys)
        new = ", ".join(f"NEW.{name}" for name in rows.stored_columns(table))
        for verb, row, put in (
            ("DELETE", "OLD", ""),
            ("UPDATE", "NEW", f"INSERT INTO past_{table} VALUES ({new});"),
            ("INSERT", "NEW", f"INSERT INTO past_{table} VALUES ({new});"),
        ):
            db.execute(
                f"CREATE TEMP TRIGGER {verb}_{table} INSTEAD OF {verb} ON {table} BEGIN"
                f" INSERT OR IGNORE INTO over_{table} VALUES ({told.format(row)});"
                f" DELETE FROM past_{table} WHERE {same.format(row)}; {put} END"
            )
    # Aliases and steps lead to events by these.
    for column in ("node", "episode"):
        db.execute(f"CREATE INDEX temp.past_{column} ON past_events ({column})")
    db.execute("CREATE TEMP TABLE meta AS SELECT * FROM main.meta")
    fulltext.create(db, "temp.")


def _show(db: sqlite3.Connection, table: str, known: str = "true", *, changed: bool = True) -> None:
    """Let the name of a table mean those of its rows, as they were, that fulfil a condition."""
    names, keys = ", ".join(rows.stored_columns(table)), rows.KEYS[table]
    db.execute(f"DROP VIEW IF EXISTS temp.{table}")
    told = f"CREATE TEMP VIEW {table} AS SELECT {names} FROM main.{table} AS t WHERE {known}"
    # Where nothing changed, an order is read off an index, and no row is looked up in vain.
    if changed:
        same = " AND ".join(f"o.{key} = t.{key}" for key in keys)
        told += (
            f" AND NOT EXISTS (SELECT 1 FROM over_{table} AS o WHERE {same})"
            f" UNION ALL SELECT {names} FROM past_{table} WHERE {known}"
        )
    db.execute(told)


_MINUTE = 60_000_000


def as_of(record: Record, recorded: int) -> Record:
    """Return a view of a record, read-only, that knows nothing of what was recorded later.

    It reads the same file, as it is now, and keeps in RAM what was changed since then. A record
    in RAM is copied. What was erased since is not in it. Counts of use, decays, decisions and the
    state of models are what they were then.

    Parameters
    ----------
    record : Record
        The record of today.
    recorded : int
        In microseconds since 1970-01-01 UTC; what was recorded at that time is known.

    Raises
    ------
    UnknownError
        A time from which what was overwritten since is not kept: by an older format, or any more.
    """
    (last,) = record.query("SELECT ifnull(max(recorded), 0) FROM journal")[0]
    now = record.now()
    if last > now + _MINUTE >= recorded >= now - _MINUTE:
        # A wrong clock once recorded ahead, and all that came after it: now goes on to mean now.
        recorded = last
    since = int(record.meta("whole_since") or 0)
    if recorded < since:
        raise UnknownError(
            f"{record.path} keeps what was overwritten from {since} on, not at {recorded}: its "
            "journal reaches no further back, or an older version of cvx wrote it until then; ask "
            "for a later time"
        )
    past = record.as_it_is()
    past.known_until = min(recorded, record.known_until)
    try:
        # Whoever erases meanwhile closes it when it is done.
        with past.mutex, past.database.typed_errors():
            _go_back(past, past.database.stay(record.database), past.known_until)
    except BaseException:
        past.close()
        raise
    past.refuse_writes("this is a view of the past: write to the memory itself")
    return past


def _row_of_link(a: int, b: int, kind: str, before: Any, _after: Any) -> tuple[str, Any, Any]:
    """Return a change of a link as one of a row: table, key, and the row as it was, if it was."""
    return "links", (a, b, kind), None if before is None else (a, b, kind, *before)


def _go_back(past: Record, db: Connection, recorded: int) -> None:
    """Let the names of tables mean what was known at a time; the caller holds the mutex."""
    _cover(db)
    for _, _, op, body in reversed(past.journal(recorded_after=recorded)):
        for entry in reversed(body):
            if op in ("row", "link"):
                table, key, before = entry if op == "row" else _row_of_link(*entry)
                where = " AND ".join(f"{name} = ?" for name in rows.KEYS[table])
                if before is None:
                    db.execute(f"DELETE FROM {table} WHERE {where}", key)
                else:
                    db.execute(rows.insert_sql(table), (*before, rows.row_crc(*before)))
            elif op == "reward":
                db.execute("UPDATE events SET reward = ? WHERE node = ?", (entry[1], entry[0]))
            elif op == "version":
                number, told, _ = entry
                before = unpacked(told)
                names = ", ".join(f"{name} = ?" for name in before)
                db.execute(
                    f"UPDATE events SET {names} WHERE event_id = ?", (*before.values(), number)
                )
            elif op in _COLUMNS:
                db.execute(
                    f"UPDATE events SET {_COLUMNS[op]} = ? WHERE event_id = ?",
                    (entry[1], entry[0]),
                )
            elif op == "kind":
                kinds = json.loads(past.meta("edge_kinds") or "[]")
                db.execute(
                    "UPDATE meta SET value = ? WHERE key = 'edge_kinds'",
                    (json.dumps([k for k in kinds if k != entry]),),
                )
    # By words of an alias that came later, an event is not found.
    db.execute(
        "UPDATE events SET key = key WHERE event_id IN"
        " (SELECT event_id FROM aliases WHERE recorded > ?)",
        (recorded,),
    )
    db.execute(f"UPDATE past_events SET crc = {rows.crc_sql(rows.COLUMNS['events'])}")
    seq = "SELECT seq FROM journal WHERE recorded <= ? ORDER BY seq DESC LIMIT 1"
    (upto,) = db.execute(seq, (recorded,)).fetchone() or (0,)
    for table in rows.KEYS:
        known = _KNOWN.get(table, "recorded <= {recorded}").format(recorded=recorded, seq=upto)
        (changed,) = db.execute(f"SELECT EXISTS (SELECT 1 FROM over_{table})").fetchone()
        _show(db, table, known, changed=bool(changed))
    others = db.execute("SELECT event_id FROM over_events").fetchall()
    fulltext.add(db, ((event, fulltext.whole(db, event)) for (event,) in others))
