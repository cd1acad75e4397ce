"""Vectors: finite rows, their cosine, and those of an embedding model of any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cvx.embed import Embedder, embed_query
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
)
from cvx.types import Vector


def as_vector(values: npt.ArrayLike) -> Vector:
    """Return a vector of finite floats.

    Raises
    ------
    InvalidVectorError
        Something that is no list of numbers, or an empty one.
    InvalidVectorError
        NaN or infinity in it.
    """
    try:
        row = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidVectorError(f"no vector ({error}): give a list of numbers") from error
    if row.ndim != 1 or not row.size:
        raise InvalidVectorError(f"a vector has shape {row.shape}: give one row of numbers")
    if not np.isfinite(row).all():
        raise InvalidVectorError("a vector holds NaN or infinity: give finite numbers")
    return row


def unit(values: npt.ArrayLike) -> Vector:
    """Return a vector scaled to length 1; one of length zero stays as it is.

    Examples
    --------
    >>> unit([3, 4]).tolist() == [np.float32(0.6), np.float32(0.8)]
    True
    """
    row = as_vector(values)
    length = float(np.linalg.norm(row))
    return row if length == 0.0 else np.asarray(row / np.float32(length), dtype=np.float32)


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the cosine of two vectors; 0 where one of them has no direction.

    Raises
    ------
    InvalidVectorError
        Vectors of different lengths.

    Examples
    --------
    >>> cosine([1, 0], [1, 0]), cosine([1, 0], [0, 0])
    (1.0, 0.0)
    """
    left, right = unit(a), unit(b)
    if len(left) != len(right):
        raise InvalidVectorError(
            f"vectors of {len(left)} and {len(right)} dimensions cannot be compared: embed both "
            "with the same model"
        )
    return float(left @ right)


def embed_method(model: object) -> Callable[[str], object]:
    """Return ``model.embed``, or ``model.encode`` where there is no such method.

    Raises
    ------
    InvalidInputError
        A model that has neither; a class instead of an object.
    """
    found = (getattr(model, name, None) for name in ("embed", "encode"))
    method: Callable[[str], object] | None = next((m for m in found if callable(m)), None)
    if method is None or isinstance(model, type):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise InvalidInputError(
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
    InvalidInputError
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
