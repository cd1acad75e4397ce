"""A hand-made index: nodes on a line, whose units are the regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvx.types import IntArray, Step, Vector

LENGTH = 100


class _Ruler:
    """Regions of level 1 are units, those of level 2 tens; a region's id is its lower end.

    Nodes are numbered from 100 on: below that are the hubs, each at the lower end of its region.
    """

    region_levels: tuple[int, ...] = (1, 2)
    region_epoch = 1
    deletions = 0
    params: Mapping[str, Any] = {"m": 10}

    def __init__(self) -> None:
        self.nodes: list[tuple[float, Step]] = []

    def play(self, where: Sequence[float], actions: Sequence[str], reward: float | None) -> int:
        """Add a timeline, and return its entity."""
        entity = 1 + max((step.entity_id for _, step in self.nodes), default=-1)
        for x, action in zip(where, actions, strict=True):
            n = LENGTH + len(self.nodes)
            self.nodes.append((x, Step(n, entity, n, action, reward)))
        return entity

    def __len__(self) -> int:
        return len(self.nodes)

    def regions(self, level: int) -> list[int]:
        return list(range(0, LENGTH, 10 ** (level - 1)))

    def _region(self, x: float, level: int) -> int:
        unit = 10 ** (level - 1)
        return int(x // unit * unit)

    def region_assignments(self, level: int) -> tuple[IntArray, IntArray]:
        regions = [self._region(x, level) for x, _ in self.nodes]
        return LENGTH + np.arange(len(self.nodes)), np.array(regions, dtype=np.int64)

    def assign_region(self, vectors: Any, level: int) -> Any:
        rows = np.atleast_2d(vectors)
        return np.array([self._region(float(row[0]), level) for row in rows])

    def trajectory(
        self,
        entity_id: int,
        since: int | None = None,  # noqa: ARG002
        until: int | None = None,  # noqa: ARG002
        *,
        namespace: str | None = None,  # noqa: ARG002
    ) -> list[Step]:
        return [step for _, step in self.nodes if step.entity_id == entity_id]

    def vector(self, node: int) -> Vector | None:
        x = node if node < LENGTH else self.nodes[node - LENGTH][0]
        return np.array([x], dtype=np.float32)


Ruler: Any = _Ruler
