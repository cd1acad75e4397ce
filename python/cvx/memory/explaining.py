"""What led to an event, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cvx.arguments import a_text, an_event, checked, some_texts, whole
from cvx.causal import CausalGraph, Story
from cvx.causal.ground import StoreGround
from cvx.causal.walk import DEFAULT_NODES, Reached
from cvx.memory.base import Base
from cvx.types import DEFAULT_NAMESPACE, Edge, Event

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


class Explaining(Base):
    """The half that asks why."""

    @checked(also=some_texts, effect_first=a_text)
    def graph(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        effect_first: str = "refuse",
    ) -> CausalGraph:
        """Return the causal graph over the memory's own events and links, as a namespace sees it.

        Parameters
        ----------
        namespace : str, default ""
            Who asks.
        also : sequence of str
            Further namespaces, of which what is shared is seen.
        effect_first : {"refuse", "flag", "allow"}, default "refuse"
            What becomes of a link to an effect that happened before its cause; see ``CausalGraph``.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> memory.link(memory.add("rain"), memory.add("mud"), weight=0.5)
        >>> memory.graph().predecessors(2)
        {1: 1}
        """
        ground = StoreGround(
            self.record, lambda: self.index.edge_kinds, namespace=namespace, also=also
        )
        return CausalGraph(ground, effect_first=effect_first)

    @checked(event_id=an_event, max_depth=whole(1), max_events=whole(1))
    def why(
        self,
        event_id: int,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        max_depth: int = 5,
        max_events: int = DEFAULT_NODES,
    ) -> Explanation:
        """Return what led to an event, over its causal links backwards; nearest first.

        Links that say nothing of causes ("irrelevant", "same_action_type", "region_transition",
        "mentions") are not walked.

        Parameters
        ----------
        event_id : int
            What is to be explained.
        namespace : str, default ""
            Who asks: nothing that it may not see is shown or walked through.
        max_depth : int, default 5
            Links away at the most, at least 1; ``deeper`` says whether there are more.
        max_events : int, default 1000
            Events at the most, at least 1; ``truncated`` says whether there are more.

        Returns
        -------
        Explanation
            A list of its steps, which can also tell itself: ``print(memory.why(7).narrative())``.

        Raises
        ------
        UnknownEventError
            No such event, or none that the namespace may see.
        InvalidParameterError
            A bound below 1.
        """
        story = self.graph(namespace=namespace).story(
            event_id, max_depth, after=0, max_nodes=max_events
        )
        return self._explained(story, story.before)

    @checked(event_id=an_event, max_depth=whole(1), max_events=whole(1))
    def consequences(
        self,
        event_id: int,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        max_depth: int = 5,
        max_events: int = DEFAULT_NODES,
    ) -> Explanation:
        """Return what an event led to, over its causal links forwards; see ``why``."""
        graph = self.graph(namespace=namespace)
        story = graph.story(event_id, before=False, after=max_depth, max_nodes=max_events)
        return self._explained(story, story.after)

    @checked(event_id=an_event, max_depth=whole(1), after=whole(0))
    def story(
        self,
        event_id: int,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        max_depth: int = 5,
        after: int = 2,
    ) -> Story:
        """Return an event with what led to it and what came of it; see ``CausalGraph.story``."""
        return self.graph(namespace=namespace).story(event_id, max_depth, after=after)

    def _explained(self, story: Story, found: Sequence[Reached]) -> Explanation:
        listed = [int(reached.id) for reached in found]
        events = {event.event_id: event for event in self.record.events(listed)}
        ends = {int(end) for r in found for end in (r.path[-1].cause, r.path[-1].effect)}
        nodes = self.record.nodes_of_events(sorted(ends))
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
