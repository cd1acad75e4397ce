"""Moves the memory in a folder to another embedder; the work itself is `cvx.store.reembed`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cvx.embed import Embedder
from cvx.errors import StoreNotFoundError
from cvx.memory.memory import Memory
from cvx.store import Record
from cvx.store.reembed import reembed as reembed_record


def reembed(
    path: str | os.PathLike[str],
    embedder: Embedder,
    *,
    spec: str | None = None,
    batch: int = 256,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Move the memory in a folder to another embedder; broken off, the same call goes on.

    The memory answers with its old vectors until a single transaction switches it over. Then it
    is opened once, so that the index is built and kept.

    Parameters
    ----------
    path : str or path
        The folder.
    embedder : Embedder
        The other one. Texts are embedded as documents.
    spec : str, optional
        How to make it, for the store to remember (``cvx.embed.registry``).
    batch, progress
        As for ``cvx.store.reembed.reembed``.

    Returns
    -------
    int
        How many different texts were embedded in this call; 0 where it was there already.

    Raises
    ------
    StoreNotFoundError
        There is no store.
    InvalidInputError, EmbedderError, InvalidVectorError
        As for ``cvx.store.reembed.reembed``.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Memory.open(folder, embedder=LexicalEmbedder(16)) as memory:
    ...         _ = memory.add("a mug on a shelf")
    ...     made = reembed(folder, LexicalEmbedder(32)), reembed(folder, LexicalEmbedder(32))
    ...     with Memory.open(folder, embedder=LexicalEmbedder(32)) as memory:
    ...         made, memory.recall("mug")[0].event.text
    ((1, 0), 'a mug on a shelf')
    """
    folder = Path(path)
    if not (folder / "memory.db").is_file():
        raise StoreNotFoundError(f"{folder} is no store: there is no memory.db in it")
    with Record(folder / "memory.db") as record:
        metric = record.meta("metric") or "cosine"
        made = reembed_record(record, embedder, spec=spec, batch=batch, progress=progress)
    with Memory.open(folder, embedder=embedder, metric=metric) as memory:
        memory._shared.snapshot_alone()
    return made
