"""Higher memories made of many: what was seen again and again, with what it was seen in.

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cvx.arguments import check_fields, whole
from cvx.causal.importance import LEAST, MOST, Importance, RuleImportance
from cvx.causal.reflection_writers import CountingWriter, ReflectionWriter
from cvx.errors import InvalidParameterError
from cvx.types import Event, Vector

KINDS = ("observation", "conversation", "reflection", "event")
"""How a memory came about, in the words of the generative agents."""
_USUAL = 5.0


def importance_of(salience: float | None) -> float:
    """Return how much something mattered from 1 to 10; 5 where nobody said."""
    return _USUAL if salience is None else LEAST + (MOST - LEAST) * salience


def salience_of(importance: float) -> float:
    """Return an importance from 1 to 10 as a salience in [0, 1]."""
    return (importance - LEAST) / (MOST - LEAST)


@dataclass(frozen=True, slots=True)
class Reflector:
    """Reflects when enough has happened since the last time.

    Parameters
    ----------
    threshold : float, default 100.0
        The importances of what no reflection cites yet must add up to this; above 0. Where nobody
        said how much an event mattered, it is 5.
    writer : ReflectionWriter, optional
        Default ``CountingWriter()``.
    importance : Importance, optional
        Rates the reflections; default ``RuleImportance()``.
    embed : callable, optional
        From a text to its vector.
    latest : int, default 100
        How many of those events are looked at, the latest ones; at least 1.
    """

    threshold: float = 100.0
    writer: ReflectionWriter = field(default_factory=CountingWriter)
    importance: Importance = field(default_factory=RuleImportance)
    embed: Callable[[str], Vector] | None = None
    latest: int = 100

    def __post_init__(self) -> None:
        check_fields(self, latest=whole(1))
        if not self.threshold > 0:
            raise InvalidParameterError(f"threshold is {self.threshold}: give one above 0")

    def pending(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that no reflection rests on yet, in their order."""
        told = [event for event in events if event.kind == "reflection"]
        cited = {source for event in told for source in event.metadata.get("sources", ())}
        return [
            event
            for event in events
            if event.kind != "reflection" and not {event.event_id, event.key} & cited
        ]

    def due(self, events: Sequence[Event]) -> bool:
        """Tell whether enough has happened."""
        weight = sum(importance_of(event.salience) for event in self.pending(events))
        return weight >= self.threshold

    def reflect(self, events: Sequence[Event], timestamp: int) -> list[Event]:
        """Return what is to be learned of events, if it is due.

        Parameters
        ----------
        events : sequence of Event
            All that happened, earlier reflections among it, oldest first.
        timestamp : int
            Now.

        Returns
        -------
        list of Event
            Of the kind "reflection", to be stored; the ids of the events that each rests on are
            its ``metadata["sources"]``. [] where it is not due, or where nothing stands out.
        """
        if not self.due(events):
            return []
        return [
            Event(
                entity_id=0,
                timestamp=timestamp,
                text=insight.text,
                vector=None if self.embed is None else self.embed(insight.text),
                kind="reflection",
                namespace=events[0].namespace,
                metadata={"sources": list(insight.sources)},
                salience=salience_of(self.importance.rate(insight.text, "reflection")),
            )
            for insight in self.writer.write(self.pending(events)[-self.latest :])
        ]
