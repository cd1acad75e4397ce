"""Commands that write: add and link."""

from __future__ import annotations

from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated

import typer

from cvx.cli.console import (
    EmbedderSpec,
    Json,
    Namespace,
    Store,
    counted,
    opened,
    progress,
    tell,
    timestamp_of,
)

if TYPE_CHECKING:
    from cvx.memory import Memory
    from cvx.types import Event


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
    from cvx.cli.parse_events import from_options, read_lines

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
    events, aliases = read_lines(file, text, given, time_ns() // 1000)
    with opened(store, embedder, create=True) as memory:
        ids = _store(memory, events, aliases)
    shown = f"event {ids[0]}" if len(ids) == 1 else counted(len(ids), "event")
    tell({"ids": ids, "added": len(ids)}, f"remembered {shown}", as_json=json)


def _store(memory: Memory, events: list[Event], aliases: list[list[str]]) -> list[int]:
    from dataclasses import replace

    missing = [place for place, event in enumerate(events) if event.vector is None]
    with progress("embedding") as tick:
        for at in range(0, len(missing), _AT_ONCE):
            some = missing[at : at + _AT_ONCE]
            vectors = memory.embedder.embed([events[place].text for place in some])
            for place, vector in zip(some, vectors, strict=True):
                events[place] = replace(events[place], vector=vector)
            tick(min(at + _AT_ONCE, len(missing)), len(missing))
    return [int(one) for one in memory.add_many(events, aliases=aliases)]


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
    told = {"from": cause, "to": effect, "kind": kind, "weight": weight, "why": why}
    tell(told, f"{cause} {kind} {effect}", as_json=json)
