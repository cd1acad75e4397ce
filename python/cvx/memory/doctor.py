"""Checks and repairs a stored memory, and rescues what can be read of a damaged one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from cvx.arguments import some_texts
from cvx.errors import (
    DamagedStoreError,
    InvalidInputError,
    RecordIOError,
    SettingsMismatchError,
)
from cvx.store import IndexKind
from cvx.store.doctor import Report, Salvaged, examine, repair, salvage


def check(
    path: str | os.PathLike[str],
    *,
    mend: bool = False,
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
        Repair what can be repaired without losing what was acknowledged: damaged rows, and what
        hangs on them, move to the table ``set_aside``; text index, secondary indexes and snapshots
        are built anew; a broken-off erase is finished.
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
    ...     with Memory.open(folder, embedder=LexicalEmbedder(16)) as memory:
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
        kind = IndexKind.of(folder)
    except (SettingsMismatchError, DamagedStoreError, RecordIOError):
        # Nothing was stored yet, or nothing can be read, which the examination says: either way
        # there is no index to look at.
        mend = False
    report = examine(folder, kind, look_for=looked_for, progress=progress)
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
        As for ``cvx.store.doctor.repair``.
    """
    saved = salvage(Path(path), Path(target))
    check(target, mend=True)
    return saved
