"""Storage of a causal graph, in RAM or in a store; refuses links whose effect came first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias

from cvx.arguments import a_text, among, check_fields, one_of
from cvx.causal.cosine import as_vector
from cvx.causal.evidence import Evidence
from cvx.dates import when
from cvx.errors import (
    EffectFirstWarning,
    InvalidInputError,
    InvalidVectorError,
    UnknownError,
    warn,
)
from cvx.store import Record, Writer
from cvx.store.history import as_of
from cvx.store.namespaces import check_also, check_namespace, visible_sql
from cvx.store.rows import listed
from cvx.types import DEFAULT_NAMESPACE, ENTITY_KEY, Edge, Event, EventId, Vector

_NOT_CAUSAL = frozenset(
    {"temporal", "same_action_type", "region_transition", "irrelevant", "mentions"}
)
CAUSES = frozenset({"caused", "caused_success", "caused_failure", "granger_causal"})
"""Kinds of which a cause comes before its effect; a kind of one's own may run against time."""


def causal_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the edge kinds that say what led to what: all but those that are known to say less.

    Examples
    --------
    >>> causal_kinds(("temporal", "caused", "irrelevant", "my_own"))
    ('caused', 'my_own')
    """
    return tuple(kind for kind in kinds if kind not in NOT_WALKED)


HIDDEN = {state: f"cause_{state}" for state in ("candidate", "rejected", "unjudged")}
"""The kinds under which links are kept that nothing walks: no ranking, no story."""

NOT_WALKED = _NOT_CAUSAL | {*HIDDEN.values()}


def state_of(edge: Edge) -> str:
    """Return what a link is: "stated", "judged", "confirmed", or what its hidden kind says."""
    hidden = edge.kind.removeprefix("cause_")
    if HIDDEN.get(hidden) == edge.kind:
        return hidden
    return Evidence.from_text(edge.evidence).state


@dataclass(frozen=True, slots=True)
class CausalEvent:
    """Something that happened, as a node of the graph.

    Attributes and items both work, ``event.text``, ``event["text"]`` and ``event.get("text")``.

    Parameters
    ----------
    id : str or int
        What it is called.
    text : str
        What it says.
    tick : int
        When it happened.
    kind : str, default "event"
        Free label, such as "crisis", "decision" or "policy".
    institution_id : str, default ""
        Who it happened to, or who did it.
    embedding : array_like of shape (dim,), float32, optional
        Where it lies.
    metadata : mapping, optional
        Whatever else is known of it.

    Raises
    ------
    InvalidInputError
        An id that is neither str nor int, or a text that is no str.
    InvalidVectorError
        An embedding that is no vector.
    """

    id: EventId
    text: str
    tick: int
    kind: str = "event"
    institution_id: str = ""
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    metadata: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, id=one_of(str, int, called="a str or an int"), text=a_text)
        if self.embedding is not None:
            object.__setattr__(self, "embedding", as_vector(self.embedding))

    def keys(self) -> list[str]:
        """Return the names of its items: ``dict(event)`` works."""
        return [*CausalEvent.__slots__]

    def __getitem__(self, name: str) -> Any:
        if name in CausalEvent.__slots__:
            return getattr(self, name)
        raise KeyError(f"an event has no {name!r}: it has {', '.join(self.keys())}")

    def get(self, name: str, default: Any = None) -> Any:
        """Return one of its items, or a default where it has none of the name."""
        return self[name] if name in CausalEvent.__slots__ else default


def link_of(edge: Edge, cause: EventId, effect: EventId) -> Edge:
    """Return an edge of a store as a link between two events."""
    state = state_of(edge)
    kind = "caused" if state in HIDDEN else edge.kind
    return Edge(cause, effect, kind, edge.weight, edge.why, edge.evidence, edge.recorded, state)


known_order = partial(among("refuse", "flag", "allow"), "effect_first")
"""Return "refuse", "flag" or "allow" as it is; anything else raises InvalidInputError."""


def check_link(link: Edge, began: int, followed: int, effect_first: str) -> None:
    """Refuse a link to itself; refuse or flag an effect that happened before its cause.

    Parameters
    ----------
    link : Edge
        Of a kind that is known. Only the kinds of ``CAUSES`` keep an order in time.
    began, followed : int
        When the cause happened, and when the effect did.
    effect_first : {"refuse", "flag", "allow"}
        What becomes of an effect before its cause: an error, a warning, or nothing.

    Raises
    ------
    InvalidInputError
        It leads from an event to itself, or its weight is outside [0, 1].
    InvalidInputError
        The effect happened first, and ``effect_first`` is "refuse".

    Warns
    -----
    EffectFirstWarning
        The effect happened first, and it is "flag".
    """
    if not 0.0 <= link.weight <= 1.0:
        raise InvalidInputError(f"weight is {link.weight}, outside [0, 1]: scale it to that range")
    if link.cause == link.effect:
        raise InvalidInputError(f"event {link.cause!r} cannot lead to itself: give two events")
    if followed >= began or effect_first == "allow" or link.kind not in CAUSES:
        return
    said = (
        f"event {link.effect!r} happened at {when(followed)}, before its cause {link.cause!r} at "
        f"{when(began)}: swap them, correct the times, or give effect_first='allow' where it is a "
        "parameter"
    )
    if effect_first == "refuse":
        raise InvalidInputError(said)
    warn(said, EffectFirstWarning)


_AMONG = "event_id IN (SELECT value FROM json_each(?))"
_INSTITUTION = (
    "CAST(coalesce(json_extract(metadata, '$.institution'),"
    f" json_extract(metadata, '$.\"{ENTITY_KEY}\"'), entity) AS TEXT)"
)


class GraphInRam:
    """Events and links in RAM, with all that was said of each link."""

    def __init__(self) -> None:
        self._events: dict[EventId, CausalEvent] = {}
        self._said: dict[tuple[EventId, EventId, str], list[Edge]] = {}
        # Of each event the links into it, and those that lead on.
        self._into: dict[EventId, list[tuple[EventId, EventId, str]]] = {}
        self._onward: dict[EventId, list[tuple[EventId, EventId, str]]] = {}
        self._dim: int | None = None

    def __len__(self) -> int:
        return len(self._events)

    def get(self, event: EventId) -> CausalEvent | None:
        """Return an event, or None."""
        return self._events.get(event)

    def next_id(self) -> EventId:
        """Return an id that is free."""
        return next(number for number in count(len(self._events)) if number not in self._events)

    def add(self, event: CausalEvent) -> None:
        """Take in an event.

        Raises
        ------
        InvalidInputError, InvalidVectorError
            Its id is taken; its vector has another dimension than those before.
        """
        if event.id in self._events:
            raise InvalidInputError(f"event {event.id!r} is in the graph: give it another id")
        if event.embedding is not None:
            if self._dim not in (None, len(event.embedding)):
                raise InvalidVectorError(
                    f"the vector has {len(event.embedding)} dimensions, those of the graph "
                    f"{self._dim}: embed it with the same model"
                )
            self._dim = len(event.embedding)
        self._events[event.id] = event

    def put(self, links: Sequence[Edge]) -> None:
        """Store links between events that exist; each replaces one of the same ends and kind.

        Raises
        ------
        InvalidInputError
            A kind that says nothing of causes.
        """
        for link in links:
            if link.kind not in CAUSES:
                raise InvalidInputError(
                    f"kind is {link.kind!r}: give one of {', '.join(sorted(CAUSES))}"
                )
            latest = max(self._events[link.cause].tick, self._events[link.effect].tick)
            known = replace(link, recorded=latest if link.recorded is None else link.recorded)
            at = link.cause, link.effect, link.kind
            if at not in self._said:
                self._into.setdefault(link.effect, []).append(at)
                self._onward.setdefault(link.cause, []).append(at)
            self._said.setdefault(at, []).append(known)

    def links(self, events: Sequence[EventId], *, backward: bool) -> list[Edge]:
        """Return the causal links that end at these events, or those that start there."""
        listed = self._into if backward else self._onward
        return [self._said[at][-1] for event in events for at in listed.get(event, ())]

    def between(self, since: int, until: int) -> list[CausalEvent]:
        """Return what happened at ``since <= tick < until``, in time order."""
        return _in_order(event for event in self.events() if since <= event.tick < until)

    def of_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return the events of an institution, in time order."""
        return _in_order(event for event in self.events() if event.institution_id == institution_id)

    def events(self) -> list[CausalEvent]:
        """Return every event, in the order in which they came."""
        return list(self._events.values())

    def as_of(self, time: int) -> GraphInRam:
        """Return what had happened, and what had been said of it, at a time."""
        past = GraphInRam()
        for event in self.events():
            if event.tick <= time:
                past.add(event)
        for versions in self._said.values():
            past.put(
                [
                    link
                    for link in versions
                    if link.cause in past._events and link.effect in past._events
                    if link.recorded is not None and link.recorded <= time
                ]
            )
        return past


class GraphInRecord:
    """Events and links of a record, as one namespace may see them.

    An event's id is its number in the store, its tick the time it happened, its institution what
    its metadata say under "institution", or else its entity. Of links,
    those count that end at active events which may be seen; the event that is asked about may be
    archived.

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
    may_link : callable, optional
        Is asked with the ends of every link that is to be written; raises where it may not be.
    """

    def __init__(
        self,
        record: Record,
        edge_kinds: Callable[[], tuple[str, ...]],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        may_link: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        check_namespace(namespace)
        self.record = record
        self._may_link = may_link
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

    def put(self, links: Sequence[Edge]) -> None:
        """Store causal links, in one transaction; see ``store_links``."""
        if self._may_link is not None:
            ends = (end for link in links for end in (link.cause, link.effect))
            self._may_link([end for end in ends if isinstance(end, int)])
        with self.record.transaction() as write:
            store_links(write, links, causal_kinds(self._edge_kinds()))

    def links(self, events: Sequence[EventId], *, backward: bool) -> list[Edge]:
        """Return the causal links that end at these events, or those that start there."""
        numbers = [event for event in events if isinstance(event, int)]
        nodes = [node for own in self.record.nodes_of_events(numbers).values() for node in own]
        edges = self.record.links_of(nodes, incoming=backward) if nodes else []
        if not edges:
            return []
        kinds = frozenset(causal_kinds(self._edge_kinds()))
        edges = [edge for edge in edges if edge.kind in kinds]
        ends = {node for edge in edges for node in (edge.from_node, edge.to_node)}
        owner = self.record.events_of_nodes(sorted(ends))
        # Of the far ends those that are active and may be seen; what is asked about always counts.
        seen = {*numbers, *self._ids(_AMONG, (listed(owner.values()),))}
        return [
            link_of(edge, cause, effect)
            for edge in edges
            for cause, effect in [(owner.get(edge.from_node), owner.get(edge.to_node))]
            if cause is not None and effect is not None
            if (cause if backward else effect) in seen
        ]

    def _ids(
        self, where: str, values: Sequence[object], state: str = "state = 'active'"
    ) -> list[int]:
        sql = f"SELECT event_id FROM events WHERE {where} AND {self._visible} AND {state}"
        return [row[0] for row in self.record.query(sql, (*values, *self._values))]

    def between(self, since: int, until: int) -> list[CausalEvent]:
        """Return what happened at ``since <= tick < until``, in time order."""
        return self._found("timestamp >= ? AND timestamp < ?", (since, until))

    def of_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return the events of an institution, in time order."""
        return self._found(f"{_INSTITUTION} = ?", (institution_id,))

    def events(self) -> Iterable[CausalEvent]:
        """Return every active event that may be seen, in the order of writing."""
        return map(as_causal_event, self.record.events(self._ids("true", ())))

    def _found(self, where: str, values: Sequence[object]) -> list[CausalEvent]:
        return _in_order(map(as_causal_event, self.record.events(self._ids(where, values))))

    def as_of(self, time: int) -> GraphInRecord:
        """Return what was recorded at a time."""
        past = as_of(self.record, time)
        return GraphInRecord(past, self._edge_kinds, namespace=self._namespace, also=self._also)


def store_links(
    write: Writer,
    links: Sequence[Edge],
    kinds: Sequence[str],
    *,
    effect_first: str = "allow",
) -> list[Edge]:
    """Store links between events as edges between their nodes: the one door for them.

    Parameters
    ----------
    write : Writer
        Of the transaction in which all of them are stored.
    links : sequence of Edge
        Each replaces one of the same ends and kind.
    kinds : sequence of str
        Those that are accepted.
    effect_first : {"refuse", "flag", "allow"}, default "allow"
        As for ``check_link``.

    Raises
    ------
    UnknownError, InvalidInputError
        A kind that is not accepted; a link to itself.
    UnknownError
        An end that does not exist, or is in no index.
    InvalidInputError
        The effect happened before the cause, and ``effect_first`` is "refuse".
    """
    ends = {link.cause for link in links} | {link.effect for link in links}
    rows = write.connection.execute(
        f"SELECT event_id, node, timestamp FROM events WHERE {_AMONG}",
        (json.dumps(sorted(ends, key=str)),),
    )
    known = {row[0]: (row[1], row[2]) for row in rows}
    edges: list[Edge] = []
    stale: list[tuple[int, int, str]] = []
    for link in links:
        if link.kind not in kinds or link.kind in HIDDEN.values():
            raise UnknownError(
                f"there is no edge kind {link.kind!r} to link these: declare it first, or use "
                f"{', '.join(kinds)}"
            )
        for end in (link.cause, link.effect):
            if end not in known:
                raise UnknownError(f"there is no event {end}: it was erased or never given")
            if known[end][0] is None:
                raise UnknownError(f"event {end} is in no index: add it as an event of its own")
        (cause, began), (effect, followed) = known[link.cause], known[link.effect]
        check_link(link, began, followed, effect_first)
        kind = HIDDEN.get(link.state, link.kind)
        edges.append(Edge(cause, effect, kind, link.weight, link.why, link.evidence))
        # A pair is in one state: what was said of it before goes.
        others = {*HIDDEN.values(), *([link.kind] if link.state in HIDDEN else [])} - {kind}
        stale += [(cause, effect, other) for other in sorted(others)]
    write.remove_links(stale)
    write.add_links(edges)
    return edges


def as_causal_event(event: Event) -> CausalEvent:
    """Return an event of a store as a node of a causal graph."""
    return CausalEvent(
        -1 if event.event_id is None else event.event_id,
        event.text,
        event.timestamp,
        event.kind,
        str(event.metadata.get("institution", event.entity or event.entity_id)),
        event.vector,
        dict(event.metadata),
    )


GraphData: TypeAlias = GraphInRam | GraphInRecord
"""Where the events and links of a graph are kept."""


def _in_order(events: Iterable[CausalEvent]) -> list[CausalEvent]:
    return sorted(events, key=lambda event: event.tick)
