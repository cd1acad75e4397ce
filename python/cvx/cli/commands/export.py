"""cvx export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import counted, emit, line, progress


def export(
    path: Annotated[
        Path, typer.Argument(help="Where to; - is stdout. There must be nothing of that name.")
    ],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="jsonl, parquet or duckdb; by default what the name ends in."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Write everything the memory knows to a file.

    For example:
      cvx export backup.jsonl
      cvx export memory.duckdb --json

    The name ends in .jsonl, .parquet (it becomes a folder) or .duckdb. Vectors, links, aliases,
    episodes, counts, decisions and history are in it; cvx import makes the same memory again.
    """
    from cvx.memory.transfer import export as write

    if json and str(path) == "-":
        raise typer.BadParameter("--json and - both want stdout: give a file, or leave out --json")
    with opened(store, embeds=False, reads=True) as memory, progress("exporting") as tick:
        header = write(memory, path, format=format, progress=tick)
    told = {"path": str(path), "rows": dict(header.counts), "embedder": header.meta["embedder"]}
    if json:
        emit(told)
    elif str(path) != "-":
        line(f"wrote {counted(header.counts['events'], 'event')} ({header.total:,} rows) to {path}")
