"""Explanations: the causes of an event, or its consequences, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cvx.causal.narrative import Story
from cvx.causal.walk import Reached
from cvx.store import Record
from cvx.types import Edge, Event

if TYPE_CHECKING:
    import polars as pl


class Because(NamedTuple):
    """One step of an explanation.

    Attributes
    ----------
    event : Event
        The cause, or the consequence.
    edge : Edge
        What leads to it from the step before.
    depth : int
        Edges away from the event that was asked about.
    weight : float
        The product of the weights on the best way to it.
    """

    event: Event
    edge: Edge
    depth: int
    weight: float


class Explanation(list[Because]):
    """The steps of an explanation, nearest first, of one depth the surest first.

    Parameters
    ----------
    steps : iterable of Because
    story : Story
        The same, to be told.

    Attributes
    ----------
    story : Story
        Event, links and walks; ``truncated`` and ``deeper`` of it say whether there is more.
    """

    def __init__(self, steps: Iterable[Because], story: Story) -> None:
        super().__init__(steps)
        self.story = story

    @property
    def truncated(self) -> bool:
        """Whether the walk was cut off by its budget: there is more."""
        return self.story.truncated

    @property
    def deeper(self) -> bool:
        """Whether links lead on from where ``max_depth`` ended the walk."""
        return self.story.deeper

    def narrative(self) -> str:
        """Tell it in sentences; see ``cvx.causal.Story.narrative``."""
        return self.story.narrative()

    def frame(self) -> pl.DataFrame:
        """Return it as a table; see ``cvx.causal.Story.frame``."""
        return self.story.frame()

    def draw(self, path: str | Path) -> None:
        """Write it as a picture; see ``cvx.causal.Story.draw``."""
        self.story.draw(path)


def explained(record: Record, story: Story, found: Sequence[Reached]) -> Explanation:
    """Return what a walk found, with the events of a record."""
    listed = [int(reached.id) for reached in found]
    events = {event.event_id: event for event in record.events(listed)}
    ends = {int(end) for r in found for end in (r.path[-1].cause, r.path[-1].effect)}
    nodes = record.nodes_of_events(sorted(ends))
    steps = []
    for reached in found:
        link = reached.path[-1]
        edge = Edge(
            nodes[int(link.cause)][0],
            nodes[int(link.effect)][0],
            link.kind,
            link.weight,
            link.why,
            link.evidence,
            link.recorded,
        )
        steps.append(Because(events[int(reached.id)], edge, reached.depth, reached.weight))
    return Explanation(steps, story)
