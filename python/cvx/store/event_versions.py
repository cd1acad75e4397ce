"""Earlier versions of events, which the journal keeps."""

from __future__ import annotations

import json

from cvx.store import rows
from cvx.store.packing import unpacked
from cvx.store.reads import event_of
from cvx.store.record import Record
from cvx.store.writer import Writer
from cvx.types import Event


class Versions:
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

    # What a record asks of those that follow it.

    def begun(self, write: Writer) -> None:
        """Nothing is to be done before a transaction."""

    def ended(self) -> None:
        """Nothing is to be done after one."""

    def taken_back(self) -> None:
        """Forget everything: some of it may never have been."""
        self._forget()

    def refresh(self) -> None:
        """Nothing is to be done before reading."""

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
