"""Search results of the raw index: lazy hits, paths, ancestries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, overload

from cvx._cvx import CausalRows, GraphRows
from cvx.types import Edge, Factor, Hit, IntArray, Step, Vector

# (node, distance, score, similarity, entity, timestamp, reward, action)
_HitRow: TypeAlias = tuple[int, float, float, float, int, int, float | None, str | None]


class Path(NamedTuple):
    """A walk over edges that visits no node twice.

    Attributes
    ----------
    nodes : tuple of int
        From the start on: one more than there are edges.
    edges : tuple of Edge
        What was walked, in order.
    strength : float
        The product of the weights.
    """

    nodes: tuple[int, ...]
    edges: tuple[Edge, ...]
    strength: float


class Ancestry(NamedTuple):
    """What a walk over edges came to: columns of one length, a row a node.

    Attributes
    ----------
    nodes : ndarray of shape (n,), int64
        By depth; of one depth the strongest first, then by id. The start is not among them.
    depths : ndarray of shape (n,), int64
        The fewest edges between a node and the start, from 1.
    weights : ndarray of shape (n,), float32
        The largest product of weights over the paths of that many edges.
    toward : ndarray of shape (n,), int64
        The node one step nearer to the start on that path.
    kinds : ndarray of shape (n,), int64
        The kind of the edge between the two, as its place in ``edge_kinds``.
    edge_weights : ndarray of shape (n,), float32
        The weight of that edge.
    truncated : bool
        Whether the budget ended the walk before it had seen everything.
    """

    nodes: IntArray
    depths: IntArray
    weights: Vector
    toward: IntArray
    kinds: IntArray
    edge_weights: Vector
    truncated: bool


class LazyHits(Sequence[Hit]):
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
    >>> from cvx.index import RawIndex
    >>> ix = RawIndex(dim=2)
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
        if isinstance(other, LazyHits):
            return self._all() == other._all()
        return self._all() == other if isinstance(other, list) else NotImplemented

    # A list has no hash either.
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[list[Hit]], tuple[list[Hit]]]:
        return list, (self._all(),)

    def __repr__(self) -> str:
        return repr(self._all())


def causal_hits(found: CausalRows) -> list[Hit]:
    """Make hits with the steps around them."""
    step = Step._make
    return [
        Hit(
            *row,
            predecessors=tuple(map(step, before)),
            successors=tuple(map(step, after)),
            factors=(Factor("similarity", row[3], 1.0, row[3]),),
        )
        for row, before, after in found.rows()
    ]


def graph_hits(found: GraphRows) -> list[Hit]:
    """Make hits with the edges that lead to them."""
    hits = []
    for row, walked in found.rows():
        own, gained = row[3], row[2] - row[3]
        factors = (Factor("similarity", own, 1.0, own), Factor("edges", gained, 1.0, gained))
        path = tuple(Edge(a, b, kind, weight, boost=boost) for a, b, kind, weight, boost in walked)
        hits.append(Hit(*row, factors=factors, path=path))
    return hits


def hybrid_hit(row: _HitRow, neighbour: tuple[int, float] | None, beta: float) -> Hit:
    """Make a hit that may owe its score to a temporal neighbour."""
    own, beside = row[3], 0.0 if neighbour is None else neighbour[1]
    # The score is the larger of the two: the other one has no share in it.
    by_neighbour = neighbour is not None and row[2] > own
    factors = (
        Factor("similarity", own, 1.0, 0.0 if by_neighbour else row[2]),
        Factor("temporal_neighbour", beside, beta, row[2] if by_neighbour else 0.0),
    )
    return Hit(*row, factors=factors)
