"""The protocol of an embedder, checks of what goes in and comes out, adapters of other models."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

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

    def info(self) -> Mapping[str, Any]:
        """Say what the vectors are.

        At least ``id`` (str), ``dim`` (int) and ``semantic`` (bool). The embedders of cvx also
        say ``provider``, ``model`` (str), ``prefixes`` (what is put before a ``query`` and a
        ``document``) and ``max_tokens`` (int, or None where it is not known). Everything is JSON.

        Vectors of two embedders with different ``id`` must not be mixed.
        """


class Threaded(ABC):
    """Adds ``aembed`` and ``aembed_query``, run in a worker thread, to an embedder.

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


E = TypeVar("E", bound=Embedder)


class Prefixed(Threaded):
    """Puts a prefix before each text, another one before a query than before a document.

    Models such as nomic-embed-text were trained with them and find worse without.

    Parameters
    ----------
    inner : Embedder
        What embeds.
    query, document : str
        The prefixes, with their trailing space. They become part of ``info()["id"]``.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> e = Prefixed(LexicalEmbedder(), query="search_query: ", document="search_document: ")
    >>> bool((e.embed_query("a mug") == e.embed(["a mug"])[0]).all())
    False
    """

    def __init__(self, inner: Embedder, *, query: str, document: str) -> None:
        self.inner = inner
        self.query = query
        self.document = document

    def __repr__(self) -> str:
        return f"<Prefixed of {self.inner!r}>"

    def info(self) -> dict[str, Any]:
        """Describe the inner embedder's vectors, prefixes included."""
        inner = dict(self.inner.info())
        prefixes = {"query": self.query, "document": self.document}
        code = hashlib.sha256(json.dumps(prefixes, sort_keys=True).encode()).hexdigest()[:12]
        return inner | {"id": f"{inner['id']}/prefixes-{code}", "prefixes": prefixes}

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed documents, each behind the document prefix."""
        return self.inner.embed([self.document + text for text in listed(texts)])

    def embed_query(self, text: str) -> Vector:
        """Embed a query behind the query prefix.

        Returns
        -------
        ndarray of shape (dim,), float32
        """
        return np.asarray(self.inner.embed([self.query + text for text in listed([text])])[0])

    def forget(self, texts: Iterable[str]) -> None:
        """Let the inner embedder forget what it remembers of these texts, if it remembers any."""
        own = getattr(self.inner, "forget", None)
        if own is not None:
            own([said for text in texts for said in (self.document + text, self.query + text)])

    def close(self) -> None:
        """Close the connections of the inner embedder, if it has any."""
        close(self.inner)


@runtime_checkable
class Encoder(Protocol):
    """What sentence-transformers and its like offer."""

    def encode(self, texts: list[str], /) -> Any:
        """Give one row of numbers for each text."""


class EncoderEmbedder(Threaded):
    """Makes an embedder of an object that has ``encode(list of texts) -> matrix``.

    Parameters
    ----------
    encoder : object with ``encode``
        A sentence-transformers model, for example.
    name : str
        What the model is called. It becomes part of ``info()["id"]``, by which a store refuses
        to mix the vectors of two models: two models never share a name.
    max_tokens : int, optional
        How many tokens of a text it reads.
    """

    def __init__(self, encoder: Encoder, name: str, *, max_tokens: int | None = None) -> None:
        if not name:
            raise InvalidInputError("name is empty: name the model, such as 'all-MiniLM-L6-v2'")
        self.encoder = encoder
        self.name = name
        self.max_tokens = max_tokens
        self._dim: int | None = None

    def __repr__(self) -> str:
        return f"<EncoderEmbedder {self.name!r}>"

    def info(self) -> dict[str, Any]:
        """Describe the vectors; the first call embeds one text to learn the dimension."""
        if self._dim is None:
            self.embed(["dimension"])
        return {
            "id": f"encoder/{self.name}/{self._dim}",
            "dim": self._dim,
            "semantic": True,
            "provider": "encoder",
            "model": self.name,
            "prefixes": {"query": "", "document": ""},
            "max_tokens": self.max_tokens,
        }

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch.

        Raises
        ------
        EmbedderAnswerError
            If ``encode`` returns anything but one row of finite numbers for each text.
        """
        batch = listed(texts)
        if not batch:
            return np.zeros((0, self.info()["dim"]), dtype=np.float32)
        rows = checked_rows(self.encoder.encode(batch), len(batch), self.name, self._dim)
        self._dim = rows.shape[1]
        return rows


def as_embedder(thing: Embedder | Encoder, name: str | None = None) -> Embedder:
    """Take an embedder as it is, and make one of an object with ``encode``.

    Parameters
    ----------
    thing : Embedder or object with ``encode``
    name : str, optional
        What the model is called; needed for objects with ``encode``, which do not say it.

    Raises
    ------
    InvalidInputError
        Something that is neither, or an object with ``encode`` without a name.

    Examples
    --------
    >>> class Toy:
    ...     def encode(self, texts):
    ...         return [[len(t), 1.0] for t in texts]
    >>> as_embedder(Toy(), "toy").info()["id"]
    'encoder/toy/2'
    """
    if isinstance(thing, Embedder):
        return thing
    if not isinstance(thing, Encoder):
        raise InvalidInputError(
            f"{type(thing).__name__} is no embedder: it needs embed(texts) and info(), "
            "or encode(texts)"
        )
    if name is None:
        raise InvalidInputError(
            f"{type(thing).__name__} has encode() but does not say which model it is: "
            "give as_embedder(model, name='...')"
        )
    return EncoderEmbedder(thing, name)


def innermost(embedder: Embedder) -> Embedder:
    """Return the embedder inside all wrappers."""
    while isinstance(inner := getattr(embedder, "inner", None), Embedder):
        embedder = inner
    return embedder


def close(embedder: Embedder) -> None:
    """Close an embedder that can be closed."""
    own = getattr(embedder, "close", None)
    if callable(own):
        own()


def with_prefixes(embedder: E, prefixes: Mapping[str, str] | None) -> E | Prefixed:
    """Wrap in `Prefixed` if there is any prefix in ``{"query": ..., "document": ...}``."""
    if not prefixes or not any(prefixes.values()):
        return embedder
    return Prefixed(
        embedder, query=prefixes.get("query", ""), document=prefixes.get("document", "")
    )
