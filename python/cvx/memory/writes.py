"""What goes into a memory: events, aliases, links, and changes to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cvx.causal.events import Link, known_order
from cvx.causal.ground import store_links
from cvx.errors import InvalidEdgeError, InvalidInputError
from cvx.memory.backend import Backend, Identity
from cvx.memory.sound import named, sound
from cvx.recall.render import entries_of
from cvx.store.packing import metadata_of
from cvx.store.spaces import visible_sql
from cvx.types import DEFAULT_NAMESPACE, Edge, Event, Vector
from cvx.validation import check_reward


def add_events(
    backend: Backend,
    events: Iterable[Event],
    aliases: Sequence[Sequence[str]] = (),
    *,
    again: bool = False,
) -> list[int]:
    """Store events, all of them or none; see ``Memory.add_many``."""
    if not isinstance(events, Iterable):
        raise InvalidInputError(f"events are {events!r}: give Events")
    listed = []
    for at, event in enumerate(events):
        with named(at):
            listed.append(sound(event))
    if aliases and len(aliases) != len(listed):
        raise InvalidInputError(
            f"{len(aliases)} lists of aliases for {len(listed)} events: give one for each"
        )
    words_of = list(aliases) or [[] for _ in listed]
    known = [None if again else _known(backend, event) for event in listed]
    new = [event for event, old in zip(listed, known, strict=True) if old is None]
    further = [words for words, old in zip(words_of, known, strict=True) if old is None]
    missing = [event.text for event in new if event.vector is None]
    others = [words for each in further for words in each]
    made = iter(backend.embed([*missing, *others]))
    whole = []
    for at, event in enumerate(listed):
        if known[at] is None:
            with named(at):
                own = next(made) if event.vector is None else backend.checked(event.vector)
            whole.append(_new(event, own))
    if whole:
        with backend.writing() as write:
            ids = write.add_events(whole, nodes=write.take_nodes(len(whole)))
            for event_id, words in zip(ids, further, strict=True):
                if words:
                    write.add_aliases(event_id, [(word, next(made)) for word in words])
        backend.store.snapshot_if_grown()
        given = iter(ids)
    return [next(given) if old is None else old for old in known]


def of_namespace(events: Iterable[Event], namespace: str, identity: Identity) -> Iterator[Event]:
    """Yield events, those of the default namespace as of another one.

    Raises
    ------
    NamespaceError
        An event names another namespace than the memory is bound to.
    """
    for event in events:
        mine = isinstance(event, Event)
        if mine and event.namespace == DEFAULT_NAMESPACE:
            event = replace(event, namespace=namespace)
        elif mine:
            identity.named(event.namespace)
        yield event


def _known(backend: Backend, event: Event) -> int | None:
    """Return the event that a text was handed out from, while it can still be recalled."""
    if not event.text.strip():
        return None
    told = [event.text, *entries_of(event.text)]
    known = [one for text in told for one in backend.told(event.namespace, text)]
    if len(told) > 1 and not known:
        # Of an earlier session, or another process: a block says by its form what it is.
        condition, values = visible_sql(event.namespace, ())
        known = [
            row[0]
            for text in told[1:]
            for row in backend.record.query(
                f"SELECT event_id FROM events WHERE text = ? AND {condition}", (text, *values)
            )
        ]
    active = backend.record.query(
        "SELECT event_id FROM events WHERE state = 'active'"
        " AND event_id IN (SELECT value FROM json_each(?))",
        (str(known),),
    )
    return next((one for one in known if (one,) in active), None)


def _new(event: Event, vector: Vector) -> Event:
    # Copying a dataclass costs as much as storing it: most events bring all they need.
    if event.vector is vector and event.event_id is None and event.episode_id is None:
        return event
    return replace(event, vector=vector, event_id=None, episode_id=None)


def change_event(
    backend: Backend,
    event_id: int,
    *,
    metadata: Mapping[str, Any] | None = None,
    reward: float | None = None,
    aliases: Sequence[str] = (),
    state: str | None = None,
) -> None:
    """Change what is given of an event; see ``Memory.update``."""
    value = None if reward is None else check_reward(reward)
    vectors = backend.embed(aliases)
    with backend.record.transaction() as write:
        if metadata is not None:
            write.set_columns("metadata", {event_id: metadata_of(metadata)})
        if value is not None:
            write.set_rewards([(backend.node_and_time(event_id)[0], value)])
        if aliases:
            backend.node_and_time(event_id)
            write.add_aliases(event_id, zip(aliases, vectors, strict=True))
        if state is not None:
            write.set_columns("state", {event_id: state})


def link_events(backend: Backend, link: Link, effect_first: str) -> Edge:
    """Store a link between two events; see ``Memory.link``."""
    if link.kind == "temporal":
        raise InvalidEdgeError("temporal edges are implied by time: give another kind")
    known_order(effect_first)
    kinds = backend.index.edge_kinds
    with backend.record.transaction() as write:
        (edge,) = store_links(write, [link], kinds, effect_first=effect_first)
    return edge


def declare_edge_kind(backend: Backend, name: str) -> None:
    """Make a name an edge kind of this memory, for good; see ``Admin.declare_edge_kind``."""
    if name in backend.index.edge_kinds:
        return
    # The index knows which names it takes; this one is thrown away.
    backend.store.fresh().declare_edge_kind(name)
    with backend.record.transaction() as write:
        kinds = json.loads(backend.record.meta("edge_kinds") or "[]")
        write.set_meta("edge_kinds", json.dumps([*kinds, name]))
        write.journal("kind", [name])
