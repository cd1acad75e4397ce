"""Memories for the tests of recall: small, in RAM, with a clock that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvx.memory import Memory
from cvx.recall import Floor, Pipeline, Weighting, by_scale
from cvx.recall.presets import similarity
from cvx.recall.sources import Dense
from cvx.types import Vector

DIM = 4
EVERYTHING = Floor(similarity=None)
BY_SIMILARITY = Pipeline(
    sources={"dense": Dense()},
    signals=(similarity(),),
    fusion=by_scale({}, "none"),
    weighting=Weighting({"similarity": 1.0}),
)


class Axes:
    """Embeds a text by its first word: "x", "y", "z" or "w" is an axis, anything else refused."""

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([axis(text.split()[0]) for text in texts])

    def info(self) -> Mapping[str, Any]:
        return {"id": "axes", "dim": DIM, "semantic": False}


class Down:
    """An embedder that nobody answers for."""

    def embed(self, texts: Sequence[str]) -> Vector:
        raise ConnectionError(f"nobody listens to {len(texts)} texts")

    def info(self) -> Mapping[str, Any]:
        return {"id": "axes", "dim": DIM, "semantic": False}


def axis(name: str) -> Vector:
    rows: Vector = np.eye(DIM, dtype=np.float32)
    return np.asarray(rows["xyzw".index(name)])


def at(cosine: float) -> Vector:
    """A vector whose cosine to the first axis is this."""
    return np.array([cosine, np.sqrt(1.0 - cosine**2), 0.0, 0.0], dtype=np.float32)


def apart(cosine: float, n: int) -> Vector:
    """A vector with this cosine to the first axis, and away from those of other n below 6."""
    side = np.zeros(DIM, dtype=np.float32)
    side[1 + n % 3] = (-1) ** (n // 3)
    return np.asarray(cosine * axis("x") + np.sqrt(1 - cosine**2) * side, dtype=np.float32)


def room(*, clock: Any = None) -> Memory:
    ticks = iter(range(1_000, 1_000_000))
    return Memory._opened(None, Axes(), now=clock or ticks.__next__)
