"""What reading notes, and writes down with whatever is written next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cvx.store import Writer
from cvx.store.learned import event_context
from cvx.types import Decision


@dataclass(slots=True)
class Noted:
    """Things that are not worth a transaction of their own.

    Attributes
    ----------
    retrieved : dict of int to int
        By event: how often it was handed out.
    used : dict of int to int
        By event: when it was used last, in the unit of the timestamps.
    decided : dict of int to (Decision, dict)
        By number: contexts, and what else is to be remembered of them.
    """

    retrieved: dict[int, int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)
    decided: dict[int, tuple[Decision, dict[str, Any]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.retrieved or self.used or self.decided)

    def count(self, event: int, more: int = 1) -> None:
        """Count that an event was handed out."""
        self.retrieved[event] = self.retrieved.get(event, 0) + more

    def forget(self, event: int) -> None:
        """Drop an event that was erased."""
        self.retrieved.pop(event, None)
        self.used.pop(event, None)

    def write(self, write: Writer) -> None:
        """Write it down."""
        write.add_usage({event_context(event): n for event, n in self.retrieved.items()})
        for decision, noted in self.decided.values():
            write.set_decision(decision, noted)
        write.touch(self.used)

    def join(self, earlier: Noted) -> None:
        """Take back what could not be written."""
        for event, n in earlier.retrieved.items():
            self.count(event, n)
        for event, time in earlier.used.items():
            self.used[event] = max(time, self.used.get(event, time))
        self.decided = {**earlier.decided, **self.decided}
