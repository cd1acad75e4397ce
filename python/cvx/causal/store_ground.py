"""A causal graph over the events and links of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cvx.causal.events import CausalEvent, EventId, Link, causal_kinds
from cvx.causal.walk import Limits, Walk, walk
from cvx.errors import InvalidInputError, UnknownEdgeKindError
from cvx.store import Record
from cvx.store.past import as_of
from cvx.store.spaces import check_also, check_namespace, visible_sql
from cvx.types import DEFAULT_NAMESPACE, Edge, Event

_MOST_AT_ONCE = 500


class StoreGround:
    """Events and links of a record, as one namespace may see them.

    An event's id is its number in the store, its tick the time it happened, its institution the
    number of its entity, as text. Of links, those count that end at active events which may be
    seen; the event that is asked about may be archived.

    Parameters
    ----------
    record : Record
        What is read, and where links are written.
    edge_kinds : callable
        Returns the kinds of edge that there are.
    namespace : str, default ""
        Who asks.
    also : sequence of str
        Further namespaces, of which what is shared is seen.
    """

    def __init__(
        self,
        record: Record,
        edge_kinds: Callable[[], tuple[str, ...]],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
    ) -> None:
        check_namespace(namespace)
        self.record = record
        self._edge_kinds = edge_kinds
        self._namespace, self._also = namespace, check_also(also)
        self._visible, self._values = visible_sql(namespace, self._also)

    def __len__(self) -> int:
        sql = f"SELECT count(*) FROM events WHERE {self._visible} AND state = 'active'"
        return int(self.record.query(sql, self._values)[0][0])

    def get(self, event: EventId) -> CausalEvent | None:
        """Return an event that may be seen, whatever its state, or None."""
        found = self._ids("event_id = ?", (event,), "true") if isinstance(event, int) else []
        return next(map(as_causal_event, self.record.events(found)), None)

    def next_id(self) -> None:
        """Return None: the store gives ids by itself."""

    def add(self, event: CausalEvent) -> EventId:
        """Refuse: events come into a store through the memory.

        Raises
        ------
        InvalidInputError
            Always.
        """
        raise InvalidInputError(
            f"the event {event.text!r} cannot be added here: add it with memory.add"
        )

    def put(self, link: Link) -> None:
        """Store a link, in one transaction."""
        edges = self.edges([link])
        with self.record.transaction() as write:
            write.add_links(edges)

    def edges(self, links: Sequence[Link]) -> list[Edge]:
        """Return links between events as edges between their nodes.

        Raises
        ------
        UnknownEdgeKindError
            A kind that is not declared, or says nothing of causes.
        """
        kinds = causal_kinds(self._edge_kinds()) if links else ()
        for link in links:
            if link.kind not in kinds:
                raise UnknownEdgeKindError(
                    f"there is no causal edge kind {link.kind!r}: declare it first, or use "
                    f"{', '.join(kinds)}"
                )
        ends = {int(end) for link in links for end in (link.cause, link.effect)}
        node = {event: own[0] for event, own in self.record.nodes_of_events(sorted(ends)).items()}
        return [
            Edge(
                node[int(link.cause)],
                node[int(link.effect)],
                link.kind,
                link.weight,
                link.why,
                link.evidence,
            )
            for link in links
        ]

    def links(self, events: Sequence[EventId], *, backward: bool) -> list[Link]:
        """Return the causal links that end at these events, or those that start there."""
        numbers = [event for event in events if isinstance(event, int)]
        nodes = [node for own in self.record.nodes_of_events(numbers).values() for node in own]
        edges: list[Edge] = []
        for at in range(0, len(nodes), _MOST_AT_ONCE):
            some = nodes[at : at + _MOST_AT_ONCE]
            edges += self.record.links_of(some, incoming=backward)
        if not edges:
            return []
        kinds = frozenset(causal_kinds(self._edge_kinds()))
        edges = [edge for edge in edges if edge.kind in kinds]
        ends = {node for edge in edges for node in (edge.from_node, edge.to_node)}
        owner = self.record.events_of_nodes(sorted(ends))
        asked, seen = set(numbers), self._seen(owner.values())
        out = []
        for edge in edges:
            cause, effect = owner.get(edge.from_node), owner.get(edge.to_node)
            other = cause if backward else effect
            if cause is not None and effect is not None and (other in seen or other in asked):
                said = (edge.weight, edge.kind, edge.why, edge.evidence, edge.recorded)
                out.append(Link(cause, effect, *said))
        return out

    def _seen(self, events: Iterable[int]) -> set[int]:
        """Of these events, those that are active and may be seen."""
        listed = sorted(set(events))
        seen: set[int] = set()
        for at in range(0, len(listed), _MOST_AT_ONCE):
            some = listed[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            seen.update(self._ids(f"event_id IN ({marks})", some))
        return seen

    def _ids(
        self, where: str, values: Sequence[object], state: str = "state = 'active'"
    ) -> list[int]:
        sql = f"SELECT event_id FROM events WHERE {where} AND {self._visible} AND {state}"
        return [row[0] for row in self.record.query(sql, (*values, *self._values))]

    def between(self, since: int, until: int) -> list[CausalEvent]:
        """Return what happened at ``since <= tick < until``, in time order."""
        return self._in_order("timestamp >= ? AND timestamp < ?", (since, until))

    def of_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return the events of an entity, in time order."""
        if not institution_id.isdecimal():
            return []
        return self._in_order("entity = ?", (int(institution_id),))

    def _in_order(self, where: str, values: Sequence[object]) -> list[CausalEvent]:
        found = map(as_causal_event, self.record.events(self._ids(where, values)))
        return sorted(found, key=lambda event: event.tick)

    def events(self) -> Iterable[CausalEvent]:
        """Return every active event that may be seen, in the order of writing."""
        return map(as_causal_event, self.record.events(self._ids("true", ())))

    def walk(self, start: EventId, limits: Limits, factor: Callable[[Link], float] | None) -> Walk:
        """Walk links from an event that exists."""
        return walk(
            start, lambda layer: self.links(layer, backward=limits.backward), limits, factor
        )

    def depths(self, start: EventId, max_depth: int, *, backward: bool) -> dict[EventId, int]:
        """Return everything that is reached, with its shortest depth."""
        limits = Limits(max_depth, max_nodes=2**31, backward=backward)
        return {reached.id: reached.depth for reached in self.walk(start, limits, None).found}

    def as_of(self, time: int) -> StoreGround:
        """Return what was recorded at a time; it takes a copy of the record."""
        past = as_of(self.record, time)
        return StoreGround(past, self._edge_kinds, namespace=self._namespace, also=self._also)


def as_causal_event(event: Event) -> CausalEvent:
    """Return an event of a store as a node of a causal graph."""
    return CausalEvent(
        -1 if event.event_id is None else event.event_id,
        event.text,
        event.timestamp,
        event.kind,
        str(event.entity_id),
        event.vector,
        dict(event.metadata),
    )
