"""cvx why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.failing import NOTHING
from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import emit, line, plain_event, when
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.memory.story import StoryStep


def why(
    event: Annotated[int, typer.Argument(help="The id of the event.")],
    depth: Annotated[int, typer.Option(min=1, help="How many links away at the most.")] = 5,
    consequences: Annotated[
        bool, typer.Option("--consequences", help="What it led to, instead of what led to it.")
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Who asks; by default whoever the event is of."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Say what led to an event, over its links backwards. Exit code 1 where nothing is known.

    For example:
      cvx link 1 2 --why "the drain is too small"
      cvx why 2
    """
    with opened(store, embeds=False, reads=True) as memory:
        asked = memory.get(event)
        walk = memory.consequences if consequences else memory.why
        story = walk(
            event,
            namespace=asked.namespace if namespace is None else namespace,
            max_depth=depth,
        )
    if json:
        emit(
            {
                "event": plain_event(asked),
                "steps": [_plain(step) for step in story.steps],
                "narrative": str(story),
                "truncated": story.truncated,
                "deeper": story.deeper,
            }
        )
    else:
        line(f"{event:>6}  {when(asked.timestamp)}", dim=True)
        line(f"        {one_line(asked.text)}")
        for step in story.steps:
            _show(step, consequences=consequences)
        if story:
            line()
            line(one_line(str(story), 10_000))
    if not story:
        if not json:
            line("nothing is known to have come of it" if consequences else "no cause is known")
        raise typer.Exit(NOTHING)


def _plain(step: StoryStep) -> dict[str, Any]:
    edge = step.edge
    return {
        "depth": step.depth,
        "event": plain_event(step.event),
        "link": {
            "from": edge.cause,
            "to": edge.effect,
            "kind": edge.kind,
            "weight": edge.weight,
            "why": edge.why,
            "evidence": edge.evidence,
        },
    }


def _show(step: StoryStep, *, consequences: bool) -> None:
    indent = "    " * step.depth
    word = "led to" if consequences else "because"
    reason = f": {one_line(step.edge.why)}" if step.edge.why else ""
    line(f"        {indent}{word} ({step.edge.kind}, {step.edge.weight:g}){reason}", dim=True)
    line(f"{step.event.event_id:>6}  {indent}{one_line(step.event.text)}")
