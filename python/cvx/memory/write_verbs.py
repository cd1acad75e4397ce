"""``memory.add``, ``update``, ``link``, ``forget`` and ``erase``: checks and stores changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cvx.arguments import are_several, wrong
from cvx.causal.graph_data import CAUSES, causal_kinds, known_order, link_of, store_links
from cvx.cue import dense_text, lexical_text
from cvx.dates import relative_dates, when
from cvx.embed.cache import CachedEmbedder, is_cache
from cvx.errors import (
    DuplicateKeyError,
    EchoWarning,
    InvalidInputError,
    UnknownError,
    warn,
)
from cvx.extras import needs
from cvx.memory.resources import Resources, digest
from cvx.render.block import entries_of
from cvx.store import Writer
from cvx.store.files import regular
from cvx.store.namespaces import visible_sql
from cvx.store.prompt_injection import ORDER, tags_with_mark
from cvx.store.rows import changed_columns
from cvx.types import Edge, Episode, Event, Vector
from cvx.validation import check_event, check_reward

if TYPE_CHECKING:
    from cvx.store.erase import Erased


_LONG = 300
"""Characters from which the same text, with nothing else said, is taken for a copy of what was
recalled: what is shorter may well have happened again."""
_SAYS_NOTHING = frozenset(
    ("text", "timestamp", "namespace", "episode_id", "event_id", "node", "recorded", "version",
     "history")
)  # fmt: skip
"""Fields of an event that are looked at otherwise, or that the store gives."""


class Added(NamedTuple):
    """Ids of the events that were added, and of those among them that are echoes.

    Attributes
    ----------
    ids : list of int
        In the order of what was given.
    echoes : list of int
        Events that said before what was given: nothing was stored of it.
    """

    ids: list[int]
    echoes: list[int]

    def warned(self) -> list[int]:
        """Return the ids, after a warning where something was not stored."""
        if self.echoes:
            warn(
                f"not stored: what event {self.echoes[0]} says was recalled from this memory and "
                "came back with nothing of its own; give again=True to store it once more",
                EchoWarning,
            )
        return self.ids


def add_events(
    shared: Resources,
    events: Sequence[Event],
    aliases: Sequence[Sequence[str]] = (),
    *,
    again: bool = False,
    placed: Sequence[bool] = (),
) -> Added:
    """Store events, all of them or none; see ``Memory.add_many``.

    ``placed`` says of each whether its time was given.
    """
    listed = []
    for at, event in enumerate(events):
        with named(at if len(events) > 1 else None):
            listed.append(sound(event))
            if event.vector is None:
                _findable(event.text)
    if aliases and len(aliases) != len(listed):
        raise InvalidInputError(
            f"{len(aliases)} lists of aliases for {len(listed)} events: give one for each"
        )
    words_of = list(aliases) or [[] for _ in listed]
    known = [
        None if again or words_of[place] else _echoed(shared, event, bool(placed) and placed[place])
        for place, event in enumerate(listed)
    ]
    called = _called(shared, listed, known, placed)
    new = [place for place, old in enumerate(known) if old is None and place not in called]
    further = {place: words_of[place] for place in [*new, *called]}
    missing = [listed[place].text for place in further if listed[place].vector is None]
    made = iter(shared.embed([*missing, *(one for each in further.values() for one in each)]))
    whole: dict[int, Event] = {}
    for place in further:
        event = listed[place]
        with named(place if len(listed) > 1 else None):
            own = next(made) if event.vector is None else shared.checked(event.vector)
        whole[place] = _new(event, own)
    ids = dict(called)
    if whole:
        with shared.writing() as write:
            # Others may have added some of the keys meanwhile.
            ids = dict(called := _called(shared, listed, known, placed))
            new = [place for place in further if place not in called]
            given = write.add_events((whole[n] for n in new), nodes=write.take_nodes(len(new)))
            ids.update(zip(new, given, strict=True))
            for place, number in called.items():
                with named(place if len(listed) > 1 else None):
                    _apply(shared, write, number, Change.by(whole[place]), revive=True)
            for place, words in further.items():
                if words:
                    write.add_aliases(ids[place], [(word, next(made)) for word in words])
        shared.store.snapshot_if_grown()
    echoes = [old for old in known if old is not None]
    return Added([ids[place] if old is None else old for place, old in enumerate(known)], echoes)


def _called(
    shared: Resources,
    listed: Sequence[Event],
    known: Sequence[int | None],
    placed: Sequence[bool],
) -> dict[int, int]:
    """Return the events that have the keys of some, by their places: these are new versions.

    Raises
    ------
    DuplicateKeyError
        Another source wrote the event; or two of those given have one key.
    InvalidInputError
        It is said to be older than what stands, and says something else.
    """
    found: dict[int, int] = {}
    seen: set[tuple[str, str]] = set()
    for place, event in enumerate(listed):
        if event.key is None or known[place] is not None:
            continue
        with named(place if len(listed) > 1 else None):
            if (event.namespace, event.key) in seen:
                raise DuplicateKeyError(
                    f"{event.key!r} is the key of another of them: add them one after the other to "
                    "make versions of one event, or give each a key of its own"
                )
            seen.add((event.namespace, event.key))
            number = shared.record.event_of_key(event.key, event.namespace)
            if number is not None:
                before = shared.record.events([number])[0]
                _check_same(before, event)
                if placed and placed[place]:
                    _check_newer(before, event)
                found[place] = number
    return found


def _check_same(before: Event, event: Event) -> None:
    if before.source != event.source:
        raise DuplicateKeyError(
            f"{event.key!r} is the key of event {before.id} of source {before.source!r}, which "
            f"{event.source!r} cannot overwrite: give another key, or update the event"
        )
    for name in ("visibility", "entity"):
        was, given = getattr(before, name), getattr(event, name)
        if was != given:
            raise InvalidInputError(
                f"{name} is {given!r}, but event {before.id}, which has the key {event.key!r}, has "
                f"{was!r}: give that, or another key"
            )


def _check_newer(before: Event, event: Event) -> None:
    if event.text != before.text and event.timestamp < before.timestamp:
        raise InvalidInputError(
            f"timestamp is {when(event.timestamp)}, but what stands under the key {event.key!r} is "
            f"of {when(before.timestamp)}, and an older statement does not replace a newer one: "
            "add older ones first, or without the key; a wrong time is mended by update"
        )


def says_the_same(shared: Resources, known: Event, text: Any, vector: Any) -> bool:
    """Whether an event that is added to a key says what the one that stands there says."""
    if text != known.text or known.vector is None:
        return False
    return vector is None or np.array_equal(shared.checked(vector), known.vector)


def rows_of(items: Any) -> Iterable[Any]:
    """Return the items of an iterable, or the rows of a frame as mappings.

    Raises
    ------
    InvalidInputError
        Something else.
    """
    if hasattr(items, "iter_rows"):
        return list(items.iter_rows(named=True))
    if hasattr(items, "to_pylist"):
        return list(items.to_pylist())
    if hasattr(items, "to_dict") and hasattr(items, "columns"):
        # Pandas says NaN of what is missing, which is not equal to itself.
        return [
            {
                name: value
                for name, value in row.items()
                if not isinstance(value, float) or value == value
            }
            for row in items.to_dict(orient="records")
        ]
    if hasattr(items, "__arrow_c_stream__"):
        with needs("frames"):
            import polars as pl

        return list(pl.DataFrame(items).iter_rows(named=True))
    if isinstance(items, str | Mapping | Event | Episode) or not are_several(items):
        wanted = "a list of Events, Episodes, mappings or texts, or a frame"
        raise wrong("items", items, wanted)
    return items


def _echoed(shared: Resources, event: Event, placed: bool) -> int | None:
    """Return the event that a text was recalled from, where it comes back as nothing new.

    That is a rendered block, all of whose memories are known; or a long text that was handed out
    word for word, and with which nothing else is said.
    """
    if not event.text.strip() or event.key is not None:
        return None
    handed_out = shared.told(event.namespace, event.text) or _rendered_from(shared, event)
    if not handed_out:
        return None
    condition, values = visible_sql(event.namespace, ())
    active = shared.record.query(
        f"SELECT event_id FROM events WHERE state = 'active' AND {condition}"
        " AND event_id IN (SELECT value FROM json_each(?))",
        (*values, str(handed_out)),
    )
    left = [one for one in handed_out if (one,) in active]
    own = digest(event.namespace, event.text)
    bare = not placed and len(event.text) >= _LONG and _says_nothing_else(event)
    found = {one.id: one for one in shared.record.events(left)}
    for one in left:
        # The words of a memory may be said again; those of a block are nobody's.
        if bare or digest(event.namespace, found[one].text) != own:
            return one
    return None


def _rendered_from(shared: Resources, event: Event) -> list[int]:
    """Return the events that a block of an earlier session, or another process, shows.

    It says by its form what it is; where one of its memories is not known, it is more than that.
    """
    shown: list[int] = []
    condition, values = visible_sql(event.namespace, ())
    for texts in entries_of(event.text):
        found = shared.record.query(
            "SELECT event_id FROM events WHERE text IN (SELECT value FROM json_each(?))"
            f" AND {condition} ORDER BY state = 'active' DESC, event_id",
            (json.dumps(texts), *values),
        )
        if not found:
            return []
        shown += [row[0] for row in found]
    return shown


def _says_nothing_else(event: Event) -> bool:
    """Whether an event says no more than its text: not who, nor of what kind, nor whence."""
    plain = replace(Event(), tags=tuple(tag for tag in event.tags if tag == ORDER))
    return event.vector is None and all(
        getattr(event, name) == getattr(plain, name)
        for name in Event.__slots__
        if name not in _SAYS_NOTHING
    )


def _new(event: Event, vector: Vector) -> Event:
    # Copying a dataclass costs as much as storing it: most events bring all they need.
    if event.vector is vector and event.event_id is None and event.episode_id is None:
        return event
    return replace(event, vector=vector, event_id=None, episode_id=None)


@dataclass(frozen=True, slots=True)
class Change:
    """A change to an event; fields that are None stay.

    Parameters
    ----------
    text, vector, kind, action, timestamp, tags, salience, trust, reward, state
        As of ``Event``.
    metadata : mapping, optional
        Is merged into what there is; a value None takes its key away.
    """

    text: str | None = None
    vector: Vector | None = None
    kind: str | None = None
    action: str | None = None
    timestamp: int | None = None
    tags: tuple[str, ...] | None = None
    salience: float | None = None
    trust: float | None = None
    reward: float | None = None
    state: str | None = None
    metadata: Mapping[str, Any] | None = None

    @classmethod
    def by(cls, event: Event) -> Change:
        """Return the change to an event of the same key; what is as of no event stays."""
        plain = Event(timestamp=event.timestamp)
        given = {
            name: getattr(event, name)
            for name in cls.__slots__
            if name == "vector" or getattr(event, name) != getattr(plain, name)
        }
        return cls(**{**given, "timestamp": event.timestamp})

    def of(self, event: Event) -> Event:
        """Return the changed event."""
        others = {
            name: value
            for name in self.__slots__
            if name != "metadata" and (value := getattr(self, name)) is not None
        }
        if self.text not in (None, event.text) and self.tags is None:
            # What reads like an order is marked by its text, each time anew.
            others["tags"] = tuple(tag for tag in event.tags if tag != ORDER)
        metadata = {**event.metadata, **(self.metadata or {})}
        for key, value in (self.metadata or {}).items():
            if value is None:
                del metadata[key]
        return sound(replace(event, **others, metadata=metadata))


def change_event(
    shared: Resources, event_id: int, change: Change, aliases: Sequence[str] = ()
) -> None:
    """Change what is given of an event; see ``Memory.update``."""
    if change.vector is not None:
        change = replace(change, vector=shared.checked(change.vector))
    elif change.text is not None:
        _findable(change.text)
        change = replace(change, vector=shared.embed([change.text])[0])
    vectors, now = shared.embed(aliases), shared.time(None)
    with shared.writing() as write:
        for before in shared.record.events([event_id]):
            if change.timestamp is None and _is_news(shared, before, change.text):
                change = replace(change, timestamp=now)
        _apply(shared, write, event_id, change)
        if aliases:
            shared.node_of(event_id)
            write.add_aliases(event_id, zip(aliases, vectors, strict=True))


def _is_news(shared: Resources, before: Event, text: str | None) -> bool:
    """Whether another text of an event tells what is so now, and does not mend what was noted.

    Under a key stands what is so. Elsewhere words such as "yesterday" are of the day on which
    they are written, where the older text has none such.
    """
    if text in (None, before.text):
        return False
    if before.key is not None or shared.clock != "utc":
        return before.key is not None
    days = [
        {one.words.lower() for one in relative_dates(said, before.timestamp)}
        for said in (str(text), before.text)
    ]
    return not days[0] <= days[1]


def _findable(text: str) -> None:
    """Raise that a text has no words, where they are all that it could be found by."""
    if isinstance(text, str) and not text.strip():
        raise InvalidInputError(f"text is {text!r:.60}: give words, or a vector to find it by")


def _apply(
    shared: Resources, write: Writer, event_id: int, change: Change, *, revive: bool = False
) -> None:
    found = shared.record.events([event_id])
    if not found:
        raise UnknownError(f"there is no event {event_id}: it was erased or never given")
    before = found[0]
    if revive and before.state == "archived":
        change = replace(change, state="active")
    if change.text == before.text and before.vector is not None and revive:
        # An embedder may answer otherwise by a hair: the same text is no new version.
        change = replace(change, vector=before.vector)
    after = change.of(before)
    if change.reward is not None:
        reward = check_reward(change.reward)
        write.set_rewards([(shared.node_of(event_id), reward)])
    if change.state is not None:
        write.set_columns("state", {event_id: change.state})
    columns = changed_columns(before, after)
    if columns.keys() - {"metadata"}:
        if before.episode_id is not None:
            raise InvalidInputError(
                f"event {event_id} is a step of episode {before.episode_id}, which stays as it "
                "was: add an event that says what is so now"
            )
        write.change_event(event_id, columns)
    elif columns:
        write.set_columns("metadata", {event_id: columns["metadata"]})


def link_events(shared: Resources, link: Edge, effect_first: str) -> Edge:
    """Store a link between two events; see ``Memory.link``."""
    if link.kind == "temporal":
        raise InvalidInputError("temporal edges are implied by time: give another kind")
    known_order(effect_first)
    kinds = shared.index.edge_kinds
    if link.kind not in kinds:
        raise UnknownError(
            f"there is no edge kind {link.kind!r}: declare it with admin.declare_edge_kind, give "
            f"one of {', '.join(causal_kinds(kinds))}; a reason in words is given as why="
        )
    may_circle = effect_first != "refuse" or link.kind not in CAUSES
    if all(_noted_as_it_happened(shared, end) for end in (link.cause, link.effect)):
        # Neither was given a time: the order of telling is not the order of happening.
        effect_first = "allow"
    with shared.record.transaction() as write:
        told_anew = _linked(write, link)
        (edge,) = store_links(write, [link], kinds, effect_first=effect_first)
        if not (may_circle or told_anew):
            _check_no_circle(write, link)
    return replace(link_of(edge, link.cause, link.effect), recorded=write.recorded)


def _linked(write: Writer, link: Edge) -> bool:
    """Return whether the link is there already, so that it is only told anew."""
    found = write.connection.execute(
        "SELECT 1 FROM links WHERE kind = ?3"
        " AND from_node = (SELECT node FROM events WHERE event_id = ?1)"
        " AND to_node = (SELECT node FROM events WHERE event_id = ?2)",
        (link.cause, link.effect, link.kind),
    )
    return found.fetchone() is not None


def _check_no_circle(write: Writer, link: Edge) -> None:
    """Refuse a link whose effect led to its cause already: neither story would be true."""
    found = write.connection.execute(
        "WITH RECURSIVE onward(node) AS ("
        " SELECT node FROM events WHERE event_id = ?1 AND node IS NOT NULL"
        " UNION SELECT to_node FROM onward JOIN links ON from_node = node"
        " WHERE kind IN (SELECT value FROM json_each(?3)))"
        " SELECT 1 FROM onward WHERE node = (SELECT node FROM events WHERE event_id = ?2) LIMIT 1",
        (link.effect, link.cause, json.dumps(sorted(CAUSES))),
    ).fetchone()
    if found is not None:
        raise InvalidInputError(
            f"event {link.effect} led to event {link.cause} already, by what is linked, and cannot "
            "be its effect too: take the other link back with causes.reject, or give "
            "effect_first='allow'"
        )


def _noted_as_it_happened(shared: Resources, event: str | int) -> bool:
    """Whether an event's time is that of its writing, as it is where none was given."""
    if shared.clock != "utc":
        return False
    row = shared.record.query(
        "SELECT recorded - timestamp BETWEEN 0 AND 1000000 FROM events WHERE event_id = ?", (event,)
    )
    return bool(row and row[0][0])


def declare_edge_kind(shared: Resources, name: str) -> None:
    """Make a name an edge kind of this memory, for good; see ``Admin.declare_edge_kind``."""
    if name in shared.index.edge_kinds:
        return
    # The index knows which names it takes; this one is thrown away.
    shared.store.fresh().declare_edge_kind(name)
    with shared.record.transaction() as write:
        write.add_kinds([name])


def set_state(shared: Resources, events: Iterable[int], state: str) -> None:
    """Archive events, or make them active again; all of them or none.

    Raises
    ------
    UnknownError
        One of them does not exist; nothing changes.
    """
    with shared.record.transaction() as write:
        write.set_columns("state", dict.fromkeys(events, state))


def erase_events(shared: Resources, listed: list[int]) -> Erased:
    """Erase events from every file and cache; see ``Memory.erase``."""
    from cvx.store.erase import check_erasable, erase

    check_erasable(shared.record, listed)
    if listed:
        # What was recalled and is not written down yet is searched with the rest.
        shared.flush()
        # Before the record: a death in between leaves texts that can be erased again.
        _clean_caches(shared, listed)
    return erase(shared.store, listed)


def _clean_caches(shared: Resources, events: list[int]) -> None:
    own = getattr(shared.embedder, "forget", None)
    files = [] if shared.folder is None else sorted(shared.folder.iterdir())
    beside = [path for path in files if regular(path) and is_cache(path)]
    if own is None and not beside:
        return
    from cvx.store.erase import told_of

    texts, cues = told_of(shared.record, events)
    texts += (said for cue in cues for said in (dense_text(cue), lexical_text(cue)))
    if own is not None:
        own(texts)
    for path in beside:
        CachedEmbedder(shared.embedder, path).forget(texts)


@contextmanager
def named(place: int | None) -> Iterator[None]:
    """Add the place in a batch to errors about one of several events."""
    try:
        yield
    except InvalidInputError as error:
        if place is None:
            raise
        raise type(error)(f"event {place} of those given: {error}") from error


def sound(event: Event) -> Event:
    """Return an event after checking every field for storage; tags prompt injection."""
    check_event(event)
    tags = tags_with_mark(event.tags, event.text)
    return event if tags == event.tags else replace(event, tags=tags)
