"""An embedder that returns vectors computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvx.embed import Embedder
from cvx.types import Vector


class GivenVectors:
    """Vectors by text.

    Parameters
    ----------
    vectors : mapping of str to ndarray of shape (384,)
        What each text is given.
    otherwise : Embedder, optional
        Computes those of other texts; without it, they are refused.
    """

    def __init__(self, vectors: Mapping[str, Vector], otherwise: Embedder | None = None) -> None:
        self._vectors = vectors
        self._otherwise = otherwise

    def info(self) -> dict[str, Any]:
        """Say what the vectors are."""
        return {"id": "all-MiniLM-L6-v2, given", "dim": 384, "semantic": True}

    def embed(self, texts: Sequence[str]) -> Vector:
        """Hand the vectors out."""
        rows = [self._vectors.get(text) for text in texts]
        missing = [text for text, row in zip(texts, rows, strict=True) if row is None]
        if missing and self._otherwise is None:
            raise KeyError(f"no vector was given for {missing[0][:40]!r}")
        made = iter(self._otherwise.embed(missing)) if missing and self._otherwise else iter(())
        return np.array([next(made) if row is None else row for row in rows], dtype=np.float32)
