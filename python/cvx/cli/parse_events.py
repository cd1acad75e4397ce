"""Parses command-line arguments and files into events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import typer

from cvx.arguments import wrong
from cvx.cli.console import timestamp_of
from cvx.errors import FileError, InvalidInputError
from cvx.memory.write_verbs import sound
from cvx.types import Event
from cvx.validation import DEEPEST

_NAMES = {"timestamp": "time", "entity_id": "entity", "effect_text": "text", "id": None}
"""Other names that exports and other programs give to the same; an id is given by the store."""
_Kind = tuple[tuple[type, ...], str]
_STRING: _Kind = (str,), "a string"
_NAME: _Kind = (str, NoneType), "a string"
_NUMBER: _Kind = (int, float, NoneType), "a number"
_STRINGS: _Kind = (list,), "a list of strings"
_KINDS: dict[str, _Kind] = {
    "text": _STRING,
    "namespace": _STRING,
    "kind": _STRING,
    "source": _STRING,
    "visibility": _STRING,
    "entity": _NAME,
    "action": _NAME,
    "key": _NAME,
    "reward": _NUMBER,
    "salience": _NUMBER,
    "trust": _NUMBER,
    "tags": _STRINGS,
    "aliases": _STRINGS,
    "metadata": ((dict,), "a JSON object"),
    "time": ((int, str, NoneType), "an integer or a date"),
    "vector": ((list, NoneType), "a list of numbers"),
}
"""What a line may say, of which types, and what to give instead of another."""


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
        There is no ``=``, or JSON that is nested too deep.

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
        except RecursionError:
            raise typer.BadParameter(
                f"--metadata {pair[:40]!r}...: nest it at most {DEEPEST} deep"
            ) from None
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
        events.append(_event(whole, place, now))
        aliases.append(whole["aliases"])
    return Lines(events, aliases)


def _raw(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read().split("\n")
    try:
        return file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read ({error}): give a UTF-8 file") from error


def _parsed(raw: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except ValueError as error:
        raise InvalidInputError(
            f'{place} is no JSON ({error}): give a JSON object a line, such as {{"text": "..."}}; '
            "nothing was stored"
        ) from error
    except RecursionError as error:
        raise InvalidInputError(
            f"{place} is {raw[:40]!r}..., nested too deep: nest it at most {DEEPEST} deep"
        ) from error
    if not isinstance(row, dict):
        raise InvalidInputError(f"{place} is {raw[:40]!r}: give a JSON object")
    return row


def _named(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    out = {}
    for key, value in row.items():
        name = _NAMES.get(key, key)
        if name is None:
            continue
        if name not in _KINDS:
            raise InvalidInputError(
                f"{place} has {key!r}: known are {', '.join(sorted(_KINDS))}; put the rest into "
                "metadata"
            )
        out[name] = value
    return out


def _event(row: dict[str, Any], place: str, now: int) -> Event:
    entity = row["entity"]
    if isinstance(entity, int) and not isinstance(entity, bool) and entity >= 0:
        # As other programs number them, and as cvx did: 0 was nobody.
        row["entity"] = str(entity) if entity else None
    for name, kind in _KINDS.items():
        _check(row.get(name), name, kind, place)
    if not row["text"].strip():
        raise InvalidInputError(f"{place}: text is empty: give something to remember")
    fields = {name: row[name] for name in _KINDS if name not in ("aliases", "time", "vector")}
    fields["tags"] = tuple(fields["tags"])
    try:
        return sound(
            Event(
                **fields,
                timestamp=_time(row["time"], now),
                vector=_vector(row.get("vector")),
            )
        )
    except InvalidInputError as error:
        raise type(error)(f"{place}: {error}") from error


def _check(value: object, name: str, kind: _Kind, place: str) -> None:
    types, wanted = kind
    good = isinstance(value, types) and not isinstance(value, bool)
    if isinstance(value, list) and name != "vector":
        good = good and all(isinstance(one, str) for one in value)
    if not good:
        raise wrong(f"{place}: {name}", value, wanted)


def _time(value: int | str | None, now: int) -> int:
    if not isinstance(value, str):
        return now if value is None else value
    try:
        return int(timestamp_of(value, "time") or 0)
    except typer.BadParameter as error:
        raise InvalidInputError(error.message) from None


def _vector(value: list[Any] | None) -> Any:
    if value is None:
        return None
    import numpy as np

    try:
        return np.array(value, dtype=np.float32)
    except (TypeError, ValueError):
        raise InvalidInputError("vector: give a list of numbers") from None
