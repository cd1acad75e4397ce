"""cvx reembed."""

from __future__ import annotations

from typing import Annotated

import typer

from cvx.cli.opening import folder_of
from cvx.cli.options import Json, Store
from cvx.cli.output import counted, emit, line, progress


def reembed(
    embedder: Annotated[
        str,
        typer.Argument(
            help="lexical[:DIM], local:DIR, ollama:MODEL[@URL] or openai:MODEL[@URL].",
        ),
    ],
    batch: Annotated[
        int, typer.Option(min=1, help="Texts a step; so many are repeated after a crash.")
    ] = 256,
    restart: Annotated[
        bool, typer.Option("--restart", help="Give up a move to another embedder under way.")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Move the memory to another embedder. It may be interrupted; the same command goes on.

    For example:
      cvx reembed ollama:nomic-embed-text
      cvx reembed local:models/all-MiniLM-L6-v2 --json

    The memory answers with the old embedder until all texts are embedded, and with the new one
    from the next moment on.
    """
    from cvx.embed.check import check
    from cvx.embed.spec import embedder_from
    from cvx.memory.reembed import reembed as move
    from cvx.memory.settings import remembered
    from cvx.store.database import describe

    folder = folder_of(store)
    before = describe(folder)
    made = embedder_from(embedder)
    check(made)
    with progress("embedding") as tick:
        moved = move(
            folder, made, spec=remembered(embedder), batch=batch, restart=restart, progress=tick
        )
    told = {
        "from": before.embedder,
        "to": made.info()["id"],
        "dim": made.info()["dim"],
        "embedded": moved,
    }
    if json:
        emit(told)
    elif before.embedder == told["to"]:
        line(f"nothing to do: the store is of {told['to']} already")
    else:
        line(f"moved from {told['from']} to {told['to']}, {counted(moved, 'text')} embedded")
