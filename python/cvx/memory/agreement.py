"""Whether the stored index is the one that the record would make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cvx.errors import CvxError
from cvx.index import TemporalIndex
from cvx.store import IndexKind, Record
from cvx.store.doctor.findings import Check, Finding
from cvx.store.replica import Replica
from cvx.store.snapshots import Snapshots

_MOST = 20
"""Nodes that are named one by one."""


def disagreements(folder: Path, kind: IndexKind[TemporalIndex]) -> list[Finding]:
    """Compare the newest good snapshot, brought up to date, with an index built from the record.

    Both are made from a copy of the record in RAM; nothing on disk changes but that a missing
    lock file is made.
    """
    try:
        with Record(folder / "memory.db") as record:
            made = (kind.embedder, kind.metric, kind.dim)
            loaded = Snapshots(folder / "index", record, kind.load, made).newest()
            twin = record.copy()
        with twin:
            built = Replica(twin, lambda: kind.empty(twin)).index
            if loaded is None:
                return []
            stored = Replica(twin, lambda: kind.empty(twin), loaded).index
    except CvxError as error:
        return [Finding(Check.INDEX_DIFFERS, "index", f"it cannot be built: {error}")]
    where = f"index/{loaded[1]}.cvx"
    return [Finding(Check.INDEX_DIFFERS, where, what) for what in _differences(stored, built)]


def _differences(stored: TemporalIndex, built: TemporalIndex) -> Iterator[str]:
    given = [int(index.stats()["ids_given"]) for index in (stored, built)]
    if given[0] != given[1]:
        yield f"it has given {given[0]} ids, the record {given[1]}"
        return
    nodes = [node for node in range(given[0]) if _node(stored, node) != _node(built, node)]
    for node in nodes[:_MOST]:
        yield f"node {node} differs from its row in the record"
    if len(nodes) > _MOST:
        yield f"{len(nodes) - _MOST} further nodes differ"
    edges = [
        {(e.from_node, e.to_node, e.kind, e.weight) for e in index.edges()}
        for index in (stored, built)
    ]
    for a, b, kind, _ in sorted(edges[0] ^ edges[1])[:_MOST]:
        yield f"the edge {a} -> {b} ({kind}) is not the same in both"


def _node(index: TemporalIndex, node: int) -> tuple[object, ...] | None:
    if node not in index:
        return None
    vector = index.vector(node)
    return (
        index.step(node),
        index.namespace(node),
        index.tags(node),
        index.recallable(node),
        None if vector is None else vector.tobytes(),
    )
