"""Remembering vectors on disk, so that the same text is embedded once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cvx.embed.cachefile import CacheFile
from cvx.embed.protocol import Embedder, Threaded, checked_rows, embed_query, listed
from cvx.embed.wrap import close
from cvx.errors import EmbedderDimensionError, InvalidInputError
from cvx.types import Vector

_ROLES = ("document", "query")
_SMALLEST = 1 << 20


class CachedEmbedder(Threaded):
    """Any embedder, with a file that remembers its vectors.

    Several threads and processes may use one file, with different embedders too: vectors are kept
    by the embedder's id and the SHA-256 of the text. The texts themselves are not kept. A file
    that turns out damaged is set aside as ``<name>.damaged`` with a warning and started anew; one
    that cannot be read or written costs a warning, never an answer.

    Parameters
    ----------
    inner : Embedder
        What embeds the texts that are not there.
    path : str or Path
        The file; made if it is not there, readable by its owner alone.
    max_bytes : int, default 1 GiB
        Size at which a quarter goes: the vectors used longest ago, to the hour. At least 1 MiB.
    clock : callable, default `time.time`
        Seconds since 1970.

    Attributes
    ----------
    hits, misses : int
        Texts found and not found since this object was made.

    Raises
    ------
    EmbeddingCacheError
        If the file cannot be opened, or is a database of something else.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> folder = tempfile.TemporaryDirectory()
    >>> cached = CachedEmbedder(LexicalEmbedder(8), folder.name + "/vectors.sqlite")
    >>> _ = cached.embed(["a mug"]), cached.embed(["a mug", "a shelf"])
    >>> cached.hits, cached.misses, cached.forget(["a mug"])
    (1, 2, 1)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        inner: Embedder,
        path: str | Path,
        *,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if max_bytes < _SMALLEST:
            raise InvalidInputError(f"max_bytes is {max_bytes}: give at least {_SMALLEST}")
        self.inner = inner
        self.hits = 0
        self.misses = 0
        self._file = CacheFile(Path(path), max_bytes, clock)

    def info(self) -> Mapping[str, Any]:
        """Describe the inner embedder's vectors: they are the same."""
        return self.inner.info()

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed documents; those that are not remembered go to the inner embedder in one batch.

        Raises
        ------
        EmbedderDimensionError
            If the file remembers another dimension under the same embedder id.
        EmbedderError
            Whatever the inner embedder raises.
        """
        return self._through(listed(texts), "document", self.inner.embed)

    def embed_query(self, text: str) -> Vector:
        """Embed a query, apart from documents if the inner embedder tells them apart.

        Returns
        -------
        ndarray of shape (dim,), float32
        """
        apart = callable(getattr(self.inner, "embed_query", None))
        row: Vector = self._through(
            listed([text]),
            "query" if apart else "document",
            lambda missing: np.stack([embed_query(self.inner, one) for one in missing]),
        )[0]
        return row

    def forget(self, texts: Iterable[str]) -> int:
        """Remove what is known of these texts, under every embedder, from the disk as well.

        The whole file is written anew, which takes about as long as copying it: forget many
        texts in one call. A damaged file that was set aside is deleted too.

        Returns
        -------
        int
            How many vectors there were.

        Raises
        ------
        EmbeddingCacheError
            If that could not be done.
        """
        return self._file.forget([_key(text, role) for text in texts for role in _ROLES])

    def close(self) -> None:
        """Close the connections of the inner embedder, if it has any; the file is never open."""
        close(self.inner)

    def __len__(self) -> int:
        """How many vectors the file remembers, those of other embedders included."""
        return self._file.count()

    def _through(self, texts: list[str], role: str, embed: Callable[[list[str]], Vector]) -> Vector:
        info = self.inner.info()
        identity, dim = str(info["id"]), int(info["dim"])
        if not texts:
            return np.zeros((0, dim), dtype=np.float32)
        keys = [_key(text, role) for text in texts]
        known = self._file.read(identity, list(dict.fromkeys(keys)))
        for row in known.values():
            if len(row) != dim:
                raise EmbedderDimensionError(
                    f"{self._file.path} remembers {len(row)} dimensions for {identity!r}, which "
                    f"says it gives {dim}: two models share an id; give one another name"
                )
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        self.hits += len(texts) - len(missing)
        self.misses += len(missing)
        if missing:
            answer = embed(list(missing.values()))
            rows = checked_rows(answer, len(missing), str(info.get("model", identity)), dim)
            fresh = dict(zip(missing, rows, strict=True))
            self._file.write(identity, fresh)
            known |= fresh
        return np.stack([known[key] for key in keys])


def _key(text: str, role: str) -> bytes:
    return hashlib.sha256(f"{role}\0{text}".encode("utf-8", "surrogatepass")).digest()
