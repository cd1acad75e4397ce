"""Checks a stored memory, and saves what is sound of a damaged one into a new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from cvx.arguments import a_folder, some_texts
from cvx.errors import DamagedStoreError, InvalidInputError, RecordIOError, SettingsMismatchError
from cvx.store import IndexKind, Store
from cvx.store.doctor import Report, Salvaged, examine, salvage


def check(
    path: str | os.PathLike[str],
    *,
    look_for: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Examine the memory in a folder; nothing is changed, and no embedder is needed.

    Parameters
    ----------
    path : str or path
        The folder.
    look_for : sequence of str
        Texts of which nothing should be left in the folder, such as what was erased: whatever
        still says one is named, without repeating it.
    progress : callable, optional
        Is told (checks done, of how many).

    Returns
    -------
    Report
        ``sound`` says whether anything serious was found.

    Raises
    ------
    StoreNotFoundError, StoreVersionError
        There is no store, or none of this version.
    InvalidInputError
        A path that no folder can have; an empty text to look for.

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
    folder = a_folder("path", path)
    looked_for = some_texts("look_for", look_for)
    if not all(map(str.strip, looked_for)):
        raise InvalidInputError("look_for: give texts that say something")
    kind = None
    # Where nothing was stored yet, or nothing can be read, there is no index to look at.
    with suppress(SettingsMismatchError, DamagedStoreError, RecordIOError):
        kind = IndexKind.of(folder)
    return examine(folder, kind, look_for=looked_for, progress=progress)


def repair(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Salvaged:
    """Save what is sound of a damaged memory into a new one, and build its index.

    What hangs on a row that is lost goes with it; texts that cannot be stored are cleaned; changes
    that the record lacks are gone. The damaged memory is only read.

    Parameters
    ----------
    path : str or path
        The folder of the damaged memory.
    target : str or path
        A folder that is not there yet.

    Raises
    ------
    InvalidInputError
        A path that no folder can have.
    StoreNotFoundError, FileError, RecordIOError, StoreVersionError, DamagedStoreError
        As for ``cvx.store.doctor.salvage``.
    """
    new = a_folder("target", target)
    saved = salvage(a_folder("path", path), new)
    with suppress(SettingsMismatchError):
        # A store that no memory opened yet says nothing of its vectors.
        store = Store(new, IndexKind.of(new))
        try:
            store.snapshot()
        finally:
            store.close()
    return saved
