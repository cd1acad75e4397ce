"""Hits that are made when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from cvx.types import Hit


class Hits(Sequence[Hit]):
    """What a search found, best first: a sequence that equals the list of its hits.

    The search itself is done, and later changes of the index do not show; only the Python objects
    are left until one of them is read, since making all of them can take longer than the search.

    Parameters
    ----------
    count : int
        How many there are.
    make : callable
        Returns them all; called at most once.

    Examples
    --------
    >>> from cvx.index import TemporalIndex
    >>> ix = TemporalIndex(dim=2)
    >>> node = ix.insert(1, 10, [1, 0])
    >>> hits = ix.causal_search([1, 0])
    >>> len(hits), hits[0].node, hits == list(hits)
    (1, 0, True)
    """

    __slots__ = ("_count", "_made", "_make")

    def __init__(self, count: int, make: Callable[[], list[Hit]]) -> None:
        self._count = count
        self._make: Callable[[], list[Hit]] | None = make
        self._made: list[Hit] = []

    def _all(self) -> list[Hit]:
        make = self._make
        if make is not None:
            self._made = make()
            # Only now: another thread that reads meanwhile makes equal hits.
            self._make = None
        return self._made

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...
    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        return self._all()[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Hits):
            return self._all() == other._all()
        return self._all() == other if isinstance(other, list) else NotImplemented

    # A list has no hash either.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())
