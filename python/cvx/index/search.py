"""Searches: arrays of ids and distances, or hits with the evidence for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy.typing as npt

from cvx._cvx import CausalRows, GraphRows, NativeIndex
from cvx.arguments import index_filter
from cvx.index.hits import Hits
from cvx.types import Edge, Factor, Filter, Hit, IntArray, Step, Vector

DEFAULT_EDGE_BOOST: Mapping[str, float] = {"caused_success": 0.3}


class Search:
    """The part of the index that finds nodes."""

    _native: NativeIndex

    def search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        *,
        ef: int | None = None,
        where: Filter | None = None,
        threads: int | None = 1,
    ) -> tuple[IntArray, Vector]:
        """Find the nearest nodes.

        Parameters
        ----------
        query : array_like of shape (dim,) or (n, dim)
            One query or several. Changes by other threads come in between every few hundred.
        k : int, default 10
            How many, at least 1. With a filter, k come back whenever k match.
        ef : int, optional
            Width of the walk; wider finds more of the true neighbours and takes longer.
        where : Filter, optional
            What may come back. Without one: recallable nodes of the default namespace.
        threads : int or None, default 1
            For several queries, at most 256; ``None`` takes what the machine offers.

        Returns
        -------
        ids : ndarray of shape (<= k,) or (n, k), int64
            Nearest first; for several queries short rows are padded with -1.
        distances : ndarray of the same shape, float32
            Lower is nearer: 1 - cosine, squared euclidean, or 1 - inner product; padded with inf.

        Raises
        ------
        InvalidKError, InvalidParameterError
            k below 1; ef or threads outside their range.
        DimensionError, NonFiniteVectorError, ZeroVectorError, InvalidVectorError
            A query that cannot be compared.
        InvertedRangeError, InvalidFilterError
            A filter that cannot be understood.

        References
        ----------
        Malkov & Yashunin 2018, algorithm 5.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1, 2], [10, 20, 30], [[1, 0], [1, 1], [0, 1]])
        >>> ids, distances = ix.search([1, 0], k=2)
        >>> ids
        array([0, 1])
        >>> ix.search([[1, 0]], k=2, where=Filter(since=15, until=25))[0]
        array([[ 1, -1]])
        """
        return self._native.search(query, k, ef, index_filter(where), threads)

    def causal_search(
        self,
        query: npt.ArrayLike,
        k: int = 5,
        temporal_context: int = 5,
        *,
        ef: int | None = None,
        where: Filter | None = None,
    ) -> Sequence[Hit]:
        """Find the nearest nodes, and what came before and after each on its timeline.

        Parameters
        ----------
        query : array_like of shape (dim,)
            Where to look.
        k : int, default 5
            How many hits, at least 1.
        temporal_context : int, default 5
            How many steps before and after each hit, at least 0. The steps are those of the same
            entity and namespace, whatever the filter says about them.
        ef, where
            As for `search`.

        Returns
        -------
        sequence of Hit
            Nearest first. ``score`` is the similarity. Made when read: see `Hits`.

        Raises
        ------
        InvalidKError, InvalidParameterError, InvalidVectorError, InvalidFilterError
            As for `search`; a negative context.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1], [10, 20], [[1, 0], [0, 1]], actions=["open", "take"])
        >>> hit = ix.causal_search([1, 0], k=1)[0]
        >>> hit.score, [step.action for step in hit.successors]
        (1.0, ['take'])
        """
        found = self._native.causal_search(query, k, temporal_context, ef, index_filter(where))
        return Hits(len(found), partial(_causal_hits, found))

    def hybrid_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        beta: float = 0.3,
        *,
        ef: int | None = None,
        where: Filter | None = None,
    ) -> list[Hit]:
        """Find nodes that are similar, or stand in time beside one that is.

        ``score(v) = max(sim(v), beta * max(sim(predecessor of v), sim(successor of v)))``

        Parameters
        ----------
        query : array_like of shape (dim,)
            Where to look.
        k : int, default 10
            How many hits, at least 1.
        beta : float, default 0.3
            What a temporal neighbour's similarity counts, in [0, 1]; 0 is plain search.
        ef, where
            As for `search`.

        Returns
        -------
        list of Hit
            Best score first.

        Raises
        ------
        InvalidKError, InvalidParameterError, InvalidVectorError, InvalidFilterError
            As for `search`; beta outside its range.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1, 2], [10, 20, 10], [[1, 0], [-1, 0], [0.2, 1]])
        >>> [hit.node for hit in ix.hybrid_search([1, 0], k=2, beta=0.9)]
        [0, 1]
        """
        hits = []
        for row, neighbour in self._native.hybrid_search(query, k, beta, ef, index_filter(where)):
            own, beside = row[3], 0.0 if neighbour is None else neighbour[1]
            # The score is the larger of the two: the other one has no share in it.
            by_neighbour = neighbour is not None and row[2] > own
            factors = (
                Factor("similarity", own, 1.0, 0.0 if by_neighbour else row[2]),
                Factor("temporal_neighbour", beside, beta, row[2] if by_neighbour else 0.0),
            )
            hits.append(Hit(*row, factors=factors))
        return hits

    def graph_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        edge_boost: Mapping[str, float] | None = None,
        max_hops: int = 2,
        *,
        ef: int | None = None,
        where: Filter | None = None,
    ) -> Sequence[Hit]:
        """Find nodes that are similar, or that boosted edges lead to from those that are.

        With S the ef nearest nodes under the filter, ``score(v) = sim(v) +`` the largest, over
        paths of at most ``max_hops`` boosted edges from a u in S to v, of
        ``sim(u) * product(boost[kind] * weight)``.

        Parameters
        ----------
        query : array_like of shape (dim,)
            Where to look.
        k : int, default 10
            How many hits, at least 1.
        edge_boost : mapping of str to float, default {"caused_success": 0.3}
            Edge kinds to follow, "temporal" among them, with the factor of each, in [0, 1].
        max_hops : int, default 2
            Length of the longest path, from 0 to 64; 0 is plain search.
        ef, where
            As for `search`. A node that the filter refuses still bridges, within its namespaces.

        Returns
        -------
        sequence of Hit
            Best score first; ``path`` holds the edges that were walked. Made when read: see
            `Hits`.

        Raises
        ------
        UnknownEdgeKindError
            A kind that is neither built in nor declared.
        InvalidKError, InvalidParameterError, InvalidVectorError, InvalidFilterError
            As for `search`; a boost or a number of hops outside its range.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2, 3], [10, 10, 10], [[1, 0], [0, 1], [0.1, 1]])
        >>> ix.add_edge(0, 1, "caused_success", 1.0)
        >>> hit = ix.graph_search([1, 0], k=2)[1]
        >>> hit.node, round(hit.score, 2), hit.path[0].kind
        (1, 0.3, 'caused_success')
        """
        boosts = DEFAULT_EDGE_BOOST if edge_boost is None else edge_boost
        found = self._native.graph_search(query, k, boosts, max_hops, ef, index_filter(where))
        return Hits(len(found), partial(_graph_hits, found))


def _causal_hits(found: CausalRows) -> list[Hit]:
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


def _graph_hits(found: GraphRows) -> list[Hit]:
    hits = []
    for row, walked in found.rows():
        own, gained = row[3], row[2] - row[3]
        factors = (Factor("similarity", own, 1.0, own), Factor("edges", gained, 1.0, gained))
        path = tuple(Edge(a, b, kind, weight, boost=boost) for a, b, kind, weight, boost in walked)
        hits.append(Hit(*row, factors=factors, path=path))
    return hits
