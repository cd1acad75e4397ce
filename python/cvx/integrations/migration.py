"""Takes over what other memories export: Mem0, Chroma, and JSON Lines of any kind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cvx.arguments import a_text, among, checked, wrong
from cvx.errors import FileError, InvalidInputError
from cvx.integrations import a_memory
from cvx.memory import Memory
from cvx.types import IntArray
from cvx.validation import DEEPEST

Exported: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""The path of a file, or what such a file would hold."""

FIELDS = ("text", "timestamp", "entity", "key", "kind", "source", "namespace")
"""What the fields of a JSON Lines file can stand for; all others become metadata."""

_OF_MEM0 = ("user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to", "expiration_date")
_OWNERS = ("user_id", "agent_id", "run_id", None)


@checked(memory=a_memory, namespace=among(*_OWNERS))
def from_mem0(memory: Memory, exported: Exported, *, namespace: str | None = "user_id") -> IntArray:
    """Take over memories of Mem0, all or none.

    Parameters
    ----------
    memory : Memory
        Where to. A memory that is bound by ``within`` takes ``namespace=None`` alone.
    exported : path, mapping or sequence of mappings
        What ``get_all`` of Mem0 returns, with or without ``{"results": ...}`` around it, or a file
        of it: JSON, or JSON Lines with a memory a line.
    namespace : {"user_id", "agent_id", "run_id", None}, default "user_id"
        The field whose value becomes the namespace, so that users stay apart; None puts all
        memories into the memory's own.

    Returns
    -------
    ndarray of shape (n,), int64
        The ids of the events. The id of Mem0 is the event's key, so that taking the same export
        over again changes nothing; ``created_at`` its timestamp; whose it was, and what stood in
        its metadata, is metadata.

    Raises
    ------
    FileError
        The file cannot be read, or is no UTF-8.
    InvalidInputError
        A file that is not such an export, or a memory that cannot be stored, by its place.

    Examples
    --------
    >>> memory = Memory(embedder="lexical")
    >>> exported = {"results": [{"id": "f9bf", "memory": "Ana likes tea.", "user_id": "ana"}]}
    >>> from_mem0(memory, exported)
    array([1])
    >>> memory.within("ana").get(key="f9bf").text
    'Ana likes tea.'
    """
    rows = []
    for place, found in _listed(exported, "results"):
        if not isinstance(found.get("memory"), str):
            raise _not_one(place, "memory", found)
        said = {name: found[name] for name in _OF_MEM0 if found.get(name) is not None}
        rows.append(
            {
                "text": found["memory"],
                "key": _key(found.get("id")),
                "timestamp": _time(place, found.get("created_at")),
                "namespace": None if namespace is None else _key(found.get(namespace)),
                "metadata": {**_about(place, found.get("metadata")), **said},
            }
        )
    return memory.add_many(rows)


@checked(memory=a_memory)
def from_chroma(memory: Memory, exported: Exported, *, vectors: bool = False) -> IntArray:
    """Take over a collection of Chroma, all or nothing of it.

    Parameters
    ----------
    memory : Memory
        Where to.
    exported : path or mapping
        What ``collection.get(include=["documents", "metadatas"])`` returns, or a JSON file of it.
        Of vectors too, with ``"embeddings"`` in ``include``.
    vectors : bool, default False
        Keep the vectors of the collection: they must be those of the memory's embedder. By default
        the texts are embedded anew.

    Returns
    -------
    ndarray of shape (n,), int64
        The ids of the events. The id of Chroma is the event's key, and the text where there is no
        document.

    Raises
    ------
    FileError
        The file cannot be read, or is no UTF-8.
    InvalidInputError
        No such mapping, lists of different lengths, or a row that cannot be stored.
    InvalidVectorError
        Vectors of another dimension than the memory's.

    Examples
    --------
    >>> memory = Memory(embedder="lexical")
    >>> found = {"ids": ["a"], "documents": ["It rained."], "metadatas": [{"topic": "weather"}]}
    >>> from_chroma(memory, found)
    array([1])
    >>> memory.recall("rain", where={"metadata": {"topic": "weather"}})[0].text
    'It rained.'
    """
    found = _read(exported)[0] if isinstance(exported, str | os.PathLike) else exported
    if not isinstance(found, Mapping) or not _is_column(found.get("ids")):
        raise wrong("exported", found, "what collection.get() of Chroma returns: 'ids' and more")
    ids = found["ids"]
    wanted = ("documents", "metadatas", *(["embeddings"] if vectors else []))
    columns = {
        name: [None] * len(ids) if found.get(name) is None else found[name] for name in wanted
    }
    for name, column in columns.items():
        if not _is_column(column):
            raise wrong(name, column, "a list with one for each of the ids, or None")
        if len(column) != len(ids):
            raise InvalidInputError(f"{name} has {len(column)} for {len(ids)} ids: one each")
    if vectors and found.get("embeddings") is None:
        raise InvalidInputError('embeddings are missing: ask Chroma for include=["embeddings"] too')
    rows = [
        {
            "text": columns["documents"][place] or str(one),
            "key": str(one),
            "metadata": _about(f"exported[{place}]", columns["metadatas"][place]),
            "vector": columns["embeddings"][place] if vectors else None,
        }
        for place, one in enumerate(ids)
    ]
    return memory.add_many(rows)


@checked(memory=a_memory)
def from_jsonl(memory: Memory, exported: Exported, **fields: str) -> IntArray:
    """Take over a JSON Lines file, an object a line, all of it or nothing.

    Parameters
    ----------
    memory : Memory
        Where to.
    exported : path, or sequence of mappings
        The file, or what its lines hold.
    **fields : str
        What the fields of the file stand for, where they have other names than ``FIELDS``:
        ``text="content", timestamp="created"``. A timestamp is a number of the store's clock or a
        date in ISO 8601, UTC where it names no zone. What stands for nothing becomes metadata.

    Returns
    -------
    ndarray of shape (n,), int64
        The ids of the events.

    Raises
    ------
    FileError
        The file cannot be read, or is no UTF-8.
    InvalidInputError
        A line that is no object or has no text, by its place; a field that stands for nothing.

    Examples
    --------
    >>> memory = Memory(embedder="lexical")
    >>> lines = [{"content": "It rained.", "when": "2026-11-23", "mood": "calm"}]
    >>> _ = from_jsonl(memory, lines, text="content", timestamp="when")
    >>> event = memory.get(1)
    >>> event.text, event.timestamp, dict(event.metadata)
    ('It rained.', 1795392000000000, {'mood': 'calm'})
    """
    if odd := fields.keys() - {*FIELDS}:
        raise wrong("fields", sorted(odd), f"names among {', '.join(FIELDS)}")
    for name, one in fields.items():
        a_text(name, one)
    names = {name: fields.get(name, name) for name in FIELDS}
    rows = []
    for place, found in _listed(exported):
        if not isinstance(found.get(names["text"]), str):
            raise _not_one(place, names["text"], found)
        row = {name: found.get(one) for name, one in names.items()}
        row["timestamp"] = _time(place, row["timestamp"])
        taken = {*names.values()}
        row["metadata"] = {
            name: one for name, one in found.items() if name not in taken and one is not None
        }
        rows.append(row)
    return memory.add_many(rows)


def _listed(exported: Exported, within: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects of an export, each with its place."""
    lines: Sequence[int] = ()
    found: Any = exported
    if isinstance(exported, str | os.PathLike):
        found, lines = _read(exported)
    if isinstance(found, Mapping):
        found = found.get(within, [found])
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise wrong("exported", found, "a list of objects, or the path of a file with them")
    listed = []
    for at, one in enumerate(found):
        place = f"exported[{at}]"
        if isinstance(exported, str | os.PathLike):
            where = f"line {lines[at]}" if lines else f"object {at + 1}"
            place = f"{os.fspath(exported)}, {where}"
        if not isinstance(one, Mapping):
            raise InvalidInputError(f"{place} is {one!r:.60}: give a JSON object")
        listed.append((place, one))
    return listed


def _read(path: str | os.PathLike[str]) -> tuple[Any, Sequence[int]]:
    """Return what a file of JSON, or of JSON Lines, holds; of lines, their numbers from 1 too."""
    raw = b""
    try:
        raw = Path(path).read_bytes()
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{os.fspath(path)}, line {number}: byte 0x{raw[error.start]:02x} is not UTF-8: "
            "save the file as UTF-8"
        ) from error
    except OSError as error:
        raise FileError(f"{os.fspath(path)} cannot be read ({error}): give a JSON file") from error
    try:
        one = json.loads(text)
    except (ValueError, RecursionError):
        lines = list(_lines(path, text))
        return [one for _, one in lines], [number for number, _ in lines]
    return one, ()


def _lines(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidInputError(
                    f"{os.fspath(path)}, line {number}: {error}: give a JSON object a line, nested "
                    f"at most {DEEPEST} deep"
                ) from error


def _not_one(place: str, name: str, found: Mapping[str, Any]) -> InvalidInputError:
    if name in found:
        return InvalidInputError(f"{place}: {name!r} is {found[name]!r:.60}: give a text")
    has = ", ".join(map(str, found)) or "nothing"
    return InvalidInputError(
        f"{place} has no text in {name!r}: it has {has:.200}; say which field it is"
    )


def _about(place: str, value: Any) -> Mapping[str, Any]:
    """Return the metadata of one memory, none where it has none."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInputError(f"the metadata of {place} is {value!r:.60}: give a mapping")
    return value or {}


def _is_column(value: Any) -> bool:
    """Tell whether this may hold one thing a row; vectors may be an array."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _key(value: Any) -> str | None:
    return None if value is None else str(value)


def _time(place: str, value: Any) -> Any:
    """Return a time as ``Memory.add`` takes it; a date without a zone is UTC."""
    if not isinstance(value, str):
        return value
    try:
        told = datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidInputError(
            f"{place}: the time is {value!r:.60}: give a date in ISO 8601"
        ) from error
    return told if told.tzinfo else told.replace(tzinfo=UTC)
