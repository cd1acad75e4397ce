"""A vector store for LangChain over a memory, and LangChain's embeddings for cvx.

It needs the package ``langchain-core``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self
from uuid import uuid4

import numpy as np

from cvx.errors import InvalidInputError
from cvx.extras import needs
from cvx.integrations import a_memory, by_key
from cvx.memory import Memory
from cvx.recall.trace import Hits
from cvx.types import Event, Filter, Hit, Vector

with needs("langchain"):
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore

_KIND = "document"


class EmbeddingsEmbedder:
    """Embeddings of LangChain as an embedder of cvx.

    Parameters
    ----------
    embeddings : langchain_core.embeddings.Embeddings
        Who embeds.
    name : str, optional
        What the vectors are called in a store, which refuses those of another name; default the
        class and the model that the embeddings name. One text is embedded to learn the dimension.
    """

    def __init__(self, embeddings: Embeddings, name: str | None = None) -> None:
        self.embeddings = embeddings
        model = getattr(embeddings, "model", getattr(embeddings, "model_name", ""))
        self._name = name or f"langchain:{type(embeddings).__name__}:{model}"
        self._dim = len(embeddings.embed_query("dimension"))

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed documents: float32 of shape (n, dim)."""
        found = self.embeddings.embed_documents([*texts]) if texts else []
        return np.asarray(found, np.float32).reshape(len(texts), self._dim)

    def embed_query(self, text: str) -> Vector:
        """Embed what is searched for: float32 of shape (dim,)."""
        return np.asarray(self.embeddings.embed_query(text), np.float32)

    def info(self) -> Mapping[str, Any]:
        """Say what the vectors are."""
        return {"id": self._name, "dim": self._dim, "semantic": True, "provider": "langchain"}


class MemoryVectorStore(VectorStore):
    """A LangChain vector store whose documents are events of a memory.

    ``as_retriever()`` makes it a retriever. A search asks ``Memory.recall``, so that words count
    beside likeness; where nothing speaks for any document, the likest come all the same, as
    LangChain expects of a store: ``memory.recall`` returns nothing then.

    Parameters
    ----------
    memory : Memory
        Whose namespace the documents are in. The id of a document is the key of its event, and
        its metadata is the event's.

    Examples
    --------
    >>> store = MemoryVectorStore(Memory(embedder="lexical"))
    >>> ids = store.add_texts(["The spare key is under the pot.", "Ann moved to Oslo."])
    >>> store.as_retriever(search_kwargs={"k": 1}).invoke("where is the key?")[0].page_content
    'The spare key is under the pot.'
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = a_memory("memory", memory)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | None = None,
        **kwargs: Any,  # noqa: ARG003
    ) -> Self:
        """Return a store of some texts in RAM, or in the folder ``path``."""
        embedder = EmbeddingsEmbedder(embedding)
        made = Memory(embedder=embedder) if path is None else Memory.open(path, embedder=embedder)
        store = cls(made)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> list[str]:
        """Add documents, all or none, and return their ids; an id that is there is replaced.

        Raises
        ------
        InvalidInputError
            Not one metadata or id for each text, or one that cannot be stored.
        """
        listed = [*texts]
        about = metadatas or [{} for _ in listed]
        keys = [one or uuid4().hex for one in ids or [None] * len(listed)]
        for name, given in (("metadatas", about), ("ids", keys)):
            if len(given) != len(listed):
                raise InvalidInputError(
                    f"{name} has {len(given)} for {len(listed)} texts: one each"
                )
        before = by_key(self.memory, keys)
        rows = [
            {
                "text": text,
                "key": key,
                "kind": _KIND,
                "metadata": {**dict.fromkeys(before[key].metadata if key in before else ()), **one},
            }
            for text, key, one in zip(listed, keys, about, strict=True)
        ]
        self.memory.add_many(rows)
        return keys

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:  # noqa: ARG002
        """Forget documents; None means all. ``Memory.erase`` removes what they said for good."""
        gone = (
            self.memory.events(Filter(kind=_KIND))
            if ids is None
            else by_key(self.memory, ids).values()
        )
        if gone:
            self.memory.forget([*gone])
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents by their ids; those that are not there are left out."""
        return [_document(one) for one in by_key(self.memory, ids).values()]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the k likest documents; ``filter=`` a mapping of metadata, or a ``cvx.Filter``."""
        return [_document(one) for one in self._hits(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the k likest with their scores; higher is better."""
        return [(_document(one), one.score) for one in self._hits(query, k, **kwargs)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        hits = self._hits(query, k, **kwargs)
        return [(_document(one), float(one.relevance or 0.0)) for one in hits]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the k likest documents to a vector."""
        return [
            _document(one) for one in self._hits(np.asarray(embedding, np.float32), k, **kwargs)
        ]

    def _hits(self, cue: str | Vector, k: int, **asked: Any) -> Hits:
        where = asked.get("filter")
        where = where if isinstance(where, Filter) else Filter(metadata=where)
        # As stores of LangChain do: k documents, even where none is much like the query.
        hits: Hits = self.memory.recall(cue, k, where=where._replace(kind=_KIND), floor=-1.0)
        return hits


def _document(found: Event | Hit) -> Document:
    event = found if isinstance(found, Event) else found.event
    assert event is not None  # A memory's hits all have theirs.
    return Document(id=event.key, page_content=event.text, metadata=dict(event.metadata))
