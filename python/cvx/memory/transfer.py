"""Exports a memory to other formats, and imports it from them; DuckDB of a causal core too."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from cvx.arguments import a_file, a_folder
from cvx.embed.registry import Absent
from cvx.errors import DuplicateKeyError, ExportError, RecordIOError, SnapshotError
from cvx.index import RawIndex
from cvx.memory.memory import Memory
from cvx.memory.recall_verbs import FEWEST_SAVED
from cvx.store import Record
from cvx.store.files import refuse_link
from cvx.store.lock import Tail
from cvx.store.new_store import founded
from cvx.store.snapshots import Snapshots
from cvx.store.transfer import (
    Header,
    Imported,
    format_of,
    import_into,
    reader_of,
)
from cvx.store.transfer.duckdb_file import core_events
from cvx.types import DEFAULT_NAMESPACE, Event

Progress = Callable[[int, int], None] | None


def to_duckdb(memory: Memory, path: str | os.PathLike[str], progress: Progress = None) -> Header:
    """Write a memory to a DuckDB file, whatever its name; see ``memory.admin.export``."""
    return memory.admin.export(path, format="duckdb", progress=progress)


def import_export(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    again: bool = False,
    progress: Progress = None,
) -> Imported:
    """Take an export into the memory in a folder, all of it or nothing.

    A new or empty memory becomes what was exported: ids, times of recording and history are the
    same. One that holds something gets the events under new ids, recorded now.

    Parameters
    ----------
    folder : str or path
        Made if there is none; nothing of it stays if the import is refused.
    path : str or path
        What ``memory.admin.export`` wrote.
    format : {"jsonl", "parquet", "duckdb"}, optional
        By default what the name ends in.
    again : bool, default False
        Take it in although that was done before.
    progress : callable, optional
        Is told (rows read, of how many).

    Raises
    ------
    InvalidInputError, FileError, ExportError, SettingsMismatchError, MissingExtraError
        As for ``cvx.store.transfer.import_into``.
    RecordIOError
        The folder's ``index`` is a symbolic link; nothing is taken in.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     memory = Memory(embedder=LexicalEmbedder(16))
    ...     _ = memory.add("a mug on a shelf")
    ...     _ = memory.admin.export(f"{folder}/all.jsonl")
    ...     _ = import_export(f"{folder}/copy", f"{folder}/all.jsonl")
    ...     with Memory.open(f"{folder}/copy", embedder=LexicalEmbedder(16)) as copy:
    ...         copy.recall("mug")[0].event.text
    'a mug on a shelf'
    """
    target, source = a_folder("folder", folder), a_file("path", path)
    incoming = reader_of(source, format_of(source, format))
    # Before everything is read: a memory whose index is a link is not opened either.
    refuse_link(target / "index")
    there = (target / "memory.db").exists()
    with Record(target / "memory.db") if there else founded(target) as record:
        done = import_into(record, incoming, again=again, progress=progress)
        identity, dim = record.meta("embedder"), record.meta("dim")
        metric = record.meta("metric") or "cosine"
    if identity is None or dim is None:
        return done
    made, done = done.index, replace(done, index=None)
    kept = made is not None and _kept(target, (identity, metric, int(dim)), *made)
    del made  # What is opened now is mapped.
    if kept and done.counts["events"] < FEWEST_SAVED:
        return done
    # The index, and the columns of a recall, are made here and kept, instead of at the next use.
    with Memory.open(target, embedder=Absent(identity, int(dim)), metric=metric) as memory:
        if not kept:
            memory.admin.snapshot()
        memory._recaller.engine().corpus.refresh()
    return done


def _kept(folder: Path, kind: tuple[str, str, int], index: RawIndex, tail: Tail) -> bool:
    """Write the index that an import made as a snapshot, unless something was written since."""
    with Record(folder / "memory.db") as record, record.locked():
        fits = record.tail() == tail
        if fits:
            # The record has it all: a snapshot that fails costs time at the next opening.
            snapshots = Snapshots(folder / "index", record, kind)
            with suppress(SnapshotError, RecordIOError):
                snapshots.write(index, tail)
        return fits


def from_duckdb(
    memory: Memory,
    path: str | os.PathLike[str],
    *,
    namespace: str = DEFAULT_NAMESPACE,
    keep_vectors: bool = False,
    progress: Progress = None,
) -> list[int]:
    """Take over the events of a DuckDB file with the blueprint's table, all of them or none.

    Each gets the name of the file and its ``event_id`` there as its key, so that a second import
    is refused; causes become links of kind "caused" with their relationship as the reason.

    Parameters
    ----------
    memory : Memory
        Where to.
    path : str or path
        The file of a ``CausalMemoryCore``, or any with such a table ``events``.
    namespace : str, default ""
        Into which one.
    keep_vectors : bool, default False
        Take over the vectors of the file, which does not say of which model they are. By default
        texts are embedded with the memory's own embedder.
    progress : callable, optional
        Is told (events read, of how many).

    Returns
    -------
    list of int
        The events here, in the order of their ids there.

    Raises
    ------
    DuplicateKeyError
        They are here already.
    InvalidVectorError
        Vectors that are to be kept are of another dimension.
    ExportError, FileError, MissingExtraError
        There is no such table; the file, or DuckDB, cannot be used.
    """
    source = Path(path)
    known: dict[int, int] = {}
    causes: list[tuple[int, int, str]] = []
    with memory.admin.transaction():
        for batch, total in core_events(source):
            events = [
                Event(
                    timestamp=row.timestamp,
                    text=row.effect_text,
                    vector=np.asarray(row.embedding, np.float32) if keep_vectors else None,
                    namespace=namespace,
                    source=source.name,
                    key=f"{source.stem}:{row.event_id}",
                )
                for row in batch
            ]
            for event in events:
                if memory.record.event_of_key(event.key or "", namespace) is not None:
                    raise DuplicateKeyError(
                        f"{event.key!r} is the key of an event that is here already: this core was "
                        "taken over before, or give the file another name"
                    )
            ids = memory.add_many(events, again=True).tolist()
            known.update(zip((row.event_id for row in batch), ids, strict=True))
            causes += [
                (row.cause_id, row.event_id, row.relationship_text or "")
                for row in batch
                if row.cause_id is not None
            ]
            if progress is not None:
                progress(len(known), total)
        for cause, effect, reason in causes:
            if cause not in known:
                raise ExportError(
                    f"{source}: event {effect} has the cause {cause}, which is not there"
                )
            # What the core was told is taken over as it is, whichever came first.
            memory.link(known[cause], known[effect], why=reason, effect_first="allow")
    return [known[event] for event in sorted(known)]
