"""Public events of a shard, copied to the other shards so that all can read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.store import Record
from cvx.store.rows import AMONG, listed
from cvx.types import Event

ORIGIN = "cvx.id"
"""In the metadata of a copy of a public event: its id where it was written."""
IS_COPY = f"(metadata LIKE '%\"{ORIGIN}\"%' AND json_type(metadata, '$.\"{ORIGIN}\"') IS 'integer')"
"""Of a row of events, whether it is such a copy."""


class Public(NamedTuple):
    """Public events of a shard that changed.

    Attributes
    ----------
    tail : int
        The end of the journal that this goes up to.
    events : list of (Event, list of str)
        Those that changed, as they are now, with their aliases.
    whole : list of int or None
        The ids of everything that others may see, where something was erased; None where nothing
        was.
    """

    tail: int
    events: list[tuple[Event, list[str]]]
    whole: list[int] | None


_SEEN = f"visibility <> 'private' AND recallable AND NOT {IS_COPY}"


def origin_of(event: Event) -> int | None:
    """Return the id where a copy of a public event was written; None for one that is no copy."""
    origin = event.metadata.get(ORIGIN)
    return origin if type(origin) is int else None


def check_not_reserved(given: object) -> None:
    """Refuse metadata that claim to be those of a copy: nobody but a cluster writes these.

    Raises
    ------
    InvalidInputError
        One of the mappings or events, however deep in lists, has the reserved key.
    """
    if isinstance(given, Event):
        given = given.metadata
    if isinstance(given, Mapping):
        if ORIGIN in given:
            raise InvalidInputError(
                f"metadata has {ORIGIN!r} ({given[ORIGIN]!r}), a key that a cluster keeps for its "
                "copies: give it another name"
            )
        given = [*given.values()]
    if isinstance(given, list | tuple):
        for one in given:
            check_not_reserved(one)


def public_since(record: Record, seq: int, gone: Collection[str] = ()) -> Public:
    """Return what others may see of a record and changed after a number of its journal.

    ``gone`` are namespaces that are on another shard by now.
    """
    tail = record.tail().seq
    if tail == seq:
        return Public(tail, [], None)
    changes = record.journal(seq) if seq and record.keeps_changes_after(seq) else None
    erased = changes is None or any(op == "erase" for _, _, op, _ in changes)
    touched: set[int] = set()
    for _, _, op, body in changes or ():
        if op == "insert":
            nodes = [node for first, last in body for node in range(first, last + 1)]
            touched.update(record.events_of_nodes(nodes).values())
        elif op in ("state", "recallable", "metadata", "version", "step_kind"):
            touched.update(event for event, *_ in body)
        elif op == "reward":
            touched.update(record.events_of_nodes([node for node, *_ in body]).values())
    sql = (
        f"SELECT event_id FROM events WHERE {_SEEN}"
        " AND namespace NOT IN (SELECT value FROM json_each(?2))"
    )
    names = json.dumps(sorted(gone))
    whole = [row[0] for row in record.query(sql, ("[]", names))] if erased else None
    if changes is None:
        ids = whole or []
    else:
        found = record.query(f"{sql} AND event_id {AMONG}", (listed(touched), names))
        ids = [row[0] for row in found]
    words: dict[int, list[str]] = {}
    for number, text in record.query(
        f"SELECT event_id, text FROM aliases WHERE event_id {AMONG} ORDER BY node", (listed(ids),)
    ):
        words.setdefault(number, []).append(text)
    return Public(tail, [(e, words.get(e.id, [])) for e in record.events(ids)], whole)


def take_public(
    memory: Memory,
    origins: dict[int, int],
    public: Public,
    is_of: Callable[[int, str], bool],
) -> None:
    """Store copies of another shard's public events as they are now.

    Parameters
    ----------
    memory : Memory
        Of this shard.
    origins : dict of int to int
        From the id where an event was written to the id of its copy here; is kept up.
    public : Public
        What the other shard has.
    is_of : callable
        Tells of an id and a namespace whether the other shard has it.
    """
    new: list[Event] = []
    aliases: list[list[str]] = []
    record = memory.record
    # Synced once, however many there are.
    with record.together():
        for event, words in public.events:
            number = event.id
            copy = replace(
                event,
                event_id=None,
                node=None,
                recorded=None,
                episode_id=None,
                metadata={**event.metadata, ORIGIN: number},
                state="active",
            )
            if number in origins:
                _renew(memory, origins[number], event, copy.metadata, words)
            elif event.state == "active" and not record.events([number]):
                new.append(copy)
                aliases.append(words)
        ids = memory.add_many(new, aliases=aliases if any(aliases) else None, again=True)
    origins.update((int(e.metadata[ORIGIN]), n) for e, n in zip(new, ids.tolist(), strict=True))
    if public.whole is not None:
        left = {*public.whole}
        gone = [
            event
            for event in record.events([n for origin, n in origins.items() if origin not in left])
            if is_of(int(event.metadata[ORIGIN]), event.namespace)
        ]
        if gone:
            memory.erase(gone)
            for event in gone:
                del origins[int(event.metadata[ORIGIN])]


def _renew(
    memory: Memory, local: int, event: Event, metadata: Mapping[str, Any], aliases: list[str]
) -> None:
    (known,) = memory.record.events([local])
    changed: dict[str, Any] = {
        name: getattr(event, name)
        for name in ("text", "tags", "salience", "trust", "reward", "state")
        if getattr(event, name) != getattr(known, name)
    }
    if "text" in changed:
        changed["vector"] = event.vector
    dropped = dict.fromkeys(known.metadata.keys() - metadata.keys())
    if dict(metadata) != dict(known.metadata):
        changed["metadata"] = {**metadata, **dropped}
    # Aliases are only ever added, so that those beyond what is here are the new ones.
    sql = "SELECT count(*) FROM aliases WHERE event_id = ?"
    if further := aliases[memory.record.query(sql, (local,))[0][0] :]:
        changed["aliases"] = further
    if changed:
        memory.update(local, **changed)
