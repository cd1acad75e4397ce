"""cvx link."""

from __future__ import annotations

from typing import Annotated

import typer

from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import emit, line


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
        memory.link(cause, effect, kind, weight, why, evidence=evidence, effect_first=effect_first)
    if json:
        emit({"from": cause, "to": effect, "kind": kind, "weight": weight, "why": why})
    else:
        line(f"{cause} {kind} {effect}")
