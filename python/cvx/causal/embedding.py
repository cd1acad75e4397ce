"""Vectors from an embedding model of any shape."""

from __future__ import annotations

import numpy as np

from cvx.causal.vectors import as_vector
from cvx.embed import Embedder, embed_query
from cvx.errors import InvalidParameterError
from cvx.types import Vector


def embed_document(model: object, text: str) -> Vector:
    """Return the vector of what is stored.

    Parameters
    ----------
    model : object
        An embedder of cvx, or anything with ``embed(text)`` or ``encode(text)``.
    text : str

    Raises
    ------
    InvalidParameterError
        A model that has neither.
    InvalidVectorError
        It gave no vector of finite numbers.
    """
    if isinstance(model, Embedder):
        return as_vector(model.embed([text])[0])
    for name in ("embed", "encode"):
        method = getattr(model, name, None)
        if callable(method):
            given = np.asarray(method(text), dtype=np.float32)
            return as_vector(given[0] if given.ndim == 2 and len(given) == 1 else given)
    raise InvalidParameterError(
        f"{type(model).__name__} cannot embed: give an object with embed(text) or encode(text)"
    )


def embed_question(model: object, text: str) -> Vector:
    """Return the vector of what is asked; see ``embed_document``."""
    if isinstance(model, Embedder):
        return as_vector(embed_query(model, text))
    return embed_document(model, text)
