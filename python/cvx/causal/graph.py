"""The causal graph: adds events and links, walks to causes and consequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy.typing as npt

from cvx.arguments import a_share, whole
from cvx.causal.cosine import cosine
from cvx.causal.graph_data import (
    CausalEvent,
    GraphData,
    GraphInRam,
    GraphInRecord,
    check_link,
    known_order,
)
from cvx.causal.narrative import Story
from cvx.causal.walk import DEFAULT_DEPTH, DEFAULT_NODES, Walk, walk
from cvx.errors import (
    InvalidInputError,
    UnknownError,
)
from cvx.extras import needs
from cvx.types import Edge, EventId

Attenuation = float | Mapping[tuple[str, str], float]


class CausalGraph:
    """A directed graph of events: what led to what.

    Parameters
    ----------
    data : GraphData, optional
        Where events and links are kept; by default in RAM. A memory gives out a graph over its
        own events: ``cvx.Memory.causes``.
    attenuation : float or mapping of (str, str) to float, default 1.0
        What a link between two institutions is worth beside one within: one factor for all, or
        one for each pair (of the cause, of the effect); pairs that are not named keep theirs
        whole. In [0, 1].
    effect_first : {"refuse", "flag", "allow"}, default "refuse"
        What becomes of a link to an effect that happened before its cause: an error, a link with
        a warning, or a link.

    Examples
    --------
    >>> graph = CausalGraph()
    >>> for name, tick in (("drought", 20), ("rationing", 25), ("riots", 60)):
    ...     _ = graph.add_event(name, f"the {name}", tick)
    >>> graph.link("drought", "rationing", 0.9)
    >>> graph.link("rationing", "riots", 0.5)
    >>> graph.predecessors("riots")
    {'rationing': 1, 'drought': 2}
    >>> [(found.id, found.weight) for found in graph.walk("riots").found]
    [('rationing', 0.5), ('drought', 0.45)]
    """

    def __init__(
        self,
        data: GraphData | None = None,
        *,
        attenuation: Attenuation = 1.0,
        effect_first: str = "refuse",
    ) -> None:
        factors = attenuation.values() if isinstance(attenuation, Mapping) else (attenuation,)
        for factor in factors:
            a_share("a factor of attenuation", factor)
        self.data: GraphData = GraphInRam() if data is None else data
        self.attenuation = attenuation
        self.effect_first = known_order(effect_first)

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, event: object) -> bool:
        return isinstance(event, (str, int)) and self.data.get(event) is not None

    def __iter__(self) -> Iterator[CausalEvent]:
        return iter(self.data.events())

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self.data)

    def add_event(
        self,
        event_id: EventId | None,
        text: str,
        tick: int,
        *,
        kind: str = "event",
        institution_id: str = "",
        embedding: npt.ArrayLike | None = None,
    ) -> EventId:
        """Add something that happened.

        Parameters
        ----------
        event_id : str or int or None
            What it is called; ``None`` gives it a number.
        text, tick, kind, institution_id, embedding
            As for ``CausalEvent``.

        Returns
        -------
        str or int
            Its id.

        Raises
        ------
        InvalidInputError
            The id is taken, or the store gives ids by itself.
        InvalidVectorError
            An embedding that is no vector, or of another dimension than those before.
        """
        data, vector = self.data, cast(Any, embedding)
        if isinstance(data, GraphInRecord):
            raise InvalidInputError(
                f"the event {text!r} cannot be added here: add it with memory.add"
            )
        name = data.next_id() if event_id is None else event_id
        data.add(CausalEvent(name, text, tick, kind, institution_id, vector))
        return name

    def link(
        self,
        cause: EventId,
        effect: EventId,
        weight: float = 1.0,
        *,
        kind: str = "caused",
        why: str = "",
        evidence: str = "",
        recorded: int | None = None,
        lenient: bool = False,
    ) -> None:
        """Say that one event led to another; the same link again replaces the older one.

        Parameters
        ----------
        cause, effect : str or int
            Events.
        weight : float, default 1.0
            How sure, in [0, 1].
        kind : str, default "caused"
            "caused", "caused_success", "caused_failure" or "granger_causal".
        why, evidence : str
            The reason in words, and what it rests on.
        recorded : int, optional
            The tick at which this became known; default when the later of the two happened.
        lenient : bool, default False
            Pass over a link with an end that does not exist, as the blueprint does.

        Raises
        ------
        UnknownError
            An end does not exist.
        InvalidInputError
            A weight outside [0, 1]; a link to itself.
        InvalidInputError
            The effect happened before the cause, and ``effect_first`` is "refuse".

        Warns
        -----
        EffectFirstWarning
            The same, and it is "flag".
        """
        made = Edge(cause, effect, kind, weight, why, evidence, recorded)
        if lenient and not (cause in self and effect in self):
            return
        ends = self._known(cause), self._known(effect)
        check_link(made, ends[0].tick, ends[1].tick, self.effect_first)
        self.data.put([made])

    def auto_link_predecessors(
        self,
        new_event_id: EventId,
        window_ticks: int = 48,
        semantic_threshold: float | None = None,
    ) -> list[Edge]:
        """Link an event to what came shortly before it and reads alike.

        ``0.5 * exp(-0.05 * age) + 0.5 * max(0, cosine)`` from 0.3 up becomes the weight. It is a
        proxy, for filling a sparse graph; see ``docs/causal.md``.

        Parameters
        ----------
        new_event_id : str or int
            The effect.
        window_ticks : int, default 48
            How far back to look; above 0. What happened at the same tick is left out.
        semantic_threshold : float, optional
            Leave out what is less similar; the blueprint's argument of this name does nothing,
            and so does this one until it is given.

        Returns
        -------
        list of Edge
            What was linked, in time order.

        Raises
        ------
        UnknownError
            No such event.
        InvalidInputError
            A window below 1.
        """
        event = self._known(new_event_id)
        whole(1)("window_ticks", window_ticks)
        made = []
        for cause in self.data.between(event.tick - window_ticks, event.tick):
            alike = 0.0
            if cause.embedding is not None and event.embedding is not None:
                alike = cosine(cause.embedding, event.embedding)
            age = event.tick - cause.tick
            weight = 0.5 * math.exp(-0.05 * age) + 0.5 * max(0.0, alike)
            if weight >= 0.3 and (semantic_threshold is None or alike >= semantic_threshold):
                note = f"{age} earlier, similarity {alike:.2f}"
                made.append(
                    Edge(cause.id, event.id, weight=min(1.0, round(weight, 3)), evidence=note)
                )
        self.data.put(made)
        return made

    def get_event(self, event_id: EventId) -> CausalEvent | None:
        """Return an event, or None if there is none of that id."""
        return self.data.get(event_id)

    def events_for_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return what happened to an institution, in time order."""
        return self.data.of_institution(institution_id)

    def causes(self, event_id: EventId) -> list[Edge]:
        """Return the links that end at an event, the strongest first.

        Raises
        ------
        UnknownError
            No such event.
        """
        return self._links(event_id, backward=True)

    def effects(self, event_id: EventId) -> list[Edge]:
        """Return the links that start at an event, the strongest first; see ``causes``."""
        return self._links(event_id, backward=False)

    def _links(self, event_id: EventId, *, backward: bool) -> list[Edge]:
        self._known(event_id)
        found = self.data.links([event_id], backward=backward)
        return sorted(found, key=lambda link: -link.weight)

    def walk(
        self,
        event_id: EventId,
        max_depth: int = DEFAULT_DEPTH,
        *,
        max_nodes: int = DEFAULT_NODES,
        backward: bool = True,
        min_weight: float = 0.0,
    ) -> Walk:
        """Walk back to what led to an event, or forward to what came of it.

        Parameters
        ----------
        event_id : str or int
            Where the walk begins.
        max_depth, max_nodes, backward, min_weight
            As for ``cvx.causal.walk.walk``.

        Returns
        -------
        Walk
            With depth, path weight and path of each, and whether the budget cut it off.

        Raises
        ------
        UnknownError
            No such event.
        InvalidInputError
            A bound below 1.
        """
        self._known(event_id)
        return walk(
            event_id,
            partial(self.data.links, backward=backward),
            max_depth,
            max_nodes=max_nodes,
            backward=backward,
            min_weight=min_weight,
            factor=None if self.attenuation in (1.0, {}) else self._across,
        )

    def predecessors(self, event_id: EventId, max_depth: int = DEFAULT_DEPTH) -> dict[EventId, int]:
        """Return every cause with its depth: 1 for a direct one; {} for an unknown event."""
        return self._depths(event_id, max_depth, backward=True)

    def consequences(self, event_id: EventId, max_depth: int = DEFAULT_DEPTH) -> dict[EventId, int]:
        """Return everything that came of an event with its depth; {} for an unknown event."""
        return self._depths(event_id, max_depth, backward=False)

    def _depths(self, event_id: EventId, max_depth: int, *, backward: bool) -> dict[EventId, int]:
        if event_id not in self:
            return {}
        found = self.walk(event_id, max_depth, max_nodes=2**31, backward=backward).found
        return {reached.id: reached.depth for reached in found}

    def story(
        self,
        event_id: EventId,
        max_depth: int = DEFAULT_DEPTH,
        *,
        after: int = 2,
        before: bool = True,
        max_nodes: int = DEFAULT_NODES,
    ) -> Story:
        """Return an event with what led to it and what came of it, to be told or drawn.

        Parameters
        ----------
        event_id : str or int
            What the story is about.
        max_depth : int, default 4
            How far back it goes, at least 1.
        after : int, default 2
            How far on it goes; 0 ends it with the event.
        before : bool, default True
            Whether it begins with what led to the event; ``False``: with the event.
        max_nodes : int, default 1_000
            Events either way at the most.

        Raises
        ------
        UnknownError
            No such event.
        InvalidInputError
            A bound below 1, or ``after`` below 0.
        """
        whole(0)("after", after)
        subject = self._known(event_id)
        back = self.walk(event_id, max_depth, max_nodes=max_nodes) if before else None
        onward = self.walk(event_id, after, max_nodes=max_nodes, backward=False) if after else None
        reached = [one.id for walked in (back, onward) if walked for one in walked.found]
        found = {event: self.data.get(event) for event in reached}
        events = {subject.id: subject} | {at: one for at, one in found.items() if one is not None}
        return Story(
            subject,
            events,
            self._told(subject.id, back, backward=True),
            self._told(subject.id, onward, backward=False),
            back,
            onward,
        )

    def _told(self, subject: EventId, walked: Walk | None, *, backward: bool) -> tuple[Edge, ...]:
        """The links between the subject and what was reached, those across ways included."""
        known = {subject, *(reached.id for reached in (walked.found if walked else ()))}
        links = self.data.links(list(known) if walked else [], backward=backward)
        return tuple(link for link in links if link.cause in known and link.effect in known)

    def _known(self, event_id: EventId) -> CausalEvent:
        found = self.data.get(event_id)
        if found is None:
            raise UnknownError(
                f"there is no event {event_id!r} that can be seen here: add it, or name its "
                "namespace"
            )
        return found

    def _across(self, link: Edge) -> float:
        cause, effect = self.data.get(link.cause), self.data.get(link.effect)
        if cause is None or effect is None or cause.institution_id == effect.institution_id:
            return 1.0
        if isinstance(self.attenuation, Mapping):
            return self.attenuation.get((cause.institution_id, effect.institution_id), 1.0)
        return self.attenuation

    def as_of(self, time: int) -> CausalGraph:
        """Return the graph as it was known at a time: no later event, link or weight."""
        return CausalGraph(
            self.data.as_of(time),
            attenuation=self.attenuation,
            effect_first=self.effect_first,
        )

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``: events with their fields, links with weight and reason.

        Of several links between the same two events the strongest is kept.

        Raises
        ------
        MissingExtraError
            networkx is not installed (extra ``causal``).
        """
        events = [*self]
        return digraph(events, self.data.links([one.id for one in events], backward=False))


def digraph(events: Iterable[CausalEvent], links: Iterable[Edge]) -> Any:
    """Return events and links as networkx has them; see ``CausalGraph.to_networkx``."""
    with needs("causal"):
        import networkx as nx  # type: ignore[import-untyped]
    made = nx.DiGraph()
    made.add_nodes_from((event.id, {name: event[name] for name in _OF_A_NODE}) for event in events)
    made.add_edges_from(
        (link.cause, link.effect, {name: getattr(link, name) for name in _OF_A_LINK})
        for link in sorted(links, key=lambda link: link.weight)
    )
    return made


_OF_A_NODE = ("text", "tick", "kind", "institution_id")
_OF_A_LINK = ("kind", "weight", "why", "state")
