"""Looking for damage in a stored memory, from outside: it need not be one that can be opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from cvx.arguments import some_texts
from cvx.errors import (
    CvxError,
    DamagedStoreError,
    InvalidInputError,
    RecordIOError,
    SettingsMismatchError,
)
from cvx.index import RawIndex
from cvx.store import IndexKind, Record
from cvx.store.doctor import Report, Salvaged, examine, repair, salvage
from cvx.store.doctor.findings import Check, Finding
from cvx.store.peek import describe
from cvx.store.replica import Replica
from cvx.store.snapshots import Snapshots


def check(
    path: str | os.PathLike[str],
    *,
    mend: bool = False,
    deep: bool = False,
    accept_lost_tail: bool = False,
    look_for: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Examine the memory in a folder, and repair it if asked to.

    No embedder is needed. Without ``mend`` nothing is changed.

    Parameters
    ----------
    path : str or path
        The folder.
    mend : bool, default False
        Repair what can be repaired without losing what was acknowledged: rows in which one bit
        flipped are put right, other damaged rows move to the table ``set_aside``, text index,
        secondary indexes and snapshots are built anew, a broken-off erase is finished.
    deep : bool, default False
        Also build the index from the record and compare it with the stored one, node by node.
    accept_lost_tail : bool, default False
        With ``mend``: go on although the newest changes are known to be missing.
    look_for : sequence of str
        Texts of which nothing should be left in the folder, such as what was erased: whatever
        still says one is named, without repeating it. Without ``mend`` only.
    progress : callable, optional
        Is told (checks done, of how many).

    Returns
    -------
    Report
        ``sound`` says whether anything serious is left.

    Raises
    ------
    StoreNotFoundError, StoreVersionError
        There is no store, or none of this version.
    InvalidInputError
        An empty text to look for, or one together with ``mend``.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Memory.open(folder, LexicalEmbedder(16)) as memory:
    ...         _ = memory.add("a mug on a shelf")
    ...     report = check(folder)
    >>> report.sound, report.rows["events"]
    (True, 1)
    """
    folder = Path(path)
    looked_for = some_texts("look_for", look_for)
    if not all(map(str.strip, looked_for)) or (looked_for and mend):
        raise InvalidInputError("look_for: give texts that say something, and no mend")
    kind = None
    try:
        kind = kind_of(folder)
    except (SettingsMismatchError, DamagedStoreError, RecordIOError):
        # Nothing was stored yet, or nothing can be read, which the examination says: either way
        # there is no index to look at.
        mend = deep = False
    report = examine(folder, kind, look_for=looked_for, progress=progress)
    unopenable = any(f.check in (Check.FILE, Check.MISPLACED) for f in report.findings)
    if kind is not None and deep and not unopenable:
        found = (*report.findings, *disagreements(folder, kind))
        report = replace(report, findings=found, left=found)
    if kind is None or not mend:
        return report
    return repair(folder, kind, report, accept_lost_tail=accept_lost_tail)


def rescue(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Salvaged:
    """Save what can still be read of a damaged memory into a new one, and put that in order.

    Parameters
    ----------
    path : str or path
        The folder of the damaged memory; it is only read.
    target : str or path
        A folder that is not there yet.

    Raises
    ------
    StoreNotFoundError, FileError, DamagedStoreError
        As for ``cvx.store.doctor.salvage``.
    """
    saved = salvage(Path(path), Path(target))
    check(target, mend=True)
    return saved


def kind_of(folder: Path) -> IndexKind[RawIndex]:
    """Return the kind of index that a store has, as the store itself says it.

    Raises
    ------
    SettingsMismatchError
        The store does not say of which embedder its vectors are.
    """
    known = describe(folder)
    if known.embedder is None or known.dim is None:
        raise SettingsMismatchError(f"{folder} names no embedder: open it once with the right one")
    dim, metric = known.dim, known.metric
    return IndexKind(
        lambda **settings: RawIndex(dim, metric=metric, **settings),
        partial(RawIndex.load, verify=True, mmap=True),
        known.embedder,
        metric,
        dim,
    )


_MOST = 20
"""Nodes that are named one by one."""


def disagreements(folder: Path, kind: IndexKind[RawIndex]) -> list[Finding]:
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


def _differences(stored: RawIndex, built: RawIndex) -> Iterator[str]:
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
