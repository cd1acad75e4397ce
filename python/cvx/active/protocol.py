"""What the loop asks of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy.typing as npt

from cvx.active.history import StepIndex
from cvx.mdp import RegionIndex
from cvx.types import Edge, Filter, Hit, IntArray, Vector


class ActiveIndex(RegionIndex, StepIndex, Protocol):
    """The part of a temporal index that the loop needs."""

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        ...

    def __contains__(self, node: object) -> bool: ...

    def namespace(self, node: int) -> str:
        """Return the namespace of a node."""
        ...

    def search(
        self, query: npt.ArrayLike, k: int = 10, *, where: Filter | None = None
    ) -> tuple[IntArray, Vector]:
        """Return the nearest nodes and their distances."""
        ...

    def graph_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        edge_boost: Mapping[str, float] | None = None,
        *,
        where: Filter | None = None,
    ) -> Sequence[Hit]:
        """Return nodes by similarity and by the edges that lead to them."""
        ...

    def bulk_insert(
        self,
        entity_ids: npt.ArrayLike,
        timestamps: npt.ArrayLike,
        vectors: npt.ArrayLike,
        *,
        rewards: Sequence[float | None] | None = None,
        namespaces: str | None = None,
        tags: Sequence[list[str]] | None = None,
        actions: Sequence[str | None] | None = None,
        recallable: bool | None = None,
    ) -> IntArray:
        """Add nodes, all of them or none."""
        ...

    def delete(self, nodes: Sequence[int]) -> None:
        """Remove nodes with their edges."""
        ...

    def set_reward(self, node: int, reward: float) -> None:
        """Attach an outcome to a node."""
        ...

    def add_edge(self, a: int, b: int, edge_type: str, weight: float = 1.0) -> None:
        """Link two nodes."""
        ...

    def remove_edge(self, a: int, b: int, edge_type: str) -> None:
        """Take an edge away."""
        ...

    def edges(self) -> Sequence[Edge]:
        """Return every typed edge."""
        ...
