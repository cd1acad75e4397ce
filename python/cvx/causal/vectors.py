"""Vectors: finite rows, their cosine, and those of an embedding model of any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cvx.embed import Embedder, embed_query
from cvx.errors import (
    DimensionError,
    InvalidParameterError,
    InvalidVectorError,
    NonFiniteVectorError,
)
from cvx.types import Vector

_FIRST_ROWS = 16


def as_vector(values: npt.ArrayLike) -> Vector:
    """Return a vector of finite floats.

    Raises
    ------
    InvalidVectorError
        Something that is no list of numbers, or an empty one.
    NonFiniteVectorError
        NaN or infinity in it.
    """
    try:
        row = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidVectorError(f"no vector ({error}): give a list of numbers") from error
    if row.ndim != 1 or not row.size:
        raise InvalidVectorError(f"a vector has shape {row.shape}: give one row of numbers")
    if not np.isfinite(row).all():
        raise NonFiniteVectorError("a vector holds NaN or infinity: give finite numbers")
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
    DimensionError
        Vectors of different lengths.

    Examples
    --------
    >>> cosine([1, 0], [1, 0]), cosine([1, 0], [0, 0])
    (1.0, 0.0)
    """
    left, right = unit(a), unit(b)
    _same_dimension(len(left), len(right))
    return float(left @ right)


class VectorMatrix:
    """Unit vectors in one matrix, compared with a query by one product.

    Examples
    --------
    >>> matrix = VectorMatrix()
    >>> matrix.add([2.0, 0.0]), matrix.add([0.0, 1.0])
    (0, 1)
    >>> matrix.similarities([1.0, 0.0]).tolist()
    [1.0, 0.0]
    """

    def __init__(self) -> None:
        self._rows: Vector = np.zeros((0, 0), dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Vector:
        """The unit vectors: ndarray of shape (n, dim), float32."""
        return self._rows[: self._count]

    def add(self, values: npt.ArrayLike) -> int:
        """Append a vector and return its row.

        Raises
        ------
        DimensionError
            A vector of another length than those before.
        """
        row = unit(values)
        if self._count:
            _same_dimension(len(row), self._rows.shape[1])
        else:
            self._rows = np.zeros((_FIRST_ROWS, len(row)), dtype=np.float32)
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._count] = row
        self._count += 1
        return self._count - 1

    def similarities(self, query: npt.ArrayLike) -> Vector:
        """Return the cosine of every row with a query: ndarray of shape (n,), float32.

        Raises
        ------
        DimensionError
            A query of another length than the rows.
        """
        direction = unit(query)
        if not self._count:
            return np.zeros(0, dtype=np.float32)
        _same_dimension(len(direction), self._rows.shape[1])
        return np.asarray(self.rows @ direction, dtype=np.float32)


def _same_dimension(given: int, held: int) -> None:
    if given != held:
        raise DimensionError(
            f"vectors of {given} and {held} dimensions cannot be compared: embed both with the "
            "same model"
        )


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
