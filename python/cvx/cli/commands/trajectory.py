"""cvx trajectory."""

from __future__ import annotations

from typing import Annotated

import typer

from cvx.cli.failing import NOTHING
from cvx.cli.opening import only_one, opened
from cvx.cli.options import Json, Namespace, Since, Store, Until
from cvx.cli.output import emit, line, plain_event, when
from cvx.cli.times import timestamp_of
from cvx.escaping import one_line


def trajectory(
    entity: Annotated[str | None, typer.Option(help="Whose events.")] = None,
    episode: Annotated[int | None, typer.Option(help="Which episode's steps.")] = None,
    namespace: Namespace = "",
    since: Since = None,
    until: Until = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only so many, the latest.")] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """List what happened to an entity, or in an episode, in order.

    For example:
      cvx trajectory --entity ana --since 2026-11-01
      cvx trajectory --episode 1 --json
    """
    from cvx.memory.timeline import Span, timeline

    only_one(entity=entity is not None, episode=episode is not None)
    span = Span(timestamp_of(since, "--since"), timestamp_of(until, "--until"), last)
    with opened(store, embeds=False, reads=True) as memory:
        events = timeline(memory, entity=entity, episode=episode, namespace=namespace, span=span)
    if json:
        emit({"events": [plain_event(event) for event in events]})
    else:
        for event in events:
            end = "" if event.reward is None else f"  reward {event.reward:g}"
            away = "" if event.state == "active" else f"  ({event.state})"
            line(f"{event.event_id:>6}  {when(event.timestamp)}{end}{away}", dim=True)
            line(f"        {one_line(event.text)}")
            if event.action:
                line(f"        did: {one_line(event.action)}")
    if not events:
        if not json:
            line("nothing happened there", dim=True)
        raise typer.Exit(NOTHING)
