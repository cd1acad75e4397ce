"""The table that every step of a recall reads and extends: one row a candidate, named columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError, UnknownError
from cvx.types import Edge, IntArray

Column = npt.NDArray[np.float64]


class Candidates:
    """What may come back from one recall, with everything that is known about it.

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
        Places in the corpus, ascending, each once.
    event_ids : ndarray of shape (n,), int64
        Their events.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,), float64
        By name. NaN where something is not known.
    paths : dict of int to tuple of Edge
        By row: the edges that were walked to what was found over edges.

    Examples
    --------
    >>> table = Candidates(np.array([0, 4]), np.array([1, 5]))
    >>> table.add("similarity", [0.5, 0.25])
    >>> table["similarity"].tolist(), len(table)
    ([0.5, 0.25], 2)
    """

    def __init__(self, rows: IntArray, event_ids: IntArray) -> None:
        self.rows = rows
        self.event_ids = event_ids
        self.columns: dict[str, Column] = {}
        self.paths: dict[int, tuple[Edge, ...]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            raise UnknownError(
                f"there is no column {name!r}: the candidates have {', '.join(self.columns)}"
            ) from None

    def add(self, name: str, values: npt.ArrayLike) -> None:
        """Add a column, or replace the one of that name.

        Raises
        ------
        InvalidInputError
            Not one value for each candidate.
        """
        column = np.asarray(values, dtype=np.float64)
        if column.shape != self.rows.shape:
            raise InvalidInputError(
                f"column {name!r} has shape {column.shape}, there are {len(self)} candidates: "
                "give one value for each"
            )
        self.columns[name] = column

    def update(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        """Add several columns."""
        for name, values in columns.items():
            self.add(name, values)

    def place(self, rows: IntArray) -> IntArray:
        """Return where in the table these rows of the corpus stand, -1 for those that do not."""
        if not len(self):
            return np.full(len(rows), -1, dtype=np.int64)
        at = np.searchsorted(self.rows, rows)
        at[at == len(self.rows)] = 0
        return np.where(self.rows[at] == rows, at, -1)
