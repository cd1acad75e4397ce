"""From what is typed, or the lines of a file, to events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from cvx.cli.console import timestamp_of
from cvx.errors import FileError, InvalidInputError
from cvx.memory.writes import sound
from cvx.types import Event

_NAMES = {"timestamp": "time", "entity_id": "entity", "effect_text": "text", "id": None}
"""Other names that exports and other programs give to the same; an id is given by the store."""
_STRINGS = ("text", "namespace", "kind", "source", "visibility")
_NUMBERS = ("reward", "salience", "trust")
_KNOWN = {
    *_STRINGS,
    *_NUMBERS,
    "entity",
    "time",
    "tags",
    "aliases",
    "metadata",
    "action",
    "key",
    "vector",
}


@dataclass(frozen=True, slots=True)
class Lines:
    """Events, and the further words for each."""

    events: Sequence[Event]
    aliases: Sequence[Sequence[str]]


def from_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Return metadata from ``key=value``; a value that is JSON is taken as such.

    Raises
    ------
    typer.BadParameter
        There is no ``=``.

    Examples
    --------
    >>> from_options(["room=kitchen", "floor=2"])
    {'room': 'kitchen', 'floor': 2}
    """
    out = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"--metadata {pair!r}: give key=value")
        try:
            out[key] = json.loads(value)
        except ValueError:
            out[key] = value
    return out


def read_lines(file: Path | None, text: str | None, given: Mapping[str, Any], now: int) -> Lines:
    """Read what is to be remembered, completely, before anything is stored.

    Parameters
    ----------
    file : Path, optional
        JSON Lines, "-" for stdin; without it ``text`` is the one event, "-" for stdin.
    text : str, optional
        What is to be remembered.
    given : mapping
        What lines leave out.
    now : int
        The time of events that name none.

    Raises
    ------
    InvalidInputError
        A line that is no event; the message names it.
    FileError
        The file cannot be read.
    """
    if file is None:
        words = sys.stdin.read().strip() if text == "-" else str(text)
        if not words.strip():
            raise InvalidInputError("the text is empty: give something to remember")
        rows = [("the text", {"text": words})]
    else:
        rows = [
            (f"{file}, line {number}", _parsed(raw, f"{file}, line {number}"))
            for number, raw in enumerate(_raw(file), 1)
            if raw.strip()
        ]
    if not rows:
        raise InvalidInputError(f"{file} has no line: give one JSON object a line")
    events, aliases = [], []
    for place, row in rows:
        whole = {**given, **_named(row, place)}
        aliases.append(_strings(whole, "aliases", place))
        events.append(_event(whole, place, now))
    return Lines(events, aliases)


def _raw(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read().split("\n")
    try:
        return file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read ({error}): give a UTF-8 file") from error


def _parsed(raw: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except ValueError as error:
        raise InvalidInputError(f"{place} is no JSON ({error}): nothing was stored") from error
    if not isinstance(row, dict):
        raise InvalidInputError(f"{place} is {raw[:40]!r}: give a JSON object")
    return row


def _named(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    out = {}
    for key, value in row.items():
        name = _NAMES.get(key, key)
        if name is None:
            continue
        if name not in _KNOWN:
            raise InvalidInputError(
                f"{place} has {key!r}: known are {', '.join(sorted(_KNOWN))}; put the rest into "
                "metadata"
            )
        out[name] = value
    return out


def _event(row: Mapping[str, Any], place: str, now: int) -> Event:
    for name in _STRINGS:
        if not isinstance(row.get(name), str):
            raise InvalidInputError(f"{place}: {name} is {row.get(name)!r}: give a string")
    if not row["text"].strip():
        raise InvalidInputError(f"{place}: text is empty: give something to remember")
    for name in _NUMBERS:
        value = row[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInputError(f"{place}: {name} is {value!r}: give a number")
    entity, metadata = row["entity"], row["metadata"]
    if isinstance(entity, int) and not isinstance(entity, bool) and entity >= 0:
        # As other programs number them, and as cvx did: 0 was nobody.
        entity = str(entity) if entity else None
    if entity is not None and not isinstance(entity, str):
        raise InvalidInputError(f"{place}: entity is {entity!r}: give a string")
    if not isinstance(metadata, dict):
        raise InvalidInputError(f"{place}: metadata is {metadata!r}: give a JSON object")
    event = Event(
        entity=entity,
        timestamp=_time(row["time"], place, now),
        text=row["text"],
        vector=_vector(row.get("vector"), place),
        action=_optional(row, "action", place),
        reward=row["reward"],
        kind=row["kind"],
        namespace=row["namespace"],
        metadata=metadata,
        tags=tuple(_strings(row, "tags", place)),
        source=row["source"],
        trust=row["trust"],
        visibility=row["visibility"],
        salience=row["salience"],
        key=_optional(row, "key", place),
    )
    try:
        return sound(event)
    except InvalidInputError as error:
        raise type(error)(f"{place}: {error}") from error


def _optional(row: Mapping[str, Any], name: str, place: str) -> str | None:
    value = row[name]
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(f"{place}: {name} is {value!r}: give a string")
    return value


def _time(value: object, place: str, now: int) -> int:
    if value is None:
        return now
    if isinstance(value, str):
        try:
            return int(timestamp_of(value, "time") or 0)
        except typer.BadParameter as error:
            raise InvalidInputError(f"{place}: {error.message}") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInputError(f"{place}: time is {value!r}: give an integer or a date")
    return value


def _strings(row: Mapping[str, Any], name: str, place: str) -> list[str]:
    value = row[name]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidInputError(f"{place}: {name} is {value!r}: give a list of strings")
    return value


def _vector(value: object, place: str) -> Any:
    if value is None:
        return None
    import numpy as np

    try:
        return np.array(value, dtype=np.float32)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{place}: vector: give a list of numbers") from None
