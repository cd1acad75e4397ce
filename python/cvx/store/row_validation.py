"""Validates rows from other programs, for imports and for the doctor.

A checksum says that a row is what somebody wrote, not that it was cvx. SQLite takes anything in any
column, and one odd value in a file from somebody else would be met long after it was taken in: by
whoever builds an index, looks back, or writes next.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from types import FunctionType
from typing import Any, Self, TypeVar

import numpy as np

from cvx.arguments import Check, a_share, number, optional, whole
from cvx.errors import CvxError, DamagedStoreError, InvalidInputError
from cvx.store import rows
from cvx.store.database import lenient
from cvx.store.history import FIRST_KEPT, LIMITS, HistoryLimits
from cvx.store.record import Record
from cvx.store.rows import MOST_ID, episode_of, event_of, unpacked
from cvx.types import ENTITY_KEY, Edge
from cvx.validation import (
    DEEPEST,
    LAST_RECORDED,
    check_edge,
    check_episode,
    check_event,
    storable_metadata,
    storable_tags,
    storable_text,
    storable_time,
    storable_vector,
)

T = TypeVar("T")
R = TypeVar("R")
_SPARE_NODES, _NODES_A_ROW = 2_000_000, 64
_FEW = 8
"""So many texts of a column are looked at one by one; of more, all characters are at once."""

_TYPES: Mapping[str, type[Any]] = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}
KIND = re.compile("[a-z][a-z0-9_]{0,63}")
"""What a kind of edge may be called."""
_OVERWRITTEN = ("episodes", "usage", "decays", "decisions", "model_state")


def node_bound(count: int) -> int:
    """Return the bound of the nodes of a record with so many events and aliases.

    A node's id is a place in tables: one far beyond all others would cost the room for all that
    lie between them.
    """
    return _SPARE_NODES + _NODES_A_ROW * count


class RowCheck:
    """Says of rows why cvx could not have written them.

    Parameters
    ----------
    db : sqlite3.Connection
        A record, whose tables say the type of each column.
    dim : int
        Length of the vectors; 0 where it is not known.
    metric : str
        How they are compared.
    most_node : int, optional
        The bound of the nodes, where it is known; see ``node_bound``.
    """

    def __init__(
        self, db: sqlite3.Connection, dim: int, metric: str, most_node: int = MOST_ID
    ) -> None:
        self._dim = dim
        self._metric = metric
        self._node = whole(0, most_node)
        self._columns = {table: _columns(db, table) for table in rows.COLUMNS}

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Self:
        """Return what says it of the rows of a record, by what that says of itself."""
        meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('dim', 'metric')"))
        (count,) = db.execute(
            "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
        ).fetchone()
        dim = str(meta.get("dim", "0"))
        known = int(dim) if dim.isdecimal() else 0
        return cls(db, known, str(meta.get("metric")), node_bound(count))

    def refused(self, db: sqlite3.Connection) -> Iterator[tuple[str, tuple[object, ...], str]]:
        """Yield table, key and fault of every row that is whole and could not have been written."""
        for table in rows.COLUMNS:
            width, names = len(rows.KEYS[table]), (*rows.KEYS[table], *rows.stored_columns(table))
            for found in db.execute(f"SELECT {', '.join(names)} FROM {table}"):
                row = found[width:]
                why = self.refusal(table, row[:-1]) if rows.whole(row) else None
                if why is not None:
                    yield table, found[:width], why

    def first_refused(
        self, table: str, some: Sequence[Sequence[Any]]
    ) -> tuple[Sequence[Any], str] | None:
        """Return the first row that could not have been written, and why; None if all could.

        Events are many: first those are asked that speak for all of them.
        """
        if (
            table == "events"
            and some
            and not any(self.refusal(table, row) for row in self._speakers(some))
        ):
            return None
        told = ((row, self.refusal(table, row[: len(rows.COLUMNS[table])])) for row in some)
        return next(((row, why) for row, why in told if why is not None), None)

    def _speakers(self, some: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
        """Return rows of events that are refused if any of some is, as a rule far fewer.

        A row for each metadata and tags, and rows made of the least and greatest of each column:
        but for these two, what a column may hold is a range or a matter of single characters, and
        depends on no other column.
        """
        columns = dict(zip(rows.COLUMNS["events"], zip(*some, strict=True), strict=False))
        width = len(columns)
        try:
            ends = {
                name: self._ends(name, kind, columns[name])
                for name, kind, _ in self._columns["events"]
            }
        except (ValueError, TypeError):
            return [row[:width] for row in some]
        plain = {**ends, "metadata": ["{}"], "tags": ["[]"]}
        most = max(map(len, plain.values()))
        made = [tuple(told[at % len(told)] for told in plain.values()) for at in range(most)]
        # Most labels are looked at alone, without the columns that the made rows speak for.
        labels = zip(columns["metadata"], columns["tags"], strict=True)
        odd = {one for one in {*labels} if not _storable_labels(*one)}
        # A name in them says the number of the entity.
        asked = {
            (metadata, tags, entity): row[:width]
            for row, metadata, tags, entity in zip(
                some, columns["metadata"], columns["tags"], columns["entity"], strict=True
            )
            if (metadata, tags) in odd
        }
        return [*made, *asked.values()]

    def _ends(self, name: str, kind: type, values: Sequence[Any]) -> list[Any]:
        """Return values of a column that are refused if any of them is.

        Raises
        ------
        ValueError, TypeError
            It takes a look at each.
        """
        there: Sequence[Any] = values
        if None in values:
            there = [value for value in values if value is not None]
        nothing = [None] if len(there) < len(values) else []
        if not set(map(type, there)) <= {kind}:
            raise TypeError(f"{name} holds values of other types than {kind.__name__}")
        if not there or name in ("metadata", "tags"):
            return nothing
        if kind is str:
            each = set(there)
            return [*nothing, *(sorted(each) if len(each) <= _FEW else ["".join(there)])]
        if kind is bytes:
            matrix = np.frombuffer(b"".join(there), dtype="<f4").reshape(len(there), -1)
            if {len(one) for one in there} != {4 * matrix.shape[1]}:
                raise ValueError(f"{name} holds vectors of several lengths")
            # One with a NaN is both the shortest and the longest.
            lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
            return [*nothing, there[lengths.argmin()], there[lengths.argmax()]]
        if kind is float and not np.isfinite(there).all():
            raise ValueError(f"{name} holds NaN or infinity")
        return [*nothing, min(there), max(there)]

    def refusal(self, table: str, row: Sequence[Any]) -> str | None:
        """Return why a row, without its checksum, could not have been written; None if it could."""
        try:
            for (name, kind, required), value in zip(self._columns[table], row, strict=True):
                _check_type(name, value, kind, required=required)
                check = self._node if name == "node" else _FIELDS.get(name)
                if check is not None and value is not None:
                    check(name, value)
            told = dict(zip(rows.COLUMNS[table], row, strict=True))
            if table in _CHECKS:
                _CHECKS[table](told, row)
            if told.get("embedding") is not None:
                vector = np.frombuffer(told["embedding"], dtype="<f4")
                # A record that no memory opened yet says nothing of its vectors: the first does.
                self._dim = self._dim or len(vector)
                storable_vector("the vector", vector, self._dim, self._metric)
        except (InvalidInputError, ValueError, TypeError, LookupError, RecursionError) as error:
            return str(error) or type(error).__name__
        return None


def _storable_labels(metadata: Any, tags: Any) -> bool:
    """Return whether these may be stored, of any event: metadata that names an entity may not.

    Escaped or not, a name in it says the number of the entity.
    """
    told = metadata or ""
    if ENTITY_KEY in told or "\\" in told:
        return False
    try:
        _check_brackets(metadata, tags)
        storable_metadata("metadata", json.loads(metadata))
        storable_tags("tags", json.loads(tags))
    except (InvalidInputError, ValueError, AttributeError, RecursionError):
        return False
    return True


def _columns(db: sqlite3.Connection, table: str) -> list[tuple[str, type[Any], bool]]:
    declared = {row[1]: (row[2], row[3]) for row in db.execute(f"PRAGMA table_info({table})")}
    return [
        (name, _TYPES[declared[name][0]], bool(declared[name][1]) or name in rows.KEYS[table])
        for name in rows.COLUMNS[table]
    ]


def _check_type(name: str, value: Any, kind: type[Any], *, required: bool) -> None:
    if value is None and not required:
        return
    if name == "helped" and type(value) is float and not value.is_integer():
        kind = float
    # A bool, or a whole number in a column of floats, would come back as something else.
    if type(value) is not kind:
        raise TypeError(f"{name} is of type {type(value).__name__}, not {kind.__name__}")
    _check_scalar(name, None if kind is bytes else value)


def _check_scalar(name: str, value: Any) -> None:
    """Check a value that SQLite can store, whatever the column."""
    if isinstance(value, str):
        storable_text(name, value)
    elif isinstance(value, int):
        _integer(name, int(value))
    elif value is not None:
        _finite(name, value)


def _json(name: str, text: str, kind: type, *, finite: bool = True) -> Any:
    """Read JSON of a kind that is not too deep to be written again."""

    def refused(constant: str) -> None:
        raise ValueError(f"{name} holds {constant}")

    value = json.loads(text, parse_constant=refused if finite else None)
    if not isinstance(value, kind):
        raise TypeError(f"{name} is JSON of type {type(value).__name__}, not {kind.__name__}")
    if _depth(value) > 2 * DEEPEST:
        raise ValueError(f"{name} is more than {2 * DEEPEST} levels deep")
    return value


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inside), default=0) if isinstance(value, dict | list) else 0


def _check_real(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} holds {value!r}, which is no number")


def _check_brackets(metadata: str, tags: str) -> None:
    for name, text, start in (("metadata", metadata, "{"), ("tags", tags, "[")):
        if not text.lstrip().startswith(start):
            raise ValueError(f"{name} is {text[:40]!r}: no JSON that begins with {start}")


def _check_event(told: dict[str, Any], row: Sequence[Any]) -> None:
    _check_brackets(told["metadata"], told["tags"])
    event = event_of(row)
    check_event(event)
    if event.entity_id != told["entity"]:
        raise ValueError(f"entity is {told['entity']}: not the number of {event.entity!r}")


def _check_alias(told: dict[str, Any], _row: Sequence[Any]) -> None:
    if told["embedding"] is None:
        raise ValueError("an alias has no vector: it could not be found by it")


def _check_episode(told: dict[str, Any], row: Sequence[Any]) -> None:
    _json("metadata", told["metadata"], dict)
    check_episode(episode_of(row, ()))


def _check_link(told: dict[str, Any], _row: Sequence[Any] = ()) -> None:
    a, b = told["from_node"], told["to_node"]
    if a == b:
        raise ValueError(f"the link goes from node {a} to itself")
    _check_kind("kind", told["kind"])
    check_edge(Edge(a, b, told["kind"], told["weight"], told["why"], told["evidence"]))


def _check_usage(told: dict[str, Any], _row: Sequence[Any]) -> None:
    _check_context(_json("context", told["context"], object))
    for name in ("retrieved", "followed", "helped"):
        _count(name, told[name])


def _check_context(context: Any) -> None:
    if isinstance(context, dict):
        raise TypeError("context holds a mapping, by which nothing is counted")
    for part in context if isinstance(context, list) else ():
        _check_context(part)


def _check_decision(told: dict[str, Any], _row: Sequence[Any]) -> None:
    _json("cue", told["cue"], dict)
    _json("record", told["record"], dict)
    for node, entity, distance, score, *factors in _json("hits", told["hits"], list, finite=False):
        _HIT("a hit", (node, entity, distance, score))
        for name, *figures in factors[0] if factors else ():
            storable_text("a factor", name)
            for figure in figures:
                _check_real("a factor", figure)
    for scored in _json("action_scores", told["action_scores"], list, finite=False):
        _SCORED("action_scores", scored)
    for node in _json("followed", told["followed"], list):
        _id("followed", node)


def _check_state(told: dict[str, Any], _row: Sequence[Any]) -> None:
    _json("value", told["value"], dict)


def _check_change(told: dict[str, Any], _row: Sequence[Any]) -> None:
    check = _OPS.get(told["op"])
    if check is None:
        raise ValueError(f"op is {told['op']!r}: no change that cvx makes")
    for entry in _json("body", told["body"], list):
        check("a change", entry)


def _parts(*checks: Check) -> Check:
    """Return a check for a list of so many parts, each with its own."""

    def check(name: str, value: Any) -> None:
        for own, part in zip(checks, value, strict=True):
            own(name, part)

    return check


def _check_run(name: str, entry: Any) -> None:
    first, last = entry
    if _id(name, first) > _id(name, last):
        raise ValueError(f"the nodes {first} to {last} run backwards")


def _check_row_change(name: str, entry: Any) -> None:
    table, key, before = entry
    if table not in _OVERWRITTEN or len(key) != len(rows.KEYS[table]):
        raise ValueError(f"{table!r} is no table whose rows are overwritten")
    if before is not None and len(before) != len(rows.COLUMNS[table]):
        raise ValueError(f"a row of {table} had {len(before)} values")
    for value in (*key, *(before or ())):
        _check_scalar(name, value)


def _check_version(_name: str, entry: Any) -> None:
    event, before, node = entry
    _id("an event", event)
    _id("a node", node)
    told = unpacked(before)
    for column in ("node", "recorded"):
        if told[column] is not None:
            _FIELDS.get(column, _id)(column, told[column])
    storable_text("the text of a version", told["text"])
    check_event(event_of([{**_PLAIN_EVENT, **told}[name] for name in rows.COLUMNS["events"]]))


_PLAIN_EVENT = {
    **dict.fromkeys(rows.COLUMNS["events"]),
    "event_id": 0,
    "entity": 0,
    "namespace": "",
    "source": "",
    "visibility": "private",
    "state": "active",
}


def _check_link_change(name: str, entry: Any) -> None:
    a, b, kind, before, after = entry
    _NODES(name, (a, b))
    for state in (before, after):
        if state is not None:
            told = dict(zip(("weight", "why", "evidence", "recorded"), state, strict=True))
            a_share("weight", told["weight"])
            _FIELDS["recorded"]("recorded", told["recorded"])
            _check_link({"from_node": a, "to_node": b, "kind": kind, **told})
    if before is None and after is None:
        raise ValueError("a link that neither was nor is")


def _check_kind(name: str, value: Any) -> None:
    if not KIND.fullmatch(storable_text(name, value)):
        raise ValueError(f"{name} is {value!r}: no name of a kind of edge")


_id = whole(0, MOST_ID)
_count = number(0, MOST_ID)
_integer, _finite = whole(), number()
_FIELDS: Mapping[str, Check] = {
    **dict.fromkeys(("event_id", "episode_id", "episode", "decision_id", "seq"), _id),
    **dict.fromkeys(("from_node", "to_node"), _id),
    **dict.fromkeys(("reward", "weight", "before", "after"), a_share),
    "recorded": whole(0, LAST_RECORDED),
    "last_used": storable_time,
    "recallable": whole(0, 1),
    "chain": whole(0, 2**32 - 1),
}
"""What a column may hold, in whatever table it is."""
_CHECKS: Mapping[str, Callable[[dict[str, Any], Sequence[Any]], None]] = {
    "events": _check_event,
    "aliases": _check_alias,
    "episodes": _check_episode,
    "links": _check_link,
    "usage": _check_usage,
    "decisions": _check_decision,
    "model_state": _check_state,
    "journal": _check_change,
}
_HIT = _parts(optional(_id), *[optional(_check_real)] * 3)
_SCORED = _parts(storable_text, _check_real)
_NODES = _parts(_id, _id)
_COLUMN = _parts(_id, _check_scalar, _check_scalar)
_OPS: Mapping[str, Check] = {
    "insert": _check_run,
    "reward": _parts(_id, optional(_finite), optional(_finite)),
    "row": _check_row_change,
    "link": _check_link_change,
    "kind": _check_kind,
    "version": _check_version,
    **dict.fromkeys(("metadata", "state", "recallable", "step_kind"), _COLUMN),
    **dict.fromkeys(("episode", "erase", "lost"), _id),
}
"""Every kind of change in the journal; ``lost`` stands for one whose content is gone."""


_METRICS = ("cosine", "l2", "ip")
_NUMBER = re.compile("0|[1-9][0-9]{0,18}")


def may_say(key: str, value: Any) -> bool:
    """Return whether a record may say this of itself, for another one to take over."""
    check = TAKEN_OVER.get(key)
    try:
        return check is not None and check(storable_text(key, value))
    except (ValueError, RecursionError):
        return False


def _settings(told: str) -> bool:
    values = json.loads(told)
    return isinstance(values, dict) and all(
        isinstance(value, int) and -(2**63) <= value < 2**63 for value in values.values()
    )


def _kinds(told: str) -> bool:
    names = json.loads(told)
    return isinstance(names, list) and all(
        isinstance(name, str) and KIND.fullmatch(name) for name in names
    )


def _is_number(told: str) -> bool:
    return _NUMBER.fullmatch(told) is not None and int(told) <= 2**62


TAKEN_OVER: Mapping[str, Callable[[str], bool]] = {
    "embedder": lambda told: 0 < len(told) < 2000,
    "dim": lambda told: _is_number(told) and 1 <= int(told) <= 2**16,
    "metric": lambda told: told in _METRICS,
    "index": _settings,
    "edge_kinds": _kinds,
    "next_node": _is_number,
    "next_event": _is_number,
    "next_decision": _is_number,
    "whole_since": _is_number,
    FIRST_KEPT: _is_number,
    LIMITS: lambda told: HistoryLimits.read(told) is not None,
    # Not the tokenizer: that is the path of a file on one machine.
    "clock": lambda told: told in ("utc", "ticks", "turns"),
    "preset": lambda told: len(told) < 100,
    "embedder_spec": lambda told: len(told) < 2000,
}
"""What a record says of itself that another one takes over, and what may be said."""


@contextmanager
def explaining(record: Record) -> Iterator[None]:
    """Name what cvx did not write, where reading it raises an error that is none of cvx's.

    Rows are held against their checksums when they are read, and anybody can compute those: an odd
    value in a database from elsewhere is met by whoever reads it, often far away.
    """
    try:
        yield
    except CvxError:
        raise
    except Exception as error:
        told = _explanation(record)
        if told is None:
            raise
        raise told from error


def _explanation(record: Record) -> DamagedStoreError | None:
    """Look through a record for what cvx did not write, once a change; None where all is sound."""
    with suppress(CvxError, sqlite3.Error), record.reading():
        tail = record.tail()
        if tail == record.sound_to:
            return None
        with lenient(record.database.connection()) as db:
            what = next(_odd(db), None)
        if what is not None:
            plain = what.encode("ascii", "backslashreplace").decode()
            return DamagedStoreError(
                f"{record.path}: {plain}: let doctor repair it, or restore a copy"
            )
        record.sound_to = tail
    return None


def explains(record_of: Callable[[Any], Record]) -> Callable[[type[T]], type[T]]:
    """Let the public verbs of a class name the row that is to blame, where reading it raises.

    Parameters
    ----------
    record_of : callable
        From an object of the class to the record that it reads.
    """

    def verb(method: Callable[..., R]) -> Callable[..., R]:
        @wraps(method)
        def call(self: Any, *args: Any, **options: Any) -> R:
            with explaining(record_of(self)):
                return method(self, *args, **options)

        return call

    def decorated(cls: type[T]) -> type[T]:
        for name, member in [*vars(cls).items()]:
            if isinstance(member, FunctionType) and not name.startswith("_"):
                setattr(cls, name, verb(member))
        return cls

    return decorated


def _odd(db: sqlite3.Connection) -> Iterator[str]:
    for key, value in db.execute("SELECT key, value FROM meta"):
        if key in TAKEN_OVER and not may_say(key, value):
            yield f"it says {str(value)[:40]!r} of {key}, which cvx never does"
    for table, key in rows.damaged(db):
        yield f"row {list(key)} of {table} is not what was written"
    for table, key, why in RowCheck.of(db).refused(db):
        yield f"row {list(key)} of {table} could not have been written by cvx ({why[:200]})"
