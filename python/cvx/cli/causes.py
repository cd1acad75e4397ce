"""cvx causes."""

from __future__ import annotations

from typing import Annotated

import typer

from cvx.cli.commands.why import found
from cvx.cli.failing import NOTHING
from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import emit, line
from cvx.escaping import one_line


def causes(
    event: Annotated[str, typer.Argument(help="The id of the event, or words that find it.")],
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many at the most.")] = 5,
    draw: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Link what is at least so likely.")
    ] = 0.5,
    store: Store = None,
    json: Json = False,
) -> None:
    """Propose what led to an event, and link what is likely. Exit code 1 where nothing is.

    What is less likely is kept as a candidate that no story tells.

    For example:
      cvx causes "the cellar flooded"
      cvx why "the cellar flooded"
    """
    number = int(event) if event.isascii() and event.isdecimal() else None
    with opened(store, embeds=number is None) as memory:
        number = found(memory, event, None) if number is None else number
        made = memory.causes.propose(number, count, draw=draw)
        texts = [memory.get(int(link.cause)).text for link in made]
    for link, text in zip(made, texts, strict=True):
        if json:
            emit(
                {"cause": link.cause, "effect": link.effect, "text": text}
                | {"probability": link.probability, "state": link.state, "why": link.why}
            )
        else:
            line(f"{link.cause:>6}  {link.weight:.0%}  {link.state}")
            line(f"        {one_line(text)}")
            if link.why:
                line(f"            {one_line(link.why)}", dim=True)
    if not made:
        if not json:
            line("nothing that is remembered is likely to have led to it")
        raise typer.Exit(NOTHING)
