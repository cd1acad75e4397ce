"""Walks over typed edges: the strongest paths, and all that leads to a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx._cvx import NativeIndex
from cvx.types import Edge, IntArray


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
    weights: npt.NDArray[np.float32]
    toward: IntArray
    kinds: IntArray
    edge_weights: npt.NDArray[np.float32]
    truncated: bool


class Walks:
    """The part of the index that follows edges over more than one step."""

    _native: NativeIndex

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
        UnknownNodeError, UnknownEdgeKindError, InvalidParameterError
            A node or kind that does not exist, a bound below 1.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
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
        UnknownNodeError, UnknownEdgeKindError, InvalidParameterError
            A node, kind or direction that does not exist, a bound below 1.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
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
