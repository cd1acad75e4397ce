"""What a causal graph stands on: the edge layer of an index, in RAM or behind a store."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, Self

from cvx.causal.events import CausalEvent, EventId, Link, causal_kinds
from cvx.causal.walk import Limits, Walk, walk
from cvx.errors import DimensionError, InvalidInputError, InvalidParameterError
from cvx.index import TemporalIndex


class Ground(Protocol):
    """Where events and links are kept."""

    def __len__(self) -> int:
        """Count the events."""
        ...

    def get(self, event: EventId) -> CausalEvent | None:
        """Return an event, or None."""
        ...

    def add(self, event: CausalEvent) -> EventId:
        """Take in an event and return its id."""
        ...

    def next_id(self) -> EventId | None:
        """Return an id that is free, or None where the ground gives ids by itself."""
        ...

    def put(self, link: Link) -> None:
        """Store a link between events that exist; it replaces one of the same ends and kind."""
        ...

    def links(self, events: Sequence[EventId], *, backward: bool) -> list[Link]:
        """Return the causal links that end at these events, or those that start there."""
        ...

    def between(self, since: int, until: int) -> list[CausalEvent]:
        """Return what happened at ``since <= tick < until``, in time order."""
        ...

    def of_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return the events of an institution, in time order."""
        ...

    def events(self) -> Iterable[CausalEvent]:
        """Yield every event."""
        ...

    def walk(self, start: EventId, limits: Limits, factor: Callable[[Link], float] | None) -> Walk:
        """Walk links from an event that exists."""
        ...

    def depths(self, start: EventId, max_depth: int, *, backward: bool) -> dict[EventId, int]:
        """Return everything that is reached from an event that exists, with its depth."""
        ...

    def as_of(self, time: int) -> Self:
        """Return what was known at a time."""
        ...


class _Version(NamedTuple):
    link: Link
    recorded: int


class RamGround:
    """Events in RAM, their timelines and links in a ``TemporalIndex`` of its own.

    The index keeps who, when and the weights; texts, vectors and reasons stand beside it, by node.
    """

    def __init__(self) -> None:
        self.index = TemporalIndex(dim=1)
        self._events: list[CausalEvent] = []
        self._node: dict[EventId, int] = {}
        self._entity: dict[str, int] = {}
        self._by_time: list[tuple[int, int]] = []
        self._said: dict[tuple[int, int, str], list[_Version]] = {}
        self._dim: int | None = None

    def __len__(self) -> int:
        return len(self._events)

    def get(self, event: EventId) -> CausalEvent | None:
        """Return an event, or None."""
        node = self._node.get(event)
        return None if node is None else self._events[node]

    def next_id(self) -> EventId:
        """Return an id that is free."""
        number = len(self._events)
        while number in self._node:
            number += 1
        return number

    def add(self, event: CausalEvent) -> EventId:
        """Take in an event and return its id."""
        if event.id in self._node:
            raise InvalidInputError(f"event {event.id!r} is in the graph: give it another id")
        if event.embedding is not None and self._dim not in (None, len(event.embedding)):
            raise DimensionError(
                f"the vector has {len(event.embedding)} dimensions, those of the graph "
                f"{self._dim}: embed it with the same model"
            )
        entity = self._entity.get(event.institution_id, len(self._entity))
        node = self.index.insert(entity, event.tick, None)
        if event.embedding is not None:
            self._dim = len(event.embedding)
        self._entity[event.institution_id] = entity
        self._events.append(event)
        self._node[event.id] = node
        bisect.insort(self._by_time, (event.tick, node))
        return event.id

    def put(self, link: Link) -> None:
        """Store a link; it replaces one of the same ends and kind."""
        if link.kind not in causal_kinds(self.index.edge_kinds):
            raise InvalidParameterError(
                f"kind is {link.kind!r}: give one of "
                f"{', '.join(causal_kinds(self.index.edge_kinds))}"
            )
        a, b = self._node[link.cause], self._node[link.effect]
        self.index.add_edge(a, b, link.kind, link.weight)
        latest = max(self._events[a].tick, self._events[b].tick)
        recorded = latest if link.recorded is None else link.recorded
        self._said.setdefault((a, b, link.kind), []).append(_Version(link, recorded))

    def links(self, events: Sequence[EventId], *, backward: bool) -> list[Link]:
        """Return the links that end at these events, or those that start there."""
        direction = "in" if backward else "out"
        return [
            self._said[edge.from_node, edge.to_node, edge.kind][-1].link
            for event in events
            for edge in self.index.typed_neighbors(self._node[event], direction=direction)
            if (edge.from_node, edge.to_node, edge.kind) in self._said
        ]

    def between(self, since: int, until: int) -> list[CausalEvent]:
        """Return what happened at ``since <= tick < until``, in time order."""
        first = bisect.bisect_left(self._by_time, (since, -1))
        last = bisect.bisect_left(self._by_time, (until, -1))
        return [self._events[node] for _, node in self._by_time[first:last]]

    def of_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return the events of an institution, in time order."""
        entity = self._entity.get(institution_id)
        if entity is None:
            return []
        # An event that another thread is just adding has its node before it is listed.
        steps, listed = self.index.trajectory(entity), len(self._events)
        return [self._events[step.node_id] for step in steps if step.node_id < listed]

    def events(self) -> Iterable[CausalEvent]:
        """Return every event, in the order in which they came."""
        return iter(self._events)

    def walk(self, start: EventId, limits: Limits, factor: Callable[[Link], float] | None) -> Walk:
        """Walk links from an event that exists."""
        return walk(
            start,
            lambda layer: self.links(layer, backward=limits.backward),
            limits,
            factor,
        )

    def depths(self, start: EventId, max_depth: int, *, backward: bool) -> dict[EventId, int]:
        """Return everything that is reached, with its shortest depth."""
        found = self.index.ancestors(
            self._node[start],
            causal_kinds(self.index.edge_kinds),
            max_depth,
            budget=2**31,
            direction="in" if backward else "out",
        )
        pairs = zip(found.nodes.tolist(), found.depths.tolist(), strict=True)
        return {self._events[node].id: depth for node, depth in pairs}

    def as_of(self, time: int) -> RamGround:
        """Return what had happened, and what had been said of it, at a time."""
        past = RamGround()
        for event in self._events:
            if event.tick <= time:
                past.add(event)
        for versions in self._said.values():
            for version in versions:
                ends = version.link.cause in past._node and version.link.effect in past._node
                if ends and version.recorded <= time:
                    past.put(version.link)
        return past
