"""Commands that move a memory elsewhere: export, import and reembed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cvx.cli.console import (
    EmbedderSpec,
    Json,
    Namespace,
    Store,
    counted,
    folder_of,
    opened,
    progress,
    tell,
)


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
    if json and str(path) == "-":
        raise typer.BadParameter("--json and - both want stdout: give a file, or leave out --json")
    with opened(store, embeds=False, reads=True) as memory, progress("exporting") as tick:
        header = memory.admin.export(path, format=format, progress=tick)
    told = {"path": str(path), "rows": dict(header.counts), "embedder": header.meta["embedder"]}
    if str(path) != "-":
        said = (
            f"wrote {counted(header.counts['events'], 'event')} ({header.total:,} rows) to {path}"
        )
        tell(told, said, as_json=json)


def import_(
    path: Annotated[Path, typer.Argument(help="What cvx export, or another memory, wrote.")],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="jsonl, parquet or duckdb; by default what the name ends in."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Take it in although that was done before.")
    ] = False,
    keep_vectors: Annotated[
        bool,
        typer.Option(
            "--keep-vectors",
            help="With --from core or chroma: its vectors are of this store's embedder; else texts "
            "are embedded.",
        ),
    ] = False,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Another memory's export: mem0, chroma, jsonl (any lines), or core, the DuckDB "
            "file of a CausalMemoryCore.",
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(help="With --from jsonl: what a field of it stands for, as in text=content."),
    ] = None,
    namespace: Namespace = "",
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Take an export in, all of it or nothing.

    For example:
      cvx import backup.jsonl --store restored
      cvx import mem0.json --from mem0
      cvx import notes.jsonl --from jsonl --field text=content --field timestamp=created
      cvx import causal.duckdb --from core --json

    A new store becomes what was exported, its embedder and history included. A store that holds
    something gets the events with their links, under new ids. Interrupted, nothing was taken in:
    run it again.
    """
    from cvx.memory.transfer import import_export

    if origin or field:
        where = store, embedder, namespace
        _import_foreign(path, origin, field or [], where, vectors=keep_vectors, as_json=json)
        return
    if keep_vectors or namespace or embedder:
        raise typer.BadParameter("--keep-vectors, --namespace and --embedder go with --from")
    with progress("importing") as tick:
        done = import_export(folder_of(store), path, format=format, again=again, progress=tick)
    how = "added to what is here, under new ids" if done.merged else "restored as they were"
    tell(
        {"merged": done.merged, "rows": dict(done.counts), "left_out": dict(done.left_out)},
        f"{counted(done.counts['events'], 'event')} {how} ({sum(done.counts.values()):,} rows)",
        *(
            f"left out: {counted(number, 'row')} of {table}, part of the other store's history"
            for table, number in done.left_out.items()
        ),
        as_json=json,
    )


def _import_foreign(
    path: Path,
    origin: str | None,
    fields: list[str],
    where: tuple[Path | None, str | None, str],
    *,
    vectors: bool,
    as_json: bool,
) -> None:
    import numpy as np

    from cvx.integrations import migration
    from cvx.memory.transfer import from_duckdb

    named = [one.partition("=") for one in fields]
    if not all(name and field for name, _, field in named):
        raise typer.BadParameter("--field names what a field stands for, as in text=content")
    if fields and origin != "jsonl":
        raise typer.BadParameter("--field goes with --from jsonl")
    if vectors and origin not in ("core", "chroma"):
        raise typer.BadParameter("--keep-vectors goes with --from core or chroma")
    store, embedder, namespace = where
    with opened(store, embedder, create=True, whole=True) as memory:
        own = memory.within(namespace) if namespace else memory
        newest, until = memory.record.query(
            "SELECT ifnull(max(event_id), 0), ifnull(max(recorded), 0) FROM events"
        )[0]
        if origin == "mem0":
            made = migration.from_mem0(own, path, namespace=None if namespace else "user_id")
        elif origin == "chroma":
            made = migration.from_chroma(own, path, vectors=vectors)
        elif origin == "jsonl":
            made = migration.from_jsonl(own, path, **{name: field for name, _, field in named})
        elif origin == "core":
            with progress("importing") as tick:
                made = np.array(
                    from_duckdb(
                        memory, path, namespace=namespace, keep_vectors=vectors, progress=tick
                    )
                )
        else:
            raise typer.BadParameter(f"--from is {origin!r}: give mem0, chroma, jsonl or core")
        ids = made.tolist()
        old = [number for number in ids if number <= newest]
        # A transaction is recorded later than all before it.
        changed = sum(event.recorded > until for event in memory.record.events(old))
    new, same = len(ids) - len(old), len(old) - changed
    how = f": {new:,} new, {changed:,} changed, {same:,} as they were" if old else ""
    told = {"merged": True, "rows": {"events": len(ids)}, "left_out": {}}
    tell(told, f"{counted(len(ids), 'event')} taken over{how}", as_json=as_json)


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
    from cvx.embed.registry import embedder_from, spec_of
    from cvx.memory.reembed import reembed as move
    from cvx.store.database import describe

    folder = folder_of(store)
    before = describe(folder)
    made = embedder_from(embedder)
    check(made)
    with progress("embedding") as tick:
        moved = move(folder, made, spec=spec_of(embedder), batch=batch, progress=tick)
    told = {
        "from": before.embedder,
        "to": made.info()["id"],
        "dim": made.info()["dim"],
        "embedded": moved,
    }
    said = f"moved from {told['from']} to {told['to']}, {counted(moved, 'text')} embedded"
    if before.embedder == told["to"]:
        said = f"nothing to do: the store is of {told['to']} already"
    tell(told, said, as_json=json)
