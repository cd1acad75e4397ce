"""A check that also builds the index from the record, and compares it with the stored one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cvx.errors import CvxError
from cvx.index import RawIndex
from cvx.store import IndexKind, Record, doctor
from cvx.store.database import describe
from cvx.store.doctor.findings import Check, Finding, Report
from cvx.store.replica import Replica
from cvx.store.snapshots import Snapshots


def check(path: Path | str, *, deep: bool = False, **options: Any) -> Report:
    """Do what ``cvx.store.doctor.check`` does; ``deep`` compares the index node by node, too."""
    report = doctor.check(path, **options)
    if not deep or any(one.check in (Check.FILE, Check.MISPLACED) for one in report.findings):
        return report
    different = tuple(index_differences(Path(path)))
    return replace(report, findings=(*report.findings, *different))


def repaired(folder: Path) -> Path:
    """Return the folder of a new store, of what is sound in this one."""
    target = folder.with_name(f"{folder.name}-repaired")
    doctor.repair(folder, target)
    return target


def index_differences(folder: Path) -> list[Finding]:
    """Compare the newest good snapshot, brought up to date, with an index built from the record.

    Both are made from a copy of the record in RAM; nothing on disk changes but that a missing
    lock file is made.
    """
    try:
        kind = IndexKind.of(describe(folder))
        if kind is None:
            return []
        with Record(folder / "memory.db") as record:
            loaded = Snapshots(folder / "index", record, kind.made).newest()
            twin = record.copy()
        with twin:
            built = Replica(twin, lambda: kind.empty(twin)).index
            if loaded is None:
                return []
            stored = Replica(twin, lambda: kind.empty(twin), loaded).index
    except CvxError as error:
        return [Finding(Check.SNAPSHOT, "index", f"it cannot be built: {error}")]
    where = f"index/{loaded[1]}.cvx"
    return [Finding(Check.SNAPSHOT, where, what) for what in _differences(stored, built)]


def _differences(stored: RawIndex, built: RawIndex) -> Iterator[str]:
    given = [int(index.stats()["ids_given"]) for index in (stored, built)]
    if given[0] != given[1]:
        yield f"it has given {given[0]} ids, the record {given[1]}"
        return
    for node in range(given[0]):
        if _node(stored, node) != _node(built, node):
            yield f"node {node} differs from its row in the record"
    edges = [
        {(e.from_node, e.to_node, e.kind, e.weight) for e in index.edges()}
        for index in (stored, built)
    ]
    for a, b, kind, _ in sorted(edges[0] ^ edges[1]):
        yield f"the edge {a} -> {b} ({kind}) is not the same in both"


def _node(index: RawIndex, node: int) -> tuple[object, ...] | None:
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
