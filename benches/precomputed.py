"""An embedder for benches whose events come with their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cvx.types import Vector


class NoEmbedder:
    """Says of what dimension the given vectors are: what is timed is not the embedding."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def info(self) -> Mapping[str, Any]:
        return {"id": "given", "dim": self.dim, "semantic": True}

    def embed(self, texts: Sequence[str]) -> Vector:
        raise RuntimeError(f"{len(texts)} texts came without a vector")
