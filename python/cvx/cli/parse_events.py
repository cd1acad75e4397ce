"""Parses command-line arguments and files into events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from cvx.arguments import a_mapping, a_text, some_texts
from cvx.causal.cosine import as_vector
from cvx.cli.console import timestamp_of
from cvx.errors import FileError, InvalidInputError
from cvx.memory.write_verbs import sound
from cvx.types import Event
from cvx.validation import DEEPEST

_NAMES = {"timestamp": "time", "entity_id": "entity", "effect_text": "text"}
"""Other names that exports and other programs give to the same; an id is given by the store."""
_KEYS = (
    *("text", "entity", "time", "tags", "aliases", "metadata", "namespace", "key", "action"),
    *("reward", "salience", "kind", "source", "trust", "visibility", "vector"),
)
"""What a line may say."""


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


def read_lines(
    file: Path | None, text: str | None, given: Mapping[str, Any], now: int
) -> tuple[list[Event], list[list[str]]]:
    """Return the events to be remembered, and the further words for each; checked before.

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
        try:
            whole = {**given, **_named(row)}
            aliases.append(some_texts("aliases", whole["aliases"]))
            events.append(_event(whole, now))
        except InvalidInputError as error:
            raise type(error)(f"{place}: {error}") from error
    return events, aliases


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


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    named = {_NAMES.get(key, key): value for key, value in row.items() if key != "id"}
    if odd := sorted(named.keys() - {*_KEYS}):
        known = ", ".join(sorted(_KEYS))
        raise InvalidInputError(
            f"{odd[0]!r} is no key: known are {known}; put the rest into metadata"
        )
    return named


def _event(row: dict[str, Any], now: int) -> Event:
    entity = row["entity"]
    if isinstance(entity, int) and not isinstance(entity, bool) and entity >= 0:
        # As other programs number them, and as cvx did: 0 was nobody.
        row["entity"] = str(entity) if entity else None
    if not a_text("text", row["text"]).strip():
        raise InvalidInputError("text is empty: give something to remember")
    fields = {name: row[name] for name in _KEYS if name not in ("aliases", "time", "vector")}
    fields["tags"] = tuple(some_texts("tags", row["tags"]))
    a_mapping("metadata", row["metadata"])
    vector = None if row.get("vector") is None else as_vector(row["vector"])
    return sound(Event(**fields, timestamp=_time(row["time"], now), vector=vector))


def _time(value: int | str | None, now: int) -> int:
    if not isinstance(value, str):
        return now if value is None else value
    try:
        return int(timestamp_of(value, "time") or 0)
    except typer.BadParameter as error:
        raise InvalidInputError(error.message) from None
