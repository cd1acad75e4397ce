"""Vectors from an embedding model of any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvx.causal.vectors import as_vector
from cvx.embed import Embedder, embed_query
from cvx.errors import InvalidParameterError
from cvx.types import Vector


def embed_method(model: object) -> Callable[[str], object]:
    """Return ``model.embed``, or ``model.encode`` where there is no such method.

    Raises
    ------
    InvalidParameterError
        A model that has neither; a class instead of an object.
    """
    found = (getattr(model, name, None) for name in ("embed", "encode"))
    method: Callable[[str], object] | None = next((m for m in found if callable(m)), None)
    if method is None or isinstance(model, type):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise InvalidParameterError(
            f"{name} cannot embed: give an object with embed(text) or encode(text), such as "
            "cvx.embed.LexicalEmbedder()"
        )
    return method


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
        As for ``embed_method``.
    InvalidVectorError
        It gave no vector of finite numbers.
    """
    if isinstance(model, Embedder):
        return as_vector(model.embed([text])[0])
    given = np.asarray(embed_method(model)(text), dtype=np.float32)
    return as_vector(given[0] if given.ndim == 2 and len(given) == 1 else given)


def embed_question(model: object, text: str) -> Vector:
    """Return the vector of what is asked; see ``embed_document``."""
    if isinstance(model, Embedder):
        return as_vector(embed_query(model, text))
    return embed_document(model, text)
