"""Buffers usage counts and decisions until the next transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cvx.store import Writer
from cvx.store.rows import event_context
from cvx.types import Decision, Hit

SOME, MUCH = 256, 2_048
"""Sizes from which it is worth a transaction of its own, and by which the next try waits where one
has failed."""
_DECISION = 32
"""What a decision counts in a size, a count of use being 1."""


@dataclass(slots=True)
class UsageBuffer:
    """Usage counts, use times and decisions waiting to be written.

    Attributes
    ----------
    retrieved : dict of int to int
        By event: how often it was handed out.
    used : dict of int to int
        By event: when it was used last, in the unit of the timestamps.
    decided : dict of int to (Decision, dict)
        By number: contexts, and what else is to be remembered of them.
    since : int, optional
        The number of the journal when the first of them was asked; see ``asked``.
    """

    retrieved: dict[int, int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)
    decided: dict[int, tuple[Decision, dict[str, Any]]] = field(default_factory=dict)
    since: int | None = None

    def __bool__(self) -> bool:
        return bool(self.retrieved or self.used or self.decided)

    @property
    def size(self) -> int:
        """How much there is: counts of use, and 32 for each decision."""
        return _DECISION * len(self.decided) + len(self.retrieved) + len(self.used)

    def drop_oldest(self, most: int) -> None:
        """Forget what was noted first until the size is ``most``."""
        for noted in (self.decided, self.retrieved, self.used):
            while noted and self.size > most:
                del noted[next(iter(noted))]

    def asked(self, seq: int) -> None:
        """Note that something was asked for when the journal ended so, before what came of it."""
        self.since = seq if self.since is None else min(seq, self.since)

    def count(self, event: int, more: int = 1) -> None:
        """Count that an event was handed out."""
        self.retrieved[event] = self.retrieved.get(event, 0) + more

    def decide(self, decision: Decision, noted: dict[str, Any], seq: int) -> None:
        """Note a decision that was asked for when the journal ended so."""
        self.asked(seq)
        self.decided[decision.decision_id] = (decision, noted)

    def use(self, events: Iterable[int], now: int) -> None:
        """Note that events were used at a time; the later one stays."""
        for event in events:
            self.used[event] = max(now, self.used.get(event, now))

    def write(self, write: Writer) -> None:
        """Write it down, without what was erased meanwhile, here or by another process."""
        gone = set[int]()
        # Nobody can say any more whether a cue quoted what was erased after it was asked.
        silent = self.since is not None and write.erased_after(self.since)
        if silent or self.since is None:
            shown = {_event(hit) for decision, _ in self.decided.values() for hit in decision.hits}
            gone = _gone(write, {*self.retrieved, *self.used, *shown})
        write.add_usage(
            {event_context(event): n for event, n in self.retrieved.items() if event not in gone},
            {event: time for event, time in self.used.items() if event not in gone},
        )
        decided = []
        for decision, noted in self.decided.values():
            kept = tuple(hit for hit in decision.hits if _event(hit) not in gone)
            if len(kept) < len(decision.hits):
                # What is noted of it tells of the erased ones too.
                noted = {}
                decision = replace(decision, hits=kept, propensities=None, drawn_from=None)
            if silent:
                decision = replace(decision, cue=decision.cue.silent())
                # Whoever can guess the words could tell by their hash.
                noted = noted and {**noted, "cue_hash": ""}
            decided.append((decision, noted))
        write.add_decisions(decided, replace=True)

    def join(self, earlier: UsageBuffer) -> None:
        """Take back what could not be written."""
        for event, n in earlier.retrieved.items():
            self.count(event, n)
        for event, time in earlier.used.items():
            self.use([event], time)
        self.decided = {**earlier.decided, **self.decided}
        if earlier.since is not None:
            # Who asked before that may have noted it only meanwhile.
            self.asked(earlier.since)


def _event(hit: Hit) -> int | None:
    return None if hit.event is None else hit.event.event_id


def _gone(write: Writer, events: Iterable[int | None]) -> set[int]:
    """Return those of some events that are not there any more."""
    asked = [event for event in events if event is not None]
    if not asked:
        return set()
    found = write.connection.execute(
        "SELECT value FROM json_each(?)"
        " WHERE NOT EXISTS (SELECT 1 FROM events WHERE event_id = value)",
        (json.dumps(asked),),
    )
    return {row[0] for row in found}
