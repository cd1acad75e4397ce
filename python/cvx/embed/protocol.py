"""The protocol of an embedder, and checks of what goes in and comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cvx.errors import EmbedderAnswerError, EmbedderDimensionError, InvalidInputError
from cvx.tracing import watched
from cvx.types import Vector


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors of one fixed dimension."""

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch of documents.

        Parameters
        ----------
        texts : sequence of str
            n texts; n may be 0.

        Returns
        -------
        ndarray of shape (n, dim), float32
        """
        ...

    def info(self) -> Mapping[str, Any]:
        """Say what the vectors are.

        At least ``id`` (str), ``dim`` (int) and ``semantic`` (bool). The embedders of cvx also
        say ``provider``, ``model`` (str), ``prefixes`` (what is put before a ``query`` and a
        ``document``) and ``max_tokens`` (int, or None where it is not known). Everything is JSON.

        Vectors of two embedders with different ``id`` must not be mixed.
        """
        ...


class Threaded(ABC):
    """Gives an embedder ``aembed`` and ``aembed_query``, which work in a thread of their own.

    The event loop goes on meanwhile. A cancelled call returns at once; its thread ends by itself.
    """

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch of documents."""

    async def aembed(self, texts: Sequence[str]) -> Vector:
        """Do what ``embed`` does, without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.embed, texts)

    async def aembed_query(self, text: str) -> Vector:
        """Do what `embed_query` does, without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(embed_query, self, text)


class _Embeds(Protocol):
    def embed(self, texts: Sequence[str]) -> Vector: ...


@watched("embed", "text")
def embed_query(embedder: _Embeds, text: str) -> Vector:
    """Embed what is searched for, as opposed to what is stored.

    Parameters
    ----------
    embedder : Embedder
        Its ``embed_query`` is used if it has one (see `Prefixed`), else its ``embed``.
    text : str
        The question or cue.

    Returns
    -------
    ndarray of shape (dim,), float32
    """
    own = getattr(embedder, "embed_query", None)
    vector: Vector = own(text) if callable(own) else embedder.embed([text])[0]
    return vector


async def aembed(embedder: Embedder, texts: Sequence[str]) -> Vector:
    """Embed with any embedder without blocking the event loop.

    Its own ``aembed`` is awaited if it has one, else ``embed`` runs in a thread.
    """
    import asyncio

    own = getattr(embedder, "aembed", None)
    vectors: Vector = (
        await own(texts) if callable(own) else await asyncio.to_thread(embedder.embed, texts)
    )
    return vectors


def listed(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list.

    Raises
    ------
    InvalidInputError
        A single string, or something in the batch that is not a string.
    """
    if isinstance(texts, str):
        raise InvalidInputError("texts is a single str: give a list of texts")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInputError(f"a text is {text!r}: every text must be a str")
    return list(texts)


def checked_rows(values: object, n: int, source: str, dim: int | None = None) -> Vector:
    """Take what an embedder answered, if it is what it should be.

    Parameters
    ----------
    values : array-like
        What should be one row of finite numbers for each text.
    n : int
        How many texts there were, at least 1.
    source : str
        Who answered, for the messages.
    dim : int, optional
        What the dimension must be.

    Returns
    -------
    ndarray of shape (n, dim), float32

    Raises
    ------
    EmbedderDimensionError
        Rows of another dimension.
    EmbedderAnswerError
        Anything else that is wrong with it.
    """
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise EmbedderAnswerError(
            f"{source} answered with no matrix of numbers ({error}): choose an embedding model"
        ) from error
    if given.ndim != 2 or given.dtype.kind not in "fiu" or given.shape[1] == 0:
        raise EmbedderAnswerError(
            f"{source} answered with no matrix of numbers (shape {given.shape}, {given.dtype}): "
            "choose an embedding model"
        )
    if len(given) != n:
        raise EmbedderAnswerError(
            f"{source} answered with {len(given)} vectors for {n} texts: "
            "a server that cannot embed batches needs batch_size=1"
        )
    if dim is not None and given.shape[1] != dim:
        raise EmbedderDimensionError(
            f"{source} gives {given.shape[1]} dimensions, {dim} were expected: choose a model with "
            f"{dim} dimensions, or embed everything again with this one"
        )
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(given, dtype=np.float32)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise EmbedderAnswerError(
            f"{source} answered with NaN or infinity for text {int(np.argmax(bad))} of {n}: "
            "restart the server, or choose another build of the model"
        )
    return rows


def normalised(rows: Vector, source: str) -> Vector:
    """Scale every row to norm 1.

    Raises
    ------
    EmbedderAnswerError
        A row of zeros, which has no direction.
    """
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not norms.all():
        raise EmbedderAnswerError(
            f"{source} answered with zeros for text {int(np.argmin(norms))} of {len(rows)}: "
            "zeros have no direction; leave out empty texts"
        )
    return np.asarray(rows / norms, dtype=np.float32)
