"""Turning text into vectors: the protocol, and the default that needs no model and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from cvx.embed.lexical import LexicalEmbedder
from cvx.types import Vector

__all__ = ["Embedder", "LexicalEmbedder"]


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors of one fixed dimension."""

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch.

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
        """Say what the vectors are: at least ``id`` (str), ``dim`` (int), ``semantic`` (bool).

        Vectors of two embedders with different ``id`` must not be mixed.
        """
        ...
