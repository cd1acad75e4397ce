"""Conversion of callers' vectors into the float32 arrays that the native module takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidVectorError
from cvx.types import Mask, Vector


def float_rows(value: npt.ArrayLike) -> Vector:
    """Bring a vector, or a matrix of them, into the layout of the index.

    Parameters
    ----------
    value : array_like of shape (dim,) or (n, dim)
        Anything numeric.

    Returns
    -------
    ndarray of the same shape, float32, C-contiguous

    Raises
    ------
    InvalidVectorError
        Not numeric, ragged, or of another number of sides.

    Examples
    --------
    >>> float_rows([1, 2]).dtype
    dtype('float32')
    """
    try:
        array = np.asarray(value)
    except ValueError as reason:
        raise InvalidVectorError(
            f"vectors are ragged ({reason}): give rows of the same length"
        ) from reason
    if array.dtype.kind not in "fiub":
        raise InvalidVectorError(
            f"vectors of dtype {array.dtype}: pass real numbers, such as float32"
        )
    if array.ndim not in (1, 2):
        raise InvalidVectorError(
            f"an array of shape {array.shape}: pass one vector (dim,) or several (n, dim)"
        )
    # What overflows float32 becomes infinite, and the index refuses that by name.
    with np.errstate(over="ignore"):
        return np.require(array, dtype=np.float32, requirements=["C", "A"])


def rows_and_presence(
    vectors: npt.ArrayLike | Sequence[Any] | None, dim: int
) -> tuple[Vector | None, Mask | None]:
    """Split vectors of which some are ``None`` into a matrix and a mask.

    Returns
    -------
    rows : ndarray of shape (n, dim), float32, or None where there is no vector at all
    present : ndarray of shape (n,), bool, or None where every row is one
    """
    if vectors is None:
        return None, None
    if isinstance(vectors, np.ndarray) or not isinstance(vectors, Iterable):
        return float_rows(vectors), None
    listed: list[Any] = list(vectors)
    if not listed:
        return np.empty((0, dim), np.float32), None
    if all(vector is not None for vector in listed):
        return float_rows(listed), None
    present = np.array([vector is not None for vector in listed])
    if not present.any():
        return None, present
    given = float_rows([vector for vector in listed if vector is not None])
    if given.ndim != 2:
        raise InvalidVectorError(
            f"{listed!r} holds no vectors: pass a sequence of vectors and None"
        )
    rows = np.zeros((len(listed), given.shape[1]), np.float32)
    rows[present] = given
    return rows, present
