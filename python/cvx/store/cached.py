"""What a store asks of the index that it keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy.typing as npt

from cvx.types import IntArray, Step


class CachedIndex(Protocol):
    """What a replica asks of an index."""

    @property
    def edge_kinds(self) -> tuple[str, ...]:
        """Every edge kind that is known."""
        ...

    def bulk_insert(
        self,
        entity_ids: npt.ArrayLike,
        timestamps: npt.ArrayLike,
        vectors: npt.ArrayLike | Sequence[Any] | None,
        *,
        rewards: Sequence[float | None] | None = None,
        namespaces: Sequence[str] | None = None,
        tags: Sequence[list[str]] | None = None,
        actions: Sequence[str | None] | None = None,
        recallable: Sequence[bool] | None = None,
    ) -> IntArray:
        """Add nodes, all of them or none."""
        ...

    def __contains__(self, node: object) -> bool: ...
    def step(self, node: int) -> Step:
        """Return the columns of a node."""
        ...

    def delete(self, nodes: Sequence[int]) -> None:
        """Remove nodes with their edges."""
        ...

    def skip_ids(self, count: int) -> None:
        """Pass over ids: no node ever has them."""
        ...

    def set_reward(self, node: int, reward: float | None) -> None:
        """Attach an outcome to a node."""
        ...

    def set_recallable(self, node: int, recallable: bool) -> None:
        """Let a node advise, or not."""
        ...

    def declare_edge_kind(self, name: str) -> None:
        """Make a name an edge kind."""
        ...

    def add_edge(self, a: int, b: int, edge_type: str, weight: float = 1.0) -> None:
        """Link two nodes."""
        ...

    def remove_edge(self, a: int, b: int, edge_type: str) -> None:
        """Take an edge away."""
        ...

    def stats(self) -> dict[str, Any]:
        """Count what there is; ``ids_given`` among it."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot."""
        ...

    def become(self, other: Self) -> None:
        """Take over everything of another index."""
        ...


Index = TypeVar("Index", bound=CachedIndex)
