"""One namespace of a store by itself, for a shard of its own; what others may see of a shard."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cvx.cluster.shipping import Change
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.store import Record, fulltext, rows
from cvx.store.database import connect
from cvx.store.history import FIRST_KEPT
from cvx.store.rows import AMONG, listed, whose_use
from cvx.types import Event

ORIGIN = "cvx.id"
"""In the metadata of a copy of a public event: its id where it was written."""
IS_COPY = f"(metadata LIKE '%\"{ORIGIN}\"%' AND json_type(metadata, '$.\"{ORIGIN}\"') IS 'integer')"
"""Of a row of events, whether it is such a copy."""
_OWN = "SELECT event_id FROM events WHERE namespace = ?1"
_NODES = (
    "SELECT node FROM events WHERE namespace = ?1 AND node IS NOT NULL"
    f" UNION ALL SELECT node FROM aliases WHERE event_id IN ({_OWN})"
)
_AT = {
    table: {name: place for place, name in enumerate(names)}
    for table, names in rows.COLUMNS.items()
}


def carve(path: Path, namespace: str) -> None:
    """Leave nothing in a copy of a record but what is of a namespace.

    Ids and times stay. Of the journal its end stays: what was overwritten before is gone, as when
    a history is shortened.
    """
    with closing(connect(path)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN")
        db.execute(f"CREATE TEMP TABLE own AS {_NODES}", (namespace,))
        for statement in (
            "DELETE FROM links WHERE from_node NOT IN temp.own OR to_node NOT IN temp.own",
            "DELETE FROM decays WHERE node NOT IN temp.own",
            "DELETE FROM aliases WHERE node NOT IN temp.own",
            "DELETE FROM journal WHERE seq < (SELECT max(seq) FROM journal)",
        ):
            db.execute(statement)
        own = _Own(db, namespace)
        for table in ("usage", "decisions", "model_state"):
            names = ", ".join(rows.COLUMNS[table])
            key = rows.KEYS[table][0]
            gone = [
                (row[0],)
                for row in db.execute(f"SELECT {names} FROM {table}").fetchall()
                if not own.has(table, row)
            ]
            db.executemany(f"DELETE FROM {table} WHERE {key} = ?", gone)
        db.execute("DELETE FROM events WHERE namespace <> ?", (namespace,))
        db.execute("DELETE FROM episodes WHERE namespace <> ?", (namespace,))
        db.execute(
            "INSERT OR REPLACE INTO meta SELECT ?, max(seq) FROM journal HAVING max(seq) NOTNULL",
            (FIRST_KEPT,),
        )
        fulltext.refill(db)
        db.execute("COMMIT")
        db.execute("VACUUM")


class _Own:
    """Says of rows whether they are of a namespace, by a record that has all of them."""

    def __init__(self, db: sqlite3.Connection, namespace: str) -> None:
        self._db, self._namespace = db, namespace

    def _event(self, number: int) -> bool:
        return self._is("SELECT namespace FROM events WHERE event_id = ?", number)

    def _node(self, node: int) -> bool:
        return self._is("SELECT namespace FROM events WHERE node = ?", node) or self._is(
            "SELECT namespace FROM events JOIN aliases USING (event_id) WHERE aliases.node = ?",
            node,
        )

    def _is(self, sql: str, number: int) -> bool:
        found = self._db.execute(sql, (number,)).fetchone()
        return found is not None and found[0] == self._namespace

    def has(self, table: str, row: Sequence[Any]) -> bool:
        """Return whether a row is of the namespace, or of the record itself."""
        told = {name: row[place] for name, place in _AT.get(table, {}).items()}
        match table:
            case "events" | "episodes":
                return bool(told["namespace"] == self._namespace)
            case "aliases":
                return self._event(told["event_id"])
            case "links":
                return self._node(told["from_node"]) and self._node(told["to_node"])
            case "decays":
                return self._node(told["node"])
            case "decisions":
                return bool(json.loads(told["record"]).get("namespace") == self._namespace)
            case "model_state":
                return ":" not in told["name"] or told["name"].endswith(f":{self._namespace}")
            case "usage":
                return self._counts(json.loads(told["context"]))
        return True

    def _counts(self, context: Any) -> bool:
        match whose_use(context):
            case ["event", int(number)], _, _:
                return self._event(number)
            case ["node", int(node)], _, _:
                return self._node(node)
            case _, readers, _:
                return bool(readers) and readers.startswith(self._namespace)
        return False


def of_namespace(record: Record, change: Change, namespace: str) -> Change:
    """Return what of a change is of a namespace; the journal stays whole, since it is a chain."""
    with record.database.borrowed() as db:
        own = _Own(db, namespace)
        put = {
            table: kept
            for table, some in change.put.items()
            if (kept := [row for row in some if own.has(table, row)])
        }
    return Change(put, change.gone)


class Public(NamedTuple):
    """What others may see of a shard, and changed.

    Attributes
    ----------
    tail : int
        The end of the journal that this goes up to.
    events : list of (Event, list of str)
        As they are now, with their aliases.
    whole : list of int or None
        Everything that others may see, where something was erased; None where nothing was.
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
    sql = f"SELECT event_id FROM events WHERE {_SEEN}"
    if erased:
        found = record.query(sql)
    else:
        found = record.query(f"{sql} AND event_id {AMONG}", (listed(touched),)) if touched else []
    ids = [row[0] for row in found]
    words: dict[int, list[str]] = {}
    for number, text in record.query(
        f"SELECT event_id, text FROM aliases WHERE event_id {AMONG} ORDER BY node", (listed(ids),)
    ):
        words.setdefault(number, []).append(text)
    events = [event for event in record.events(ids) if event.namespace not in gone]
    return Public(
        tail, [(e, words.get(e.id, [])) for e in events], [e.id for e in events] if erased else None
    )


def take_public(
    memory: Memory,
    origins: dict[int, int],
    public: Public,
    is_of: Callable[[int, str], bool],
) -> None:
    """Make the copies of another shard's public events what those are now.

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
            _renew(memory, origins[number], event, copy.metadata)
        elif event.state == "active" and not record.events([number]):
            new.append(copy)
            aliases.append(words)
    if new:
        ids = memory.add_many(new, aliases=aliases if any(aliases) else None, again=True)
        origins.update((int(e.metadata[ORIGIN]), n) for e, n in zip(new, ids.tolist(), strict=True))
    if public.whole is not None:
        left = {*public.whole}
        there = [local for origin, local in origins.items() if origin not in left]
        gone = [
            event
            for event in record.events(there)
            if is_of(int(event.metadata[ORIGIN]), event.namespace)
        ]
        if gone:
            memory.erase(gone)
            for event in gone:
                del origins[int(event.metadata[ORIGIN])]


def _renew(memory: Memory, local: int, event: Event, metadata: Mapping[str, Any]) -> None:
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
    if changed:
        memory.update(local, **changed)
