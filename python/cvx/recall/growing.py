"""A column that takes rows at its end in a time that does not depend on its length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """Rows in a room that is made half as large again whenever it is full.

    Parameters
    ----------
    kind : dtype
        Of the rows.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        All of them; stays as long as it is when rows are added, so that whoever holds it is not
        disturbed.

    Examples
    --------
    >>> column = Growing(np.int64)
    >>> before = column.extend([4, 5])
    >>> column.extend([6]).tolist(), before.tolist()
    ([4, 5, 6], [4, 5])
    """

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._room: npt.NDArray[Any] = np.zeros(0, dtype=kind)
        self.rows = self._room

    def extend(self, new: npt.ArrayLike) -> npt.NDArray[Any]:
        """Put rows behind the last one; returns all of them."""
        added = np.asarray(new, dtype=self._room.dtype)
        size = len(self.rows)
        end = size + len(added)
        if end > len(self._room):
            room = np.empty(max(end, size + size // 2), dtype=self._room.dtype)
            room[:size] = self.rows
            self._room = room
        self._room[size:end] = added
        self.rows = self._room[:end]
        return self.rows
