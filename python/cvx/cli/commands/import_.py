"""cvx import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvx.cli.opening import folder_of, opened
from cvx.cli.options import EmbedderSpec, Json, Namespace, Store
from cvx.cli.output import counted, emit, line, progress

if TYPE_CHECKING:
    from cvx.store.transfer import Imported


def import_(
    path: Annotated[Path, typer.Argument(help="What cvx export wrote.")],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="jsonl, parquet or duckdb; by default what the name ends in."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Take it in although that was done before.")
    ] = False,
    core: Annotated[
        bool,
        typer.Option("--core", help="The DuckDB file of a CausalMemoryCore: events and causes."),
    ] = False,
    keep_vectors: Annotated[
        bool,
        typer.Option(
            "--keep-vectors",
            help="With --core: its vectors are of this store's embedder; else texts are embedded.",
        ),
    ] = False,
    namespace: Namespace = "",
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Take an export in, all of it or nothing.

    For example:
      cvx import backup.jsonl --store restored
      cvx import causal.duckdb --core --json

    A new store becomes what was exported, its embedder and history included. A store that holds
    something gets the events with their links, under new ids. Interrupted, nothing was taken in:
    run it again.
    """
    from cvx.memory.transfer import import_export

    if core:
        _import_core(path, store, embedder, (namespace, keep_vectors), as_json=json)
        return
    if keep_vectors or namespace or embedder:
        raise typer.BadParameter("--keep-vectors, --namespace and --embedder go with --core")
    with progress("importing") as tick:
        done = import_export(folder_of(store), path, format=format, again=again, progress=tick)
    if json:
        emit({"merged": done.merged, "rows": dict(done.counts), "left_out": dict(done.left_out)})
    else:
        _tell(done)


def _tell(done: Imported) -> None:
    how = "added to what is here, under new ids" if done.merged else "restored as they were"
    line(f"{counted(done.counts['events'], 'event')} {how} ({sum(done.counts.values()):,} rows)")
    for table, number in done.left_out.items():
        line(f"left out: {counted(number, 'row')} of {table}, part of the other store's history")


def _import_core(
    path: Path,
    store: Path | None,
    embedder: str | None,
    how: tuple[str, bool],
    *,
    as_json: bool,
) -> None:
    from cvx.memory.transfer import Origin, from_duckdb

    with opened(store, embedder, create=True) as memory, progress("importing") as tick:
        ids = from_duckdb(memory, path, Origin(*how), tick)
    if as_json:
        emit({"merged": True, "rows": {"events": len(ids)}, "left_out": {}})
    else:
        line(f"{counted(len(ids), 'event')} with their causes taken over")
