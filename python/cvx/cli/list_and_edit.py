"""Commands that look at single events and change them: list, show, edit and tail."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.console import (
    NOTHING,
    EmbedderSpec,
    Json,
    Since,
    Store,
    Until,
    emit,
    line,
    note_elsewhere,
    opened,
    plain_event,
    show_event,
    timestamp_of,
)
from cvx.dates import when
from cvx.errors import FileError, InvalidInputError
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.memory import Memory
    from cvx.types import Edge, Event

_POLL = 0.2
"""Seconds between two looks at a store that others may have written to."""

_STEPS = "SELECT event_id, namespace FROM events WHERE episode = ?"
_COUNT = 20
Whose = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Only of this namespace; default the unnamed one."),
]
Entity = Annotated[list[str] | None, typer.Option(help="Only of this entity; may be repeated.")]


def list_(
    count: Annotated[
        int | None,
        typer.Option(
            "--count", "-k", min=1, help="How many at the most; default 20, of --episode all."
        ),
    ] = None,
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest first.")] = False,
    since: Since = None,
    until: Until = None,
    entity: Entity = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this label; repeated: with all.")
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only of this kind; repeatable.")] = None,
    episode: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**63 - 1, help="Only the steps of this episode, whoever they are of."
        ),
    ] = None,
    source: Annotated[list[str] | None, typer.Option(help="Only from this source.")] = None,
    outcome: Annotated[str, typer.Option(help="success, failure or any.")] = "any",
    state: Annotated[str, typer.Option(help="active, archived or quarantined.")] = "active",
    namespace: Whose = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """List events, the newest first. Exit code 1 where there are none.

    For example:
      cvx list --entity ana --since 2026-11-01
      cvx list --episode 1 --oldest
      cvx list --state archived
    """
    from cvx.validation import STATES

    if outcome not in ("success", "failure", "any"):
        raise typer.BadParameter(f"--outcome {outcome!r}: give success, failure or any")
    if state not in STATES:
        raise typer.BadParameter(f"--state {state!r}: give one of {', '.join(STATES)}")
    where: dict[str, Any] = {
        "since": timestamp_of(since, "--since"),
        "until": timestamp_of(until, "--until"),
        "entities": entity or None,
        "tags": tag or None,
        "kind": kind or None,
        "source": source or None,
        "outcome": outcome,
    }
    with opened(store, embeds=False, reads=True) as memory:
        if episode is not None:
            steps = memory.record.query(_STEPS, (episode,))
            where["ids"] = [step for step, _ in steps]
            if namespace is None and steps:
                namespace = steps[0][1]
            count = count or len(steps)
        count = count or _COUNT
        if state == "active":
            events = memory.events(where, newest=not oldest, limit=count, namespace=namespace)
        else:
            frame = memory.frames.events(where, namespace=namespace or "", state=state)
            order = frame.sort("timestamp", "event_id", descending=not oldest)
            events = [memory.get(number) for number in order["event_id"].head(count)]
        if json:
            emit({"events": [plain_event(event) for event in events]})
        else:
            for event in events:
                show_event(event)
        if not events and not json:
            line("nothing is remembered that passes", dim=True)
            note_elsewhere(memory, namespace or "")
    if not events:
        raise typer.Exit(NOTHING)


def show(
    event: Annotated[int, typer.Argument(help="The id of the event.")],
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Who asks; by default whoever the event is of."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show all that is known of an event: its fields, earlier versions, causes, consequences.

    For example:
      cvx show 2
    """
    with opened(store, embeds=False, reads=True) as memory:
        found = memory.get(event, namespace=namespace)
        whose = found.namespace if namespace is None else namespace
        history = list(found.history)
        causes, consequences = (
            [(step.edge, step.event) for step in walk(found, max_depth=1, namespace=whose).steps]
            for walk in (memory.why, memory.consequences)
        )
    if json:
        emit(
            {
                "event": plain_event(found),
                "history": [plain_event(one) for one in history],
                "causes": [_end(edge, of) for edge, of in causes],
                "consequences": [_end(edge, of) for edge, of in consequences],
            }
        )
        return
    show_event(found)
    line()
    told = plain_event(found)
    for name in ("time", "recorded"):
        told[name] = when(told[name])
    for name, value in told.items():
        if name not in ("id", "text") and value not in (None, "", [], {}):
            line(f"{name:<12} {one_line(str(value))}")
    for one in history:
        line(f"{'version':<12} {one.version}: {one_line(one.text)}")
    for label, ends in (("because", causes), ("led to", consequences)):
        for edge, of in ends:
            reason = f" ({one_line(edge.why)})" if edge.why else ""
            line(f"{label:<12} {of.id}: {one_line(of.text)}{reason}")
    if len(found.text) > 200 or "\n" in found.text:
        line()
        for part in found.text.splitlines():
            line(part)


def _end(edge: Edge, of: Event) -> dict[str, Any]:
    return {"id": of.id, "text": of.text, "kind": edge.kind, "weight": edge.weight, "why": edge.why}


def edit(
    event: Annotated[int, typer.Argument(help="The id of the event.")],
    text: Annotated[
        str | None, typer.Option(help="What it says from now on; - reads stdin.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="When it happened; by default that stays, but news under a key is of now."
        ),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Its labels from now on; may be repeated.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="key=value to merge; key=null takes it away.")
    ] = None,
    salience: Annotated[float | None, typer.Option(help="How much it matters, [0, 1].")] = None,
    trust: Annotated[float | None, typer.Option(help="How far it is believed, [0, 1].")] = None,
    state: Annotated[
        str | None, typer.Option(help="active, archived or quarantined; active brings back.")
    ] = None,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Change an event; its earlier text stays in its history. Without options, in $EDITOR.

    For example:
      cvx edit 1 --text "the spare key is in the shed" --tag house
      EDITOR=nano cvx edit 1
    """
    from cvx.cli.parse_events import from_options

    given: dict[str, Any] = {
        "text": sys.stdin.read().rstrip("\n") if text == "-" else text,
        "timestamp": timestamp_of(time),
        "tags": tag,
        "metadata": from_options(metadata) if metadata else None,
        "salience": salience,
        "trust": trust,
        "state": state,
    }
    with opened(store, embedder, embeds=text is not None or not any(given.values())) as memory:
        before = memory.get(event)
        if all(value is None for value in given.values()):
            given["text"] = _edited(before.text)
        if given["text"] == before.text:
            del given["text"]
        changed = memory.update(event, **given)
    if json:
        emit({"event": plain_event(changed), "version": changed.version})
    else:
        show_event(changed)


def _edited(text: str) -> str:
    """Return a text as it is after its reader changed it in an editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise InvalidInputError("nothing to change: give --text or another option, or set EDITOR")
    with tempfile.TemporaryDirectory(prefix="cvx-") as folder:
        path = Path(folder) / "memory.txt"
        path.write_text(text + "\n", encoding="utf-8", newline="")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
            after = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"the editor {editor!r} did not work ({error}): set EDITOR") from error
    if done.returncode:
        raise FileError(f"the editor {editor!r} ended with {done.returncode}: nothing was changed")
    return after.removesuffix("\n")


def tail(
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many at the most.")] = 10,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
    entity: Entity = None,
    namespace: Whose = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show what was written last, in the order of writing; with -f until it is interrupted.

    For example:
      cvx tail -k 3
      cvx tail -f --entity ana

    Exit code 1 where there is nothing, unless with -f.
    """

    def passes(event: Event) -> bool:
        mine = event.namespace == (namespace or "") and event.state == "active"
        return mine and (not entity or event.entity in entity)

    with opened(store, embeds=False, reads=True) as memory:
        told = end = _newest_id(memory)
        events: list[Event] = []
        while end and len(events) < count:
            some = memory.record.events(range(max(end - 499, 1), end + 1))
            events = [*filter(passes, sorted(some, key=lambda one: one.id)), *events]
            end = max(end - 500, 0)
        if json and not follow:
            emit({"events": [plain_event(event) for event in events[-count:]]})
        else:
            for event in events[-count:]:
                _one(event, as_json=json)
        if not events and not json:
            if not follow:
                line("nothing is remembered that passes", dim=True)
            note_elsewhere(memory, namespace or "")
        if not events and not follow:
            raise typer.Exit(NOTHING)
        while follow:
            sys.stdout.flush()
            time.sleep(_POLL)
            newest = _newest_id(memory)
            for event in memory.record.events(range(told + 1, newest + 1)):
                if passes(event):
                    _one(event, as_json=json)
            told = max(told, newest)


def _one(event: Event, *, as_json: bool) -> None:
    if as_json:
        emit(plain_event(event))
    else:
        show_event(event)


def _newest_id(memory: Memory) -> int:
    """Return the id of the event that was written last, 0 where there is none."""
    return int(memory.record.query("SELECT ifnull(max(event_id), 0) FROM events")[0][0])
