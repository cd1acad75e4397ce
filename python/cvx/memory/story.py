"""Stories: the events that led to one, or came of it, with the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cvx.causal import Story as Told
from cvx.causal.walk import Reached
from cvx.escaping import html_text
from cvx.store import Record
from cvx.types import Edge, Event

if TYPE_CHECKING:
    import polars as pl


class StoryStep(NamedTuple):
    """One step of a story.

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


class Story(list[Event]):
    """The causes of an event, or its consequences: nearest first, of one depth the surest first.

    ``str(story)`` tells it in sentences.

    Parameters
    ----------
    of : Event
        What was asked about, or found by words.
    steps : sequence of StoryStep
        How each event was reached.
    told : cvx.causal.Story
        The same, to be told.

    Attributes
    ----------
    of, steps, told
        As given.
    """

    def __init__(self, of: Event, steps: Sequence[StoryStep], told: Told) -> None:
        super().__init__(step.event for step in steps)
        self.of, self.steps, self.told = of, list(steps), told

    @property
    def edges(self) -> list[Edge]:
        """The link that leads to each event from the step before, in their order."""
        return [step.edge for step in self.steps]

    @property
    def truncated(self) -> bool:
        """Whether the walk was cut off by its budget: there is more."""
        return self.told.truncated

    @property
    def deeper(self) -> bool:
        """Whether links lead on from where ``max_depth`` ended the walk."""
        return self.told.deeper

    def frame(self) -> pl.DataFrame:
        """Return it as a table; see ``cvx.causal.Story.frame``."""
        return self.told.frame()

    def draw(self, path: str | Path) -> None:
        """Write it as a picture; see ``cvx.causal.Story.draw``."""
        self.told.draw(path)

    def __str__(self) -> str:
        return self.told.narrative()

    def __repr__(self) -> str:
        return f"<Story of event {self.of.event_id}: {len(self)} events>"

    def _repr_html_(self) -> str:
        told = "".join(
            f"<li>{html_text(step.event.text)} <small>{html_text(step.edge.why)}</small></li>"
            for step in self.steps
        )
        return f"<p>{html_text(self.of.text)}</p><ol>{told}</ol>"


def story_of(record: Record, of: Event, told: Told, found: Sequence[Reached]) -> Story:
    """Return what a walk found, with the events of a record."""
    events = {event.event_id: event for event in record.events(int(one.id) for one in found)}
    steps = [StoryStep(events[int(one.id)], one.path[-1], one.depth, one.weight) for one in found]
    return Story(of, steps, told)
