"""Nodes going in, their columns coming out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx._cvx import NativeIndex
from cvx.index.arrays import rows_and_presence
from cvx.types import DEFAULT_NAMESPACE, IntArray, Step, Vector


class Rows:
    """The part of the index that stores nodes."""

    _native: NativeIndex
    _dim: int

    def insert(
        self,
        entity_id: int,
        timestamp: int,
        vector: npt.ArrayLike | None,
        *,
        reward: float | None = None,
        namespace: str | None = None,
        tags: Collection[str] | None = None,
        action: str | None = None,
        recallable: bool = True,
    ) -> int:
        """Add a node.

        Parameters
        ----------
        entity_id : int
            Who, at least 0. The nodes of an entity in a namespace form a timeline.
        timestamp : int
            When it happened, in any unit; nodes may arrive out of order.
        vector : array_like of shape (dim,), or None
            Where it lies. A node without one holds its place in timelines and edges, and no
            search returns it.
        reward : float, optional
            Outcome in [0, 1].
        namespace : str, optional
            Which memory it is part of; ``None`` is the default one, ``""``.
        tags : collection of str, optional
            Labels to filter by.
        action : str, optional
            What was done there.
        recallable : bool, default True
            Whether it may advise: failed episodes are stored with ``False``.

        Returns
        -------
        int
            Its node id: 0, 1, 2... in the order of insertion, stable for the life of the index.

        Raises
        ------
        DimensionError, NonFiniteVectorError, ZeroVectorError, InvalidVectorError
            A vector that the index cannot hold. Nothing is inserted.
        InvalidEntityError, RewardRangeError
            An entity below 0, a reward outside [0, 1].

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> ix.insert(7, 100, [1.0, 0.0], reward=0.5, action="open")
        0
        >>> ix.step(0)
        Step(node_id=0, entity_id=7, timestamp=100, action='open', reward=0.5)
        """
        return self._native.insert(
            entity_id,
            timestamp,
            vector,
            reward,
            DEFAULT_NAMESPACE if namespace is None else namespace,
            tags,
            action,
            recallable,
        )

    def bulk_insert(
        self,
        entity_ids: npt.ArrayLike,
        timestamps: npt.ArrayLike,
        vectors: npt.ArrayLike | Sequence[Any] | None,
        *,
        rewards: Sequence[float | None] | npt.NDArray[Any] | None = None,
        namespaces: str | Sequence[str] | None = None,
        tags: Sequence[Collection[str]] | None = None,
        actions: Sequence[str | None] | None = None,
        recallable: bool | Sequence[bool] | npt.NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> IntArray:
        """Add nodes, all of them or, where one is refused, none.

        The vectors are copied first: what is written to their array later changes nothing.

        Parameters
        ----------
        entity_ids, timestamps : array_like of shape (n,), integers
            As for `insert`.
        vectors : array_like of shape (n, dim), sequence of vectors and None, or None
            ``None`` for nodes without a vector.
        rewards : sequence of (float or None) of length n, optional
            ``None`` is no reward; NaN is refused.
        namespaces : str or sequence of str, optional
            One for all rows, or one for each.
        tags : sequence of collections of str, optional
            The labels of each row.
        actions : sequence of (str or None), optional
            What was done at each.
        recallable : bool or sequence of bool, default True
            One for all rows, or one for each.
        threads : int, optional
            From 1 to 256; as many as the machine offers unless told. The result does not depend
            on it.

        Returns
        -------
        ndarray of shape (n,), int64
            The node ids, in the order of the rows.

        Raises
        ------
        LengthMismatchError
            Columns of different lengths.
        DimensionError, NonFiniteVectorError, ZeroVectorError, InvalidVectorError
            A vector that the index cannot hold.
        InvalidEntityError, RewardRangeError, InvalidParameterError
            An entity below 0, a reward outside [0, 1], threads outside their range.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> ix.bulk_insert([1, 1], [10, 20], [[1, 0], [0, 1]], rewards=[None, 1.0])
        array([0, 1])
        """
        rows, present = rows_and_presence(vectors, self._dim)
        return self._native.bulk_insert(
            entity_ids,
            timestamps,
            rows,
            present,
            rewards,
            DEFAULT_NAMESPACE if namespaces is None else namespaces,
            tags,
            actions,
            True if recallable is None else recallable,
            threads,
        )

    def delete(self, nodes: int | Sequence[int] | npt.NDArray[np.integer[Any]]) -> None:
        """Remove nodes with their edges, all or none; timelines close over the gap.

        Parameters
        ----------
        nodes : int or sequence of int
            Node ids. They are never given again.

        Raises
        ------
        UnknownNodeError
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
        InvalidParameterError
            No number from 0 up.
        CapacityError
            The index cannot give as many ids.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
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
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
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

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, node: object) -> bool:
        return self._native.contains(node)

    def step(self, node: int) -> Step:
        """Whose, when, what and with which outcome a node is.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return Step._make(self._native.step(node))

    def namespace(self, node: int) -> str:
        """Which memory a node is part of.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return self._native.namespace(node)

    def tags(self, node: int) -> frozenset[str]:
        """The labels of a node.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return frozenset(self._native.tags(node))

    def vector(self, node: int) -> Vector | None:
        """The vector of a node as it was inserted, float32 of shape (dim,), or None.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return self._native.vector(node)

    def reward(self, node: int) -> float | None:
        """The outcome attached to a node, in [0, 1], or None.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return self._native.reward(node)

    def set_reward(self, node: int, reward: float | None) -> None:
        """Attach an outcome to a node, or take it away with None.

        Raises
        ------
        UnknownNodeError
            No such node.
        RewardRangeError
            Outside [0, 1].
        """
        self._native.set_reward(node, reward)

    def recallable(self, node: int) -> bool:
        """Whether a node may advise.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        return self._native.recallable(node)

    def set_recallable(self, node: int, recallable: bool) -> None:
        """Let a node advise, or keep it from that.

        Raises
        ------
        UnknownNodeError
            No such node.
        """
        self._native.set_recallable(node, recallable)
