"""`RawIndex`: insert, search, timelines, typed edges, regions, snapshots, on the native module."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from html import escape
from types import EllipsisType, FunctionType
from typing import Any, Self, cast, overload

import numpy as np
import numpy.typing as npt

from cvx._cvx import NativeIndex
from cvx.arguments import a_function, index_filter, wrong
from cvx.errors import InternalError, InvalidVectorError, SnapshotError
from cvx.index.conversion import rows_and_presence
from cvx.index.results import Ancestry, LazyHits, Path, causal_hits, graph_hits, hybrid_hit
from cvx.types import DEFAULT_NAMESPACE, Column, Edge, Hit, IntArray, Mask, Step, Vector, Where

DEFAULT_EDGE_BOOST: Mapping[str, float] = {"caused_success": 0.3}


_LEFT_OUT = "{0} is left out: give {0}= of shape {1}, or None for what no search is to return"


class _Mended:
    """Passes calls on to a native index, and to the one in its place where its rows are damaged."""

    def __init__(self, owner: RawIndex, native: NativeIndex, mend: Callable[[], bool]) -> None:
        self._owner, self._index, self._mend = owner, native, mend

    def __len__(self) -> int:
        return len(self._index)

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._index, name)

        def call(*args: Any, **named: Any) -> Any:
            try:
                return known(*args, **named)
            except SnapshotError:
                if not (self._index.damaged() and self._mend()):
                    raise
                return getattr(self._owner._native, name)(*args, **named)

        setattr(self, name, call)
        return call


class RawIndex:
    """Nodes in time: found by similarity, followed along timelines and typed edges.

    Regions, the cells of the vector space around the hubs of a level of the graph, are a snapshot
    with an epoch: what is inserted later is assigned to the hubs of the epoch, and becomes a hub in
    the next one at the earliest. An epoch ends when the number of vectors has doubled, a hub is
    deleted or takes another vector, the centre changes, or `refresh_regions` is called.

    Safe to share between threads: searches run side by side, changes one after the other. It
    pickles, and a copy (``copy.copy`` or ``copy.deepcopy``) is an index of its own.

    Parameters
    ----------
    dim : int
        Length of the vectors, at least 1.
    metric : {"cosine", "l2", "ip"}, default "cosine"
        Distance (lower is nearer): 1 - cosine, squared euclidean, 1 - inner product.
    m : int, default 16
        Links a node in the graph, twice as many at its ground level; at least 2.
    ef_construction : int, default 200
        Width of the walk while inserting, at least 1.
    seed : int, default 0
        Same seed, same input: same bytes, at any number of threads.
    exact_below : int, default 10_000
        With fewer vectors than this, searches compare with every one of them.

    Raises
    ------
    InvalidInputError
        A parameter outside its bounds.

    References
    ----------
    Malkov & Yashunin, "Efficient and robust approximate nearest neighbor search using
    hierarchical navigable small world graphs", 2018.

    Examples
    --------
    >>> from cvx.index import RawIndex
    >>> ix = RawIndex(dim=3)
    >>> ix.insert(1, 100, [1.0, 0.0, 0.0])
    0
    >>> len(ix), 0 in ix, ix.search([1, 0, 0])[0]
    (1, True, array([0]))
    """

    # How far the epochs of regions are ahead of the native index: see `become`.
    _epochs = 0

    def __init__(
        self,
        dim: int,
        metric: str = "cosine",
        m: int = 16,
        ef_construction: int = 200,
        seed: int = 0,
        *,
        exact_below: int = 10_000,
    ) -> None:
        self._adopt(NativeIndex(dim, metric, m, ef_construction, seed, exact_below))

    def _adopt(self, native: NativeIndex) -> None:
        self._native = native
        self._params = native.params()
        self._dim = int(self._params["dim"])

    def mend_by(self, mend: Callable[[], bool]) -> None:
        """Have another index take the place of this one where its snapshot turns out damaged.

        Rows of a snapshot are held against their checksums when they are first read, and a call
        that reads a damaged one raises. After this it calls ``mend`` first, and is made again.

        Parameters
        ----------
        mend : callable
            Calls `become` and returns True, or returns False where the error is to be raised.
        """
        self._native = cast(NativeIndex, _Mended(self, self._native, a_function("mend", mend)))

    def become(self, other: Self) -> None:
        """Take over everything of another index, which must not be used any more.

        Raises
        ------
        InvalidInputError
            No index.
        """
        if not isinstance(other, RawIndex):
            raise wrong("other", other, "a RawIndex")
        before = self.region_epoch
        self._adopt(other._native)
        # What was learned on the regions of before must not pass for learned on these.
        self._epochs += max(0, before + 1 - self.region_epoch)

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self._dim

    @property
    def metric(self) -> str:
        """Name of the distance: "cosine", "l2" or "ip"."""
        return str(self._params["metric"])

    @property
    def seed(self) -> int:
        """What levels, and with them graph and regions, are drawn from."""
        return int(self._params["seed"])

    @property
    def params(self) -> dict[str, Any]:
        """What the index was made with, by name."""
        return dict(self._params)

    def insert(
        self,
        entity_id: int | None = None,
        timestamp: int | None = None,
        vector: npt.ArrayLike | EllipsisType | None = ...,
        *,
        reward: float | None = None,
        namespace: str | None = None,
        tags: Collection[str] | None = None,
        action: str | None = None,
        task_type: str | None = None,
        recallable: bool = True,
    ) -> int:
        """Add a node.

        Parameters
        ----------
        entity_id : int, default 0
            Who, at least 0. The nodes of an entity in a namespace form a timeline.
        timestamp : int, optional
            When it happened, in any unit; nodes may arrive out of order. Left out, it is one after
            the latest of its timeline, from 0: the order of insertion.
        vector : array_like of shape (dim,), or None
            Where it lies; not to be left out. A node with ``None`` holds its place in timelines and
            edges, and no search returns it.
        reward : float, optional
            Outcome in [0, 1].
        namespace : str, optional
            Which memory it is part of; ``None`` is the default one, ``""``.
        tags : collection of str, optional
            Labels to filter by.
        action : str, optional
            What was done there.
        task_type : str, optional
            Which family of goals it belongs to; kept as the tag "task:" + task_type.
        recallable : bool, default True
            Whether it may advise: failed episodes are stored with ``False``.

        Returns
        -------
        int
            Its node id: 0, 1, 2... in the order of insertion, stable for the life of the index.

        Raises
        ------
        InvalidVectorError
            A vector that the index cannot hold. Nothing is inserted.
        InvalidInputError
            An entity below 0, a reward outside [0, 1], tags that name another family of goals.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> ix.insert(7, 100, [1.0, 0.0], reward=0.5, action="open")
        0
        >>> ix.step(0)
        Step(node_id=0, entity_id=7, timestamp=100, action='open', reward=0.5)
        >>> ix.insert(vector=[0.0, 1.0]), ix.insert(vector=[1.0, 1.0])
        (1, 2)
        >>> ix.step(2)
        Step(node_id=2, entity_id=0, timestamp=1, action=None, reward=None)
        """
        if vector is ...:
            raise InvalidVectorError(_LEFT_OUT.format("vector", "(dim,)"))
        return self._native.insert(
            entity_id,
            timestamp,
            vector,
            reward,
            DEFAULT_NAMESPACE if namespace is None else namespace,
            tags,
            task_type,
            action,
            recallable,
        )

    def bulk_insert(
        self,
        entity_ids: npt.ArrayLike | None = None,
        timestamps: npt.ArrayLike | None = None,
        vectors: npt.ArrayLike | Sequence[Any] | EllipsisType | None = ...,
        *,
        rewards: Sequence[float | None] | npt.NDArray[Any] | None = None,
        namespaces: str | Sequence[str] | None = None,
        tags: Sequence[Collection[str]] | None = None,
        actions: Sequence[str | None] | None = None,
        task_types: Sequence[str | None] | None = None,
        recallable: bool | Sequence[bool] | Mask | None = None,
        threads: int | None = None,
        link: bool = True,
    ) -> IntArray:
        """Add nodes, all of them or, where one is refused, none.

        The vectors are copied first: what is written to their array later changes nothing.

        Parameters
        ----------
        entity_ids, timestamps : array_like of shape (n,), integers, optional
            As for `insert`.
        vectors : array_like of shape (n, dim), sequence of vectors and None, or None
            ``None`` for nodes without a vector; not to be left out.
        rewards : sequence of (float or None) of length n, optional
            ``None`` is no reward; NaN is refused.
        namespaces : str or sequence of str, optional
            One for all rows, or one for each.
        tags : sequence of collections of str, optional
            The labels of each row.
        actions : sequence of (str or None), optional
            What was done at each.
        task_types : sequence of (str or None), optional
            The family of goals of each, see `insert`.
        recallable : bool or sequence of bool, default True
            One for all rows, or one for each.
        threads : int, optional
            From 1 to 256; as many as the machine offers unless told. The result does not depend
            on it.
        link : bool, default True
            ``False`` to fill an index part by part: nodes come without links, and no walk finds
            them before `relink`, after which all is as if they had come in one call.

        Returns
        -------
        ndarray of shape (n,), int64
            The node ids, in the order of the rows.

        Raises
        ------
        InvalidVectorError
            A vector that the index cannot hold.
        InvalidInputError
            Columns of different lengths, an entity below 0, a reward outside [0, 1], threads
            outside their range, tags that name another family of goals.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> ix.bulk_insert([1, 1], [10, 20], [[1, 0], [0, 1]], rewards=[None, 1.0])
        array([0, 1])
        >>> ix.bulk_insert(vectors=[[1, 1], [1, 2]], task_types=["heat", None])
        array([2, 3])
        """
        if vectors is ...:
            raise InvalidVectorError(_LEFT_OUT.format("vectors", "(n, dim)"))
        rows, present = rows_and_presence(vectors, self._dim)
        return self._native.bulk_insert(
            entity_ids,
            timestamps,
            rows,
            present,
            rewards,
            DEFAULT_NAMESPACE if namespaces is None else namespaces,
            tags,
            task_types,
            actions,
            True if recallable is None else recallable,
            threads,
            link,
        )

    def reserve(self, nodes: int) -> None:
        """Make room for so many more nodes, if there is that much memory.

        Tables that grow part by part are copied now and then, and are there twice meanwhile.

        Parameters
        ----------
        nodes : int
            At least 0.
        """
        self._native.reserve(nodes)

    def relink(self, *, threads: int | None = None) -> None:
        """Link all nodes anew, at once, in the graph that one `bulk_insert` of them makes.

        Searches go on meanwhile in the graph as it was.

        Parameters
        ----------
        threads : int, optional
            As for `bulk_insert`.

        Raises
        ------
        InvalidInputError
            Threads outside their range.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> for part in ([[1, 0], [0, 1]], [[1, 1]]):
        ...     _ = ix.bulk_insert(vectors=part, link=False)
        >>> ix.relink()
        >>> ix.search([1, 1], k=1)[0]
        array([2])
        """
        self._native.relink(threads)

    def delete(self, nodes: int | Sequence[int] | npt.NDArray[np.integer[Any]]) -> None:
        """Remove nodes with their edges, all or none; timelines close over the gap.

        Parameters
        ----------
        nodes : int or sequence of int
            Node ids. They are never given again.

        Raises
        ------
        UnknownError
            One of them does not exist or was deleted before.
        """
        self._native.delete(nodes)

    def skip_ids(self, count: int) -> None:
        """Pass over ids, which are then as those of deleted nodes; they take no room.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Raises
        ------
        InvalidInputError
            No number from 0 up, or more ids than the index can give.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> ix.skip_ids(1000)
        >>> ix.insert(1, 10, [1, 0]), 999 in ix, len(ix)
        (1000, False, 1)
        """
        self._native.skip_ids(count)

    def compact(self) -> None:
        """Give back what deleted nodes still take: memory, and the time to pass over them.

        Namespaces, tags and actions that no other node has are forgotten with them. Node ids
        stand, and none is given again. Searches go on meanwhile, in the index as it was.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1, 1], [10, 20, 30], [[1, 0], [0, 1], [1, 1]])
        >>> ix.delete([0, 1])
        >>> ix.compact()
        >>> ix.search([1, 1])[0], ix.insert(1, 40, [1, 0])
        (array([2]), 3)
        """
        self._native.compact()

    @property
    def changes(self) -> int:
        """How often nodes came, went or became others since the index was made or opened."""
        return self._native.changes()

    @property
    def deletions(self) -> int:
        """How many nodes were deleted so far, ids that were passed over included."""
        counts = self._native.stats()
        return int(counts["ids_given"] - counts["nodes"])

    def __bool__(self) -> bool:
        # An empty one is one: ``index or TemporalIndex(dim)`` must not make another.
        return True

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, node: object) -> bool:
        return self._native.contains(node)

    def node_ids(self) -> IntArray:
        """List every node, those without a vector among them.

        Returns
        -------
        ndarray of shape (len(index),), int64
            Node ids, ascending, of all namespaces.
        """
        return self._native.node_ids()

    def step(self, node: int) -> Step:
        """Whose, when, what and with which outcome a node is.

        Raises
        ------
        UnknownError
            No such node.
        """
        return Step._make(self._native.step(node))

    def namespace(self, node: int) -> str:
        """Which memory a node is part of.

        Raises
        ------
        UnknownError
            No such node.
        """
        return self._native.namespace(node)

    def tags(self, node: int) -> frozenset[str]:
        """The labels of a node.

        Raises
        ------
        UnknownError
            No such node.
        """
        return frozenset(self._native.tags(node))

    def vector(self, node: int) -> Vector | None:
        """The vector of a node as it was inserted, float32 of shape (dim,), or None.

        Raises
        ------
        UnknownError
            No such node.
        """
        return self._native.vector(node)

    def vectors(self, nodes: IntArray) -> Vector:
        """Return the vectors of nodes as they were inserted.

        Parameters
        ----------
        nodes : ndarray of shape (n,), int64
            Any numbers.

        Returns
        -------
        ndarray of shape (n, dim), float32
            0 for what is no node, or has no vector.
        """
        return self._native.vectors(nodes)

    def set_vector(self, node: int, vector: npt.ArrayLike | None) -> None:
        """Give a node another vector, or take it away with None; all else of it stays.

        It takes as long as to delete the node and to insert it. Regions begin a new epoch if the
        node is the hub of one above level 0, or becomes one.

        Raises
        ------
        UnknownError
            No such node.
        InvalidVectorError
            A vector that the index cannot hold. The node keeps the one it has.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert(vectors=[[1, 0], [0, 1]])
        >>> ix.set_vector(1, [1, 0.1])
        >>> ix.vector(1), ix.search([1, 0.1], k=1)[0]
        (array([1. , 0.1], dtype=float32), array([1]))
        """
        self._native.set_vector(node, vector)

    def set_tags(self, node: int, tags: Collection[str]) -> None:
        """Give a node other labels, in place of all it has; its task type is one of them.

        Raises
        ------
        UnknownError
            No such node.
        InvalidInputError
            No collection of str.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> node = ix.insert(vector=[1, 0], tags=["draft"])
        >>> ix.set_tags(node, ["final"])
        >>> ix.tags(node), ix.search([1, 0], where={"tags": "draft"})[0]
        (frozenset({'final'}), array([], dtype=int64))
        """
        self._native.set_tags(node, tags)

    def reward(self, node: int) -> float | None:
        """The outcome attached to a node, in [0, 1], or None.

        Raises
        ------
        UnknownError
            No such node.
        """
        return self._native.reward(node)

    def set_reward(self, node: int, reward: float | None) -> None:
        """Attach an outcome to a node, or take it away with None.

        Raises
        ------
        UnknownError
            No such node.
        InvalidInputError
            Outside [0, 1].
        """
        self._native.set_reward(node, reward)

    def recallable(self, node: int) -> bool:
        """Whether a node may advise.

        Raises
        ------
        UnknownError
            No such node.
        """
        return self._native.recallable(node)

    def set_recallable(self, node: int, recallable: bool) -> None:
        """Let a node advise, or keep it from that.

        Raises
        ------
        UnknownError
            No such node.
        """
        self._native.set_recallable(node, recallable)

    @property
    def center(self) -> Vector | None:
        """Where distances are taken from: ndarray of shape (dim,), float32, or None.

        Set it to a vector, to ``"mean"`` (that of the vectors now stored) or to ``None``. Rows and
        queries are compared as x - center, for cosine renormalised. Setting it rebuilds the graph
        from the rows as they were inserted, and begins a new epoch of regions.

        Raises
        ------
        InvalidVectorError, InvalidInputError
            No usable vector; another word than "mean".
        UnknownError
            The mean of an index without vectors.
        """
        return self._native.center()

    @center.setter
    def center(self, center: npt.ArrayLike | None) -> None:
        self._native.set_center(center)

    def search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        *,
        ef: int | None = None,
        where: Where | None = None,
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
        where : Filter, mapping of its fields, or list of these, optional
            What may come back; of a list, what any of them accepts. Without one: recallable nodes
            of the default namespace.
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
        InvalidInputError
            k below 1; ef or threads outside their range; a filter that cannot be understood.
        InvalidVectorError
            A query that cannot be compared.

        References
        ----------
        Malkov & Yashunin 2018, algorithm 5.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1, 2], [10, 20, 30], [[1, 0], [1, 1], [0, 1]])
        >>> ids, distances = ix.search([1, 0], k=2)
        >>> ids
        array([0, 1])
        >>> ix.search([[1, 0]], k=2, where={"since": 15, "until": 25})[0]
        array([[ 1, -1]])
        """
        return self._native.search(query, k, ef, index_filter(where), threads)

    def distances(self, query: Vector, nodes: IntArray) -> Vector:
        """Return how far nodes are from a query, in their order and in full precision.

        Parameters
        ----------
        query : ndarray of shape (dim,), float32
        nodes : ndarray of shape (n,), int64
            Any numbers.

        Returns
        -------
        ndarray of shape (n,), float32
            As `search` has them; NaN for what is no node, or has no vector.

        Raises
        ------
        InvalidVectorError
            A query that cannot be compared.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert(vectors=[[1, 0], [0, 1]])
        >>> ix.distances(np.array([0, 2], dtype=np.float32), np.array([1, 0, 7]))
        array([ 0.,  1., nan], dtype=float32)
        """
        return self._native.distances(query, nodes)

    def causal_search(
        self,
        query: npt.ArrayLike,
        k: int = 5,
        temporal_context: int = 5,
        where: Where | None = None,
        *,
        ef: int | None = None,
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
        where, ef
            As for `search`.

        Returns
        -------
        sequence of Hit
            Nearest first. ``score`` is the similarity. Made when read: see `LazyHits`.

        Raises
        ------
        InvalidInputError, InvalidVectorError
            As for `search`; a negative context.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1], [10, 20], [[1, 0], [0, 1]], actions=["open", "take"])
        >>> hit = ix.causal_search([1, 0], k=1)[0]
        >>> hit.score, [step.action for step in hit.successors]
        (1.0, ['take'])
        """
        found = self._native.causal_search(query, k, temporal_context, ef, index_filter(where))
        return LazyHits(len(found), partial(causal_hits, found))

    def hybrid_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        beta: float = 0.3,
        where: Where | None = None,
        *,
        ef: int | None = None,
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
        where, ef
            As for `search`.

        Returns
        -------
        list of Hit
            Best score first.

        Raises
        ------
        InvalidInputError, InvalidVectorError
            As for `search`; beta outside its range.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1, 2], [10, 20, 10], [[1, 0], [-1, 0], [0.2, 1]])
        >>> [hit.node for hit in ix.hybrid_search([1, 0], k=2, beta=0.9)]
        [0, 1]
        """
        found = self._native.hybrid_search(query, k, beta, ef, index_filter(where))
        return [hybrid_hit(row, neighbour, beta) for row, neighbour in found]

    def graph_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        edge_boost: Mapping[str, float] | None = None,
        max_hops: int = 2,
        where: Where | None = None,
        *,
        ef: int | None = None,
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
        where, ef
            As for `search`. A node that the filter refuses still bridges, within its namespaces.

        Returns
        -------
        sequence of Hit
            Best score first; ``path`` holds the edges that were walked. Made when read: see
            `LazyHits`.

        Raises
        ------
        UnknownError
            A kind that is neither built in nor declared.
        InvalidInputError, InvalidVectorError
            As for `search`; a boost or a number of hops outside its range.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2, 3], [10, 10, 10], [[1, 0], [0, 1], [0.1, 1]])
        >>> ix.add_edge(0, 1, "caused_success", 1.0)
        >>> hit = ix.graph_search([1, 0], k=2)[1]
        >>> hit.node, round(hit.score, 2), hit.path[0].kind
        (1, 0.3, 'caused_success')
        """
        boosts = DEFAULT_EDGE_BOOST if edge_boost is None else edge_boost
        found = self._native.graph_search(query, k, boosts, max_hops, ef, index_filter(where))
        return LazyHits(len(found), partial(graph_hits, found))

    def trajectory(
        self,
        entity_id: int,
        since: int | None = None,
        until: int | None = None,
        *,
        namespace: str | None = None,
    ) -> list[Step]:
        """Follow an entity through time.

        Parameters
        ----------
        entity_id : int
            Who.
        since, until : int, optional
            ``since <= timestamp < until``; one of them alone is a one-sided range.
        namespace : str, optional
            Whose memory; ``None`` is the default one.

        Returns
        -------
        list of Step
            In time order, nodes of one time in the order of their ids.

        Raises
        ------
        UnknownError
            The entity has no node in that namespace.
        InvalidInputError
            ``since >= until``.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1], [20, 10], [[1, 0], [0, 1]])
        >>> [step.node_id for step in ix.trajectory(1)]
        [1, 0]
        """
        rows = self._native.trajectory(
            DEFAULT_NAMESPACE if namespace is None else namespace, entity_id, since, until
        )
        return [Step._make(row) for row in rows]

    def predecessors(self, node: int, n: int = 1) -> list[Step]:
        """Look up to `n` steps back on a node's timeline; in time order.

        Raises
        ------
        UnknownError
            No such node.
        InvalidInputError
            n below 0.
        """
        return [Step._make(row) for row in self._native.predecessors(node, n)]

    def successors(self, node: int, n: int = 1) -> list[Step]:
        """Look up to `n` steps ahead on a node's timeline; in time order.

        Raises
        ------
        UnknownError
            No such node.
        InvalidInputError
            n below 0.
        """
        return [Step._make(row) for row in self._native.successors(node, n)]

    @property
    def edge_kinds(self) -> tuple[str, ...]:
        """Every edge kind: the built-in ones, then those declared."""
        return tuple(self._native.edge_kinds())

    def declare_edge_kind(self, name: str) -> None:
        """Make `name` an edge kind; one that is known already stays what it is.

        Raises
        ------
        InvalidInputError
            Not lower snake case of 1 to 64 letters.
        """
        self._native.declare_edge_kind(name)

    def add_edge(self, a: int, b: int, edge_type: str, weight: float = 1.0) -> None:
        """Link two nodes, of whatever namespaces; the same edge again takes the new weight.

        Parameters
        ----------
        a, b : int
            From cause to effect, from advice to outcome.
        edge_type : str
            One of `edge_kinds`, except "temporal", which timelines imply.
        weight : float, default 1.0
            In [0, 1].

        Raises
        ------
        UnknownError
            An end or a kind that does not exist.
        InvalidInputError
            A weight outside [0, 1]; an edge to itself, or a temporal one.
        """
        self._native.add_edge(a, b, edge_type, weight)

    def remove_edge(self, a: int, b: int, edge_type: str) -> None:
        """Take an edge away.

        Raises
        ------
        UnknownError
            There is no such edge.
        """
        self._native.remove_edge(a, b, edge_type)

    def edges(self) -> list[Edge]:
        """Every typed edge, by start, kind and end; temporal ones are implied and not listed."""
        return [Edge(*row) for row in self._native.edges()]

    def typed_neighbors(
        self,
        node: int,
        edge_type: str | None = None,
        min_weight: float = 0.0,
        direction: str = "out",
        *,
        namespaces: Sequence[str] | None = None,
    ) -> list[Edge]:
        """List the edges of a node.

        Parameters
        ----------
        node : int
            Whose edges.
        edge_type : str, optional
            One kind only, such as "caused_success" or "temporal".
        min_weight : float, default 0.0
            Weaker edges are left out.
        direction : {"out", "in"}, default "out"
            Edges that start at the node, or those that end at it.
        namespaces : sequence of str, optional
            The other end lies in one of these; ``None`` is the node's own namespace.

        Returns
        -------
        list of Edge
            By kind, then by the node at the other end.

        Raises
        ------
        UnknownError, InvalidInputError
            A node, kind or direction that does not exist.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2], [10, 10], [[1, 0], [0, 1]])
        >>> ix.add_edge(0, 1, "caused", 0.8)
        >>> [edge.from_node for edge in ix.typed_neighbors(1, direction="in", min_weight=0.5)]
        [0]
        """
        rows = self._native.typed_neighbors(node, edge_type, min_weight, direction, namespaces)
        return [Edge(*row) for row in rows]

    def traverse(
        self,
        start: int,
        edge_types: str | Sequence[str],
        max_hops: int = 3,
        *,
        max_paths: int = 100,
        namespaces: Sequence[str] | None = None,
    ) -> list[Path]:
        """Walk edges from a node.

        Parameters
        ----------
        start : int
            Where the walk begins.
        edge_types : str or sequence of str
            Kinds to follow, "temporal" (to successors, weight 1) among them.
        max_hops : int, default 3
            Length of the longest path, at least 1.
        max_paths : int, default 100
            How many paths, at least 1.
        namespaces : sequence of str, optional
            The walk enters nodes of these only; ``None`` is the namespace of `start`.

        Returns
        -------
        list of Path
            Strongest first, then fewer hops, then by node ids. Every prefix of a path is one too;
            none visits a node twice.

        Raises
        ------
        UnknownError, InvalidInputError
            A node or kind that does not exist, a bound below 1.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2, 3], [10, 10, 10], [[1, 0], [0, 1], [1, 1]])
        >>> ix.add_edge(0, 1, "caused", 0.5)
        >>> ix.add_edge(1, 2, "caused", 0.5)
        >>> [(path.nodes, path.strength) for path in ix.traverse(0, ["caused"])]
        [((0, 1), 0.5), ((0, 1, 2), 0.25)]
        """
        rows = self._native.traverse(start, edge_types, max_hops, max_paths, namespaces)
        return [
            Path(
                tuple(nodes),
                tuple(map(Edge, nodes, nodes[1:], found, weights)),
                strength,
            )
            for nodes, found, weights, strength in rows
        ]

    def ancestors(
        self,
        node: int,
        edge_types: str | Sequence[str],
        max_depth: int = 4,
        *,
        budget: int = 4096,
        direction: str = "in",
        namespaces: Sequence[str] | None = None,
    ) -> Ancestry:
        """Find what led to a node, or what it led to, breadth first and within a budget.

        Parameters
        ----------
        node : int
            Where the walk begins.
        edge_types : str or sequence of str
            Kinds to follow, "temporal" (weight 1) among them.
        max_depth : int, default 4
            The most edges between the start and a node, at least 1.
        budget : int, default 4096
            The most edges to look at, at least 1, also within one long list: at most so many nodes
            are found. Of one depth the strongest nodes are walked from first, and of one node's
            edges of a kind those of the latest nodes.
        direction : {"in", "out"}, default "in"
            Against the edges, to causes, or along them, to consequences.
        namespaces : sequence of str, optional
            The walk enters nodes of these only; ``None`` is the namespace of `node`.

        Returns
        -------
        Ancestry
            Every node within reach, unless ``truncated`` says that the budget ended the walk.

        Raises
        ------
        UnknownError, InvalidInputError
            A node, kind or direction that does not exist, a bound below 1.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2, 3], [10, 20, 30], None)
        >>> ix.add_edge(0, 1, "caused", 0.5)
        >>> ix.add_edge(1, 2, "caused", 0.5)
        >>> found = ix.ancestors(2, ["caused"])
        >>> found.nodes, found.depths, found.weights, found.truncated
        (array([1, 0]), array([1, 2]), array([0.5 , 0.25], dtype=float32), False)
        """
        return Ancestry(
            **self._native.ancestors(node, edge_types, max_depth, budget, direction, namespaces)
        )

    @property
    def region_levels(self) -> tuple[int, ...]:
        """The levels that have regions, finest first; at level 0 every node is its own region."""
        return tuple(self._native.region_levels())

    @property
    def region_epoch(self) -> int:
        """Which snapshot of the hubs is in force; it grows with every new one."""
        return self._native.region_epoch() + self._epochs

    def refresh_regions(self) -> None:
        """Begin a new epoch with the hubs of now."""
        self._native.refresh_regions()

    def regions(self, level: int) -> IntArray:
        """List the regions of a level.

        Parameters
        ----------
        level : int
            One of `region_levels`.

        Returns
        -------
        ndarray of shape (regions,), int64
            Each region's id, which is the node id of its hub, ascending.

        Raises
        ------
        UnknownError
            A level without regions.

        Examples
        --------
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2], [10, 10], [[1, 0], [0, 1]])
        >>> ix.refresh_regions()
        >>> ix.regions(0)
        array([0, 1])
        """
        return self._native.regions(level)

    def region_members(self, region: int, level: int) -> IntArray:
        """List the nodes of a region.

        Returns
        -------
        ndarray of shape (members,), int64
            Node ids, ascending.

        Raises
        ------
        UnknownError
            A level without regions, a node that is no hub of the level.
        """
        return self._native.region_members(region, level)

    @overload
    def assign_region(self, vectors: list[float] | tuple[float, ...], level: int) -> int: ...
    @overload
    def assign_region(self, vectors: npt.ArrayLike, level: int) -> int | IntArray: ...
    def assign_region(self, vectors: npt.ArrayLike, level: int) -> int | IntArray:
        """Find the region that a vector lies in.

        Parameters
        ----------
        vectors : array_like of shape (dim,) or (n, dim)
            One or several.
        level : int
            One of `region_levels`.

        Returns
        -------
        int, or ndarray of shape (n,), int64
            The region with the nearest hub.

        Raises
        ------
        UnknownError
            A level without regions.
        InvalidVectorError
            A vector that cannot be compared.
        """
        return self._native.assign_region(vectors, level)

    def region_assignments(self, level: int) -> tuple[IntArray, IntArray]:
        """Give every node with a vector its region.

        Returns
        -------
        nodes : ndarray of shape (n,), int64
            Node ids, ascending.
        regions : ndarray of shape (n,), int64
            The region of each.

        Raises
        ------
        UnknownError
            A level without regions.
        """
        return self._native.region_assignments(level)

    def region_trajectory(
        self,
        entity_id: int,
        level: int,
        window: int,
        alpha: float,
        *,
        namespace: str | None = None,
    ) -> tuple[Column, Column]:
        """Watch an entity move through the regions.

        The time from its first event to its last is cut into windows; p_w are the shares of the
        regions among its events in window w, and ``s_w = alpha * p_w + (1 - alpha) * s_(w-1)``.

        Parameters
        ----------
        entity_id : int
            Who.
        level : int
            One of `region_levels`.
        window : int
            Length of a window in units of time, at least 1.
        alpha : float
            Weight of the present window, in (0, 1]; 1 does not smooth.
        namespace : str, optional
            Whose memory; ``None`` is the default one.

        Returns
        -------
        centres : ndarray of shape (w,), float64
            The middle of each window, in units of time.
        shares : ndarray of shape (w, regions), float64
            Smoothed shares, with the columns of `regions`.

        Raises
        ------
        UnknownError, InvalidInputError
            An entity or level that does not exist; window or alpha outside their range.
        """
        return self._native.region_trajectory(
            DEFAULT_NAMESPACE if namespace is None else namespace, entity_id, level, window, alpha
        )

    def save(self, path: str | os.PathLike[str], metadata: bytes = b"") -> None:
        """Write a snapshot: one file, written beside and renamed, so that it is whole or absent.

        A file that is there is replaced, never written to: who has it mapped keeps it.

        Parameters
        ----------
        path : str or os.PathLike
            Where: a new file, or one to be replaced.
        metadata : bytes, default b""
            The caller's own, at most 65,536 bytes: it stands in the header, under its checksum.

        Raises
        ------
        SnapshotError
            The file system refused; or there is something else than a regular file, such as a
            symbolic link, a device or a folder.
        InvalidInputError
            Too much metadata.
        """
        self._native.save(path, metadata)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, verify: bool = False, mmap: bool = False
    ) -> Self:
        """Open a snapshot.

        Header, metadata, columns, links, timelines, postings and edges are held against their
        checksums and against each other before this returns. Rows (vectors and their codes, most
        of the file) are when they are first read, in pieces of 4,096 bytes: from the first damaged
        one on, whatever is asked of the index raises SnapshotError.

        Parameters
        ----------
        path : str or os.PathLike
            What `save` wrote.
        verify : bool, default False
            Whether to hold all rows against their checksums now, and to refuse one that `insert`
            would refuse, which takes as long as reading the file.
        mmap : bool, default False
            Whether to map the file instead of reading it: it opens in milliseconds, and rows take
            memory only where a search needs them. Only for a file that nobody writes to while it is
            open: one that is cut off, or copied over, ends the process (SIGBUS). To replace it by
            `save` or a rename, or to remove it, is safe.

        Raises
        ------
        SnapshotError
            There is no such file, it cannot be read, or it is not, or no longer, what `save` wrote.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from cvx.index import RawIndex
        >>> ix = RawIndex(dim=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.cvx")
        ...     ix.save(path, metadata=b"of 7 May")
        ...     RawIndex.load(path, verify=True).metadata, RawIndex.read_metadata(path)
        (b'of 7 May', b'of 7 May')
        """
        index = cls.__new__(cls)
        index._adopt(NativeIndex.load(path, verify, mmap))
        return index

    @staticmethod
    def read_metadata(path: str | os.PathLike[str]) -> bytes:
        """Read what the caller of `save` put into the header, and nothing behind it.

        Raises
        ------
        SnapshotError
            There is no such file, it cannot be read, or it has no sound header.
        """
        return NativeIndex.read_metadata(path)

    @property
    def metadata(self) -> bytes:
        """The metadata of the snapshot that this index was loaded from; otherwise empty."""
        return self._native.metadata()

    def validate(self) -> None:
        """Check all that the parts of the index rely on in each other; for tests and doctors.

        Raises
        ------
        InternalError
            Something does not hold: the index can no longer be trusted.
        """
        if (reason := self._native.validate()) is not None:
            raise InternalError(
                f"unsound index ({reason}): load another snapshot, or build it again"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return everything, the native index as a snapshot: copies and pickles are whole."""
        return self.__dict__ | {"_native": self._native.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned, held against its checksums."""
        self.__dict__.update(state)
        self._adopt(NativeIndex.from_bytes(state["_native"]))

    def stats(self) -> dict[str, Any]:
        """Count what the index holds.

        Returns
        -------
        dict
            nodes, ids_given (deleted ones included), vectors, deleted_rows (left until `compact`),
            edges (typed), timelines, namespaces, top_level, region_epoch, kernels (the instruction
            set of the distances), bytes (of memory, of rows and links; mapped ones not counted).
        """
        return self._native.stats()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._shown().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self._shown().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"

    def _shown(self) -> dict[str, Any]:
        counts = self.stats()
        parts = "nodes", "vectors", "edges", "timelines", "namespaces"
        return {
            "dim": self.dim,
            "metric": self.metric,
            **{part: counts[part] for part in parts},
            "center": None if self.center is None else "set",
        }


for _name, _one in vars(RawIndex).items():
    _function = _one.__func__ if isinstance(_one, classmethod) else _one
    if isinstance(_function, FunctionType):
        # Python's own errors name the class that users see.
        _function.__qualname__ = f"TemporalIndex.{_name}"
