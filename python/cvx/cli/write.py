"""Commands that write: add and link, with the lines of files that add reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.arguments import wrong
from cvx.cli.console import (
    EmbedderSpec,
    Json,
    Namespace,
    Store,
    counted,
    emit,
    line,
    opened,
    progress,
    timestamp_of,
)
from cvx.errors import FileError, InvalidInputError
from cvx.memory.write_verbs import sound
from cvx.types import Event
from cvx.validation import DEEPEST

if TYPE_CHECKING:
    from cvx.memory import Memory

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
        return file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read ({error}): give a UTF-8 file") from error


def _parsed(raw: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except ValueError as error:
        raise InvalidInputError(f"{place} is no JSON ({error}): nothing was stored") from error
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


_AT_ONCE = 256


def add(
    text: Annotated[str | None, typer.Argument(help="What to remember; - reads stdin.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="JSON Lines, one event a line; - reads stdin."),
    ] = None,
    entity: Annotated[str | None, typer.Option(help="Whose timeline it is on.")] = None,
    time: Annotated[
        str | None, typer.Option(help="When it happened: a date, or an integer; default now.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A label; may be repeated.")] = None,
    alias: Annotated[
        list[str] | None, typer.Option(help="Other words to find it by; may be repeated.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="key=value, JSON where it is; may be repeated.")
    ] = None,
    namespace: Namespace = "",
    key: Annotated[
        str | None, typer.Option(help="What the event is called elsewhere; once a namespace.")
    ] = None,
    action: Annotated[str | None, typer.Option(help="What was done there.")] = None,
    reward: Annotated[float | None, typer.Option(help="How it ended, in [0, 1].")] = None,
    salience: Annotated[float | None, typer.Option(help="How much it matters, [0, 1].")] = None,
    kind: Annotated[str, typer.Option(help="A free label such as observation.")] = "event",
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "",
    trust: Annotated[float, typer.Option(help="How far the source is believed, [0, 1].")] = 1.0,
    visibility: Annotated[str, typer.Option(help="private, shared or public.")] = "private",
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Remember one thing, or many from a file: all of them or none.

    For example:
      cvx add "the spare key is under the green pot" --tag house --entity ana
      echo "a long note" | cvx add -
      cvx add --file events.jsonl

    A line of the file is a JSON object with "text" and, as here, any of entity, time, tags,
    aliases, metadata (an object), namespace, key, action, reward, salience, kind, source, trust,
    visibility, vector. With --file, the options here are what lines leave out.
    """
    from cvx.cli.write import from_options, read_lines

    if (text is None) == (file is None):
        raise typer.BadParameter("give a text to remember, - for stdin, or --file FILE")
    given = {
        "entity": entity,
        "time": timestamp_of(time),
        "tags": tag or [],
        "aliases": alias or [],
        "metadata": from_options(metadata or []),
        "namespace": namespace,
        "key": key,
        "action": action,
        "reward": reward,
        "salience": salience,
        "kind": kind,
        "source": source,
        "trust": trust,
        "visibility": visibility,
    }
    lines = read_lines(file, text, given, time_ns() // 1000)
    with opened(store, embedder, create=True) as memory:
        ids = _store(memory, lines)
    if json:
        emit({"ids": ids, "added": len(ids)})
    else:
        shown = f"event {ids[0]}" if len(ids) == 1 else counted(len(ids), "event")
        line(f"remembered {shown}")


def _store(memory: Memory, lines: Lines) -> list[int]:
    from dataclasses import replace

    events = list(lines.events)
    missing = [place for place, event in enumerate(events) if event.vector is None]
    with progress("embedding") as tick:
        for at in range(0, len(missing), _AT_ONCE):
            some = missing[at : at + _AT_ONCE]
            vectors = memory.embedder.embed([events[place].text for place in some])
            for place, vector in zip(some, vectors, strict=True):
                events[place] = replace(events[place], vector=vector)
            tick(min(at + _AT_ONCE, len(missing)), len(missing))
    ids: list[int] = memory.add_many(events, aliases=lines.aliases).tolist()
    return ids


def link(
    cause: Annotated[int, typer.Argument(help="The event that came first.")],
    effect: Annotated[int, typer.Argument(help="The event that it led to.")],
    kind: Annotated[str, typer.Option(help="What kind of link.")] = "caused",
    weight: Annotated[float, typer.Option(help="How sure, in [0, 1].")] = 1.0,
    why: Annotated[str, typer.Option(help="The reason in words.")] = "",
    evidence: Annotated[str, typer.Option(help="What the reason rests on.")] = "",
    effect_first: Annotated[
        str,
        typer.Option(
            "--effect-first",
            help="Where the effect is the earlier event: refuse, flag (a warning) or allow.",
        ),
    ] = "refuse",
    declare: Annotated[
        bool, typer.Option("--declare", help="The kind is a new one of your own.")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Say that one event led to another.

    For example:
      cvx link 1 2 --why "the drain is too small"
      cvx link 3 4 --kind reminded_of --declare

    Said again, it replaces what was said before.
    """
    with opened(store, embeds=False) as memory:
        if declare:
            memory.admin.declare_edge_kind(kind)
        memory.link(
            cause,
            effect,
            kind,
            weight=weight,
            why=why,
            evidence=evidence,
            effect_first=effect_first,
        )
    if json:
        emit({"from": cause, "to": effect, "kind": kind, "weight": weight, "why": why})
    else:
        line(f"{cause} {kind} {effect}")
