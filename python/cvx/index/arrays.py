"""Array-likes to the arrays that the native module takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidEntityError, InvalidInputError, InvalidVectorError
from cvx.types import IntArray, Vector


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
    array = _array(value, "vectors", InvalidVectorError)
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
) -> tuple[Vector | None, npt.NDArray[np.bool_] | None]:
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
        return None, None
    given = float_rows([vector for vector in listed if vector is not None])
    if given.ndim != 2:
        raise InvalidVectorError(
            f"{listed!r} holds no vectors: pass a sequence of vectors and None"
        )
    rows = np.zeros((len(listed), given.shape[1]), np.float32)
    rows[present] = given
    return rows, present


def entity_column(values: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Entity ids, each at least 0, as uint64 of shape (n,).

    Raises
    ------
    InvalidEntityError
        Something else than integers from 0 up to 64 bits.
    """
    array = _array(values, "entity ids", InvalidEntityError)
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iuO":
        raise InvalidEntityError(
            f"entity ids of shape {array.shape} and dtype {array.dtype}: pass a row of integers"
        )
    try:
        if (low := array.min()) < 0:
            raise InvalidEntityError(f"entity {low} is below 0: count from 0")
        return np.ascontiguousarray(array, np.uint64)
    except (OverflowError, TypeError) as error:
        raise InvalidEntityError(
            f"entity ids beyond 64 bits or no integers ({error}): give ints from 0 to 2**64 - 1"
        ) from error


def integer_column(values: npt.ArrayLike, name: str) -> IntArray:
    """Integers as int64 of shape (n,).

    Raises
    ------
    InvalidInputError
        Something else than a row of integers of 64 bits.
    """
    array = _array(values, name, InvalidInputError)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} of shape {array.shape} and dtype {array.dtype}: pass a row of 64-bit integers"
        )
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise InvalidInputError(f"{name} goes up to {array.max()}: 2**63 - 1 is the most")
    return np.ascontiguousarray(array, np.int64)


def _array(
    values: npt.ArrayLike, name: str, error: type[InvalidInputError]
) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(values)
    except ValueError as reason:
        raise error(f"{name} are ragged ({reason}): give rows of the same length") from reason
