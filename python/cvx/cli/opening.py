"""Opens the memory that --store and --embedder name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cvx.cli.console import note
from cvx.errors import InvalidInputError, SettingsMismatchError, StoreNotFoundError

if TYPE_CHECKING:
    from cvx.embed import Embedder
    from cvx.memory import Memory
    from cvx.store.database import Description


def folder_of(store: Path | None) -> Path:
    """Return the folder that is meant.

    Raises
    ------
    InvalidInputError
        Neither --store nor CVX_STORE says it, or it is a file.
    """
    if store is None or not str(store).strip():
        raise InvalidInputError("no store: say --store FOLDER, or set CVX_STORE to a folder")
    folder = store.expanduser()
    if folder.is_file():
        raise InvalidInputError(f"{folder} is a file, and a store is a folder: give that one")
    return folder


@contextmanager
def opened(
    store: Path | None,
    spec: str | None = None,
    *,
    create: bool = False,
    embeds: bool = True,
    reads: bool = False,
) -> Iterator[Memory]:
    """Open the memory for one command.

    Parameters
    ----------
    store : Path or None
        As given.
    spec : str, optional
        The embedder as given; by default the one that the store remembers.
    create : bool, default False
        Whether a store may be made.
    embeds : bool, default True
        Whether the command embeds anything; where not, no embedder is made or reached.
    reads : bool, default False
        Whether the command only reads, and so works where nothing can be written.

    Raises
    ------
    StoreNotFoundError
        There is no store, and none may be made.
    SettingsMismatchError
        The store is of another embedder, or of one that must be named.
    """
    from cvx.memory import Memory
    from cvx.memory.settings import remembered
    from cvx.store.database import describe

    folder = folder_of(store)
    try:
        known = describe(folder)
    except StoreNotFoundError:
        if not create:
            raise
        known = None
    embedder = embedder_for(known, spec, embeds=embeds)
    metric = "cosine" if known is None else known.metric
    read_only = reads and not _writable(folder)
    with Memory.open(
        folder, embedder=embedder, metric=metric, create=create, read_only=read_only
    ) as memory:
        if not read_only:
            memory._backend.remember_spec(None if spec is None else remembered(spec))
        if known is None:
            semantic = embedder.info()["semantic"]
            note(
                f"made a new memory in {folder}"
                + (
                    ""
                    if semantic
                    else "; its embedder knows spelling, not meaning (see --embedder)"
                )
            )
        yield memory


def embedder_for(known: Description | None, spec: str | None, *, embeds: bool) -> Embedder:
    """Return the embedder for a store, or for one that is to be made."""
    from cvx.embed import LexicalEmbedder
    from cvx.embed.check import check
    from cvx.embed.registry import Absent, embedder_from, embedder_of, remembered_embedder

    if known is None or known.embedder is None or known.dim is None:
        made = LexicalEmbedder() if spec is None else embedder_from(spec)
        check(made)
        return made
    if spec is not None:
        return embedder_from(spec, dim=known.dim)
    if not embeds:
        return Absent(known.embedder, known.dim)
    if known.spec is not None:
        return remembered_embedder(known.spec, dim=known.dim)
    inferred = embedder_of(known.embedder)
    if inferred is None:
        raise SettingsMismatchError(
            f"the vectors in this store are of {known.embedder}, and it does not remember how to "
            "make that embedder: name it once with --embedder"
        )
    return inferred


def _writable(folder: Path) -> bool:
    return all(os.access(path, os.W_OK) for path in (folder, folder / "memory.db"))


def only_one(**given: object) -> str:
    """Return which of several options that exclude each other was given.

    Raises
    ------
    typer.BadParameter
        None of them, or several.
    """
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if len(named) != 1:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter(f"give exactly one of {options}; given: {', '.join(named) or '-'}")
    return named[0].removeprefix("--").replace("-", "_")
