"""The cosine of two vectors, vectors scaled to length 1, and checks that they are finite."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidVectorError
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
