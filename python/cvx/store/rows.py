"""Rows of the tables: columns, checksums, and conversion from and to events and episodes."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cvx.index.json_text import compact_json, row_checksums
from cvx.types import ENTITY_KEY, UNNAMED_ENTITIES, Decision, Episode, Event, Vector, entity_name
from cvx.validation import check_cue, check_event, optional_text, storable_metadata, storable_text

T = TypeVar("T")

COLUMNS: dict[str, tuple[str, ...]] = {
    "episodes": (
        "episode_id", "entity", "namespace", "kind", "goal", "task_type", "reward", "metadata",
        "recorded",
    ),
    "events": (
        "event_id", "timestamp", "text", "embedding", "entity", "node", "namespace", "kind",
        "action", "metadata", "reward", "recallable", "episode", "tags", "recorded", "source",
        "trust", "visibility", "salience", "state", "key",
    ),
    "aliases": ("node", "event_id", "text", "embedding", "recorded"),
    "links": ("from_node", "to_node", "kind", "weight", "why", "evidence", "recorded"),
    "usage": ("context", "retrieved", "followed", "helped", "last_used"),
    "decays": ("episode", "node", "before", "after", "recorded"),
    "decisions": (
        "decision_id", "episode", "cue", "hits", "action_scores", "rendered", "action",
        "followed", "outcome", "recorded", "record",
    ),
    "model_state": ("name", "value", "recorded"),
    "journal": ("seq", "recorded", "op", "body", "chain"),
}  # fmt: skip
"""In the order of the table, without the last column, ``crc``; no table refers to a later one."""

KEYS: dict[str, tuple[str, ...]] = {
    "episodes": ("episode_id",),
    "events": ("event_id",),
    "links": ("from_node", "to_node", "kind"),
    "usage": ("context",),
    "decays": ("episode", "node"),
    "decisions": ("decision_id",),
    "model_state": ("name",),
    "aliases": ("node",),
    "journal": ("seq",),
}

OPEN, DISCARDED = "open ", "discarded "
"""What stands before the kind of an episode that has no outcome yet, or never gets one."""
OWN_ENTITIES = 2 * UNNAMED_ENTITIES
"""Entities that nobody named are given numbers below this one; those of the user may lie beyond."""
MOST_ID = 2**53
"""The bound of ids and counts: so far every number is exact in JSON, frames and other languages."""


def row_crc(*values: object) -> int:
    """Return the checksum of a row's values, in the order of its columns.

    Examples
    --------
    >>> row_crc(1, "a", None) != row_crc(1, "b", None)
    True
    """
    # ASCII JSON is the same on every version of Python, which repr() is not.
    return row_crcs([values])[0]


def row_crcs(some: Sequence[tuple[object, ...]]) -> list[int]:
    """Return the checksums of several rows, see ``row_crc``."""
    return row_checksums([(*row, None) for row in some])


def whole(row: tuple[object, ...]) -> bool:
    """Return whether a row matches its checksum."""
    try:
        return row_checksums([row])[0] == row[-1]
    except (TypeError, ValueError):
        # A value that no row can hold.
        return False


def whole_rows(some: Sequence[tuple[Any, ...]]) -> Iterator[bool]:
    """Return of each row whether it matches its checksum."""
    try:
        return (told == row[-1] for told, row in zip(row_checksums(some), some, strict=True))
    except (TypeError, ValueError):
        return map(whole, some)


def stored_columns(table: str) -> tuple[str, ...]:
    """Return the columns of a table, the checksum last."""
    return (*COLUMNS[table], "crc")


def key_of(table: str, row: Sequence[Any]) -> list[Any]:
    """Return the primary key of a row in the order of its columns."""
    return [row[COLUMNS[table].index(name)] for name in KEYS[table]]


AMONG = "IN (SELECT value FROM json_each(?1))"
"""A condition on a column: one of the numbers that the first value lists, see ``listed``."""


def listed(numbers: Iterable[int]) -> str:
    """Return numbers as the one value that ``AMONG`` reads, however many there are."""
    return f"[{','.join(map(str, map(int, numbers)))}]"


def insert_sql(table: str, *, replace: bool = False) -> str:
    """Return the statement that inserts a row with its checksum."""
    names = stored_columns(table)
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def crc_sql(names: Sequence[str]) -> str:
    """Return the expression for the checksum of these columns."""
    return f"cvx_crc({', '.join(names)})"


def renew_crc_sql(table: str, where: str) -> str:
    """Return the statement that computes checksums again after an update."""
    return f"UPDATE {table} SET crc = {crc_sql(COLUMNS[table])} WHERE {where}"


def update(
    db: sqlite3.Connection,
    table: str,
    where: str,
    keys: Sequence[object],
    changed: Mapping[str, object],
) -> None:
    """Change columns of the rows that fulfil a condition, which looks at none of these columns."""
    names = ", ".join(f"{name} = ?" for name in changed)
    db.execute(f"UPDATE {table} SET {names} WHERE {where}", (*changed.values(), *keys))
    db.execute(renew_crc_sql(table, where), keys)


def damaged(
    db: sqlite3.Connection, tables: Iterable[str] = tuple(COLUMNS)
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield table and primary key, as it reads now, of every row whose checksum does not hold."""
    for table in tables:
        names = COLUMNS[table]
        width = len(KEYS[table])
        cursor = db.execute(f"SELECT {', '.join((*KEYS[table], *names))}, crc FROM {table}")
        for row in cursor:
            if not whole(row[width:]):
                yield table, row[:width]


_compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def json_of(value: object) -> str:
    """Return JSON as the record keeps it; nothing at all is an empty object."""
    return _compact(value) if value else "{}"


def parsed(text: Any, kind: type[T]) -> T | None:
    """Return what JSON says, None where it is none or of another kind."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def bytes_of(vector: Vector | None) -> bytes | None:
    """Return a vector as little-endian float32."""
    return None if vector is None else np.ascontiguousarray(vector, dtype="<f4").tobytes()


def with_entity(thing: Event | Episode) -> Mapping[str, Any]:
    """Return metadata with the name of the entity, unless its number says that."""
    if thing.entity is None or entity_name(thing.entity_id) == thing.entity:
        return thing.metadata
    return {**thing.metadata, ENTITY_KEY: thing.entity}


def event_row(
    event: Event, ids: tuple[int, int | None, int | None], recallable: bool, recorded: int
) -> tuple[object, ...]:
    """Return an event in the order of its columns; ids are its own, its node's, its episode's.

    Raises
    ------
    InvalidInputError
        A field that cannot be stored, by name.
    """
    check_event(event)
    number, node, episode = ids
    return (
        number,
        int(event.timestamp),
        event.text,
        bytes_of(event.vector),
        int(event.entity_id),
        node,
        event.namespace,
        event.kind,
        event.action,
        json_of(storable_metadata("metadata", with_entity(event))),
        None if event.reward is None else float(event.reward),
        int(recallable),
        episode,
        _compact(event.tags) if event.tags else "[]",
        recorded,
        event.source,
        float(event.trust),
        event.visibility,
        None if event.salience is None else float(event.salience),
        event.state,
        event.key,
    )


def decision_row(decision: Decision, recorded: int, record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a decision in the order of its columns.

    Raises
    ------
    InvalidInputError
        A text that cannot be stored, by name.
    """
    check_cue(decision.cue)
    storable_text("rendered", decision.rendered)
    optional_text("action", decision.action)
    noted = dict(record)
    if decision.propensities is not None:
        noted["propensities"] = decision.propensities
    if decision.predicted is not None:
        noted["predicted"] = decision.predicted
    if decision.drawn_from is not None:
        noted["drawn_from"] = decision.drawn_from._asdict()
    cue = decision.cue
    asked = {
        "goal": cue.goal,
        "step": cue.step,
        "questions": cue.questions,
        "text": cue.text,
        "task_type": cue.task_type,
        "time": cue.timestamp,
        "place": cue.place,
        "region": decision.region,
    }
    hits = [
        [h.node, h.entity_id, h.distance, h.score, [f[:3] for f in h.factors]]
        for h in decision.hits
    ]
    return (
        decision.decision_id,
        decision.episode_id,
        compact_json(asked),
        compact_json(hits),
        compact_json(decision.action_scores),
        decision.rendered,
        decision.action,
        json.dumps(decision.followed),
        None if decision.outcome is None else float(decision.outcome),
        recorded,
        json_of(noted),
    )


VERSIONED = (
    "timestamp", "text", "embedding", "node", "kind", "action", "metadata", "tags", "recorded",
    "trust", "salience",
)  # fmt: skip
"""The columns of an event that a new version may change, but for its reward and state."""


def packed(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return these columns of a row as the journal keeps them, a vector in base64."""
    told = {name: before[name] for name in VERSIONED}
    if told["embedding"] is not None:
        told["embedding"] = base64.b64encode(told["embedding"]).decode("ascii")
    return told


def unpacked(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as the table has them.

    Raises
    ------
    ValueError
        Not what ``packed`` made.
    """
    if not isinstance(told, Mapping) or set(told) != set(VERSIONED):
        raise ValueError(f"a version has the columns {', '.join(VERSIONED)}, not {told!r:.60}")
    row = dict(told)
    if row["embedding"] is not None:
        try:
            row["embedding"] = base64.b64decode(row["embedding"], validate=True)
        except (binascii.Error, TypeError) as error:
            raise ValueError(f"the vector of a version is no base64: {error}") from error
    return row


def changed_columns(before: Event, after: Event) -> dict[str, object]:
    """Return the columns that differ between two states of an event, as the table has them."""
    names = COLUMNS["events"]
    pair = [event_row(one, (0, None, None), True, 0) for one in (before, after)]
    old, new = (dict(zip(names, row, strict=True)) for row in pair)
    return {name: new[name] for name in VERSIONED if old[name] != new[name]}


def episode_of(row: Sequence[Any], steps: Iterable[Event]) -> Episode:
    """Return the episode of a row, in the order of ``COLUMNS``, without its reward."""
    metadata = json.loads(row[7])
    return Episode(
        episode_id=row[0],
        entity_id=row[1],
        namespace=row[2],
        kind=row[3],
        goal=row[4],
        task_type=row[5],
        entity=metadata.pop(ENTITY_KEY, None),
        metadata=metadata,
        steps=tuple(steps),
    )


def event_of(row: Sequence[Any]) -> Event:
    """Return the event of a row, in the order of ``COLUMNS``."""
    metadata = json.loads(row[9])
    return Event(
        event_id=row[0],
        timestamp=row[1],
        text=row[2],
        vector=None if row[3] is None else np.frombuffer(row[3], dtype="<f4"),
        entity_id=row[4],
        node=row[5],
        namespace=row[6],
        kind=row[7],
        action=row[8],
        entity=metadata.pop(ENTITY_KEY, None),
        metadata=metadata,
        reward=row[10],
        episode_id=row[12],
        tags=() if row[13] == "[]" else tuple(json.loads(row[13])),
        recorded=row[14],
        source=row[15],
        trust=row[16],
        visibility=row[17],
        salience=row[18],
        state=row[19],
        key=row[20],
    )


_WHOSE = "\x1f"


def event_context(event: int) -> str:
    """Return the context in which the use of a single event is counted."""
    return f'["event",{event}]'


def use_context(context: Any, readers: str, source: str) -> Any:
    """Return a context of use together with whose use is counted, as it is stored.

    Parameters
    ----------
    context : Any
        What JSON can hold.
    readers : str
        Who may read the episodes in which it was counted, see ``cvx.store.namespaces.readers``.
    source : str
        Where these come from.

    Examples
    --------
    >>> use_context(["clean", 4], "", "")
    ['clean', 4]
    >>> whose_use(use_context(["clean", 4], "ana", "web"))
    (['clean', 4], 'ana', 'web')
    """
    return [_WHOSE, readers, source, context] if readers or source else context


def whose_use(stored: Any) -> tuple[Any, str, str]:
    """Return the context of a stored usage count, and whose it is.

    The opposite of ``use_context``.
    """
    match stored:
        case [str(mark), str(readers), str(source), context] if mark == _WHOSE:
            return context, readers, source
    return stored, "", ""
