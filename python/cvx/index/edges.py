"""Timelines and typed edges."""

from __future__ import annotations

from collections.abc import Sequence

from cvx._cvx import NativeIndex
from cvx.types import DEFAULT_NAMESPACE, Edge, Step


class Edges:
    """The part of the index that knows what followed what, and what led to what."""

    _native: NativeIndex

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
        UnknownEntityError
            The entity has no node in that namespace.
        InvertedRangeError
            ``since >= until``.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 1], [20, 10], [[1, 0], [0, 1]])
        >>> [step.node_id for step in ix.trajectory(1)]
        [1, 0]
        """
        space = DEFAULT_NAMESPACE if namespace is None else namespace
        return [Step._make(row) for row in self._native.trajectory(space, entity_id, since, until)]

    def predecessors(self, node: int, n: int = 1) -> list[Step]:
        """Look up to `n` steps back on a node's timeline; in time order.

        Raises
        ------
        UnknownNodeError
            No such node.
        InvalidParameterError
            n below 0.
        """
        return [Step._make(row) for row in self._native.predecessors(node, n)]

    def successors(self, node: int, n: int = 1) -> list[Step]:
        """Look up to `n` steps ahead on a node's timeline; in time order.

        Raises
        ------
        UnknownNodeError
            No such node.
        InvalidParameterError
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
        InvalidEdgeKindNameError
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
        UnknownNodeError, UnknownEdgeKindError
            An end or a kind that does not exist.
        EdgeWeightError, InvalidEdgeError
            A weight outside [0, 1]; an edge to itself, or a temporal one.
        """
        self._native.add_edge(a, b, edge_type, weight)

    def remove_edge(self, a: int, b: int, edge_type: str) -> None:
        """Take an edge away.

        Raises
        ------
        UnknownEdgeError
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
        UnknownNodeError, UnknownEdgeKindError, InvalidParameterError
            A node, kind or direction that does not exist.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2], [10, 10], [[1, 0], [0, 1]])
        >>> ix.add_edge(0, 1, "caused", 0.8)
        >>> [edge.from_node for edge in ix.typed_neighbors(1, direction="in", min_weight=0.5)]
        [0]
        """
        rows = self._native.typed_neighbors(node, edge_type, min_weight, direction, namespaces)
        return [Edge(*row) for row in rows]
