"""Vectors, queries, filters and true neighbours for the comparison."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

K = 10
SEED = 0
#: Of every graph, unless its name says otherwise.
M, EF_CONSTRUCTION = 16, 200
MIXED = 120_000
FRACTIONS = (0.5, 0.1, 0.01, 0.001)
KINDS = ("random", "window")
#: Queries that ask under the filter that lies away from them.
FAR_QUERIES = 100


def normalised(rows: Matrix) -> Matrix:
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def real() -> tuple[Matrix, Matrix]:
    """Sentence vectors and queries of CVX_DATA.

    Raises
    ------
    FileNotFoundError
        Without them there is no comparison: random vectors say nothing of real ones.
    """
    root = Path(os.environ.get("CVX_DATA") or Path(__file__).parents[3] / "shared" / "data")
    names = ("text_base_f16.npy", "text_q_f16.npy")
    base, queries = (np.load(root / "ann" / name).astype(np.float32) for name in names)
    return normalised(base), normalised(queries)


def mixed(base: Matrix, rows: int) -> Matrix:
    """Return the real vectors and mixtures of two with noise, shuffled."""
    rng = np.random.default_rng(SEED)
    count = rows - len(base)
    one, other = rng.integers(0, len(base), (2, count))
    noise = normalised(rng.normal(size=(count, base.shape[1])).astype(np.float32))
    made = normalised(0.80 * base[one] + 0.45 * base[other] + 0.12 * noise)
    return np.ascontiguousarray(np.concatenate([base, made])[rng.permutation(rows)])


@dataclass
class Data:
    """A set of vectors in the order of time, its queries and its truths."""

    name: str
    base: Matrix
    queries: Matrix
    truths: dict[tuple[str, int], Ids] = field(default_factory=dict)
    windows: dict[float, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str, rows: int = MIXED) -> Data:
        base, queries = real()
        return cls(name, base if name == "text" else mixed(base, rows), queries)

    def window(self, fraction: float) -> tuple[int, int]:
        """First row of a window, and the first row after it."""
        if fraction not in self.windows:
            count = max(int(len(self.base) * fraction), 1)
            rng = np.random.default_rng([SEED, round(1 / fraction)])
            start = int(rng.integers(0, len(self.base) - count + 1))
            self.windows[fraction] = start, start + count
        return self.windows[fraction]

    def accepted(self, kind: str, fraction: float) -> Mask:
        """Rows that a filter accepts: at random, within a window, or far from the queries."""
        mask = np.zeros(len(self.base), np.bool_)
        count = max(int(len(mask) * fraction), 1)
        if kind == "window":
            mask[slice(*self.window(fraction))] = True
        elif kind == "far":
            middle = self.queries[self.far_queries()].mean(axis=0)
            mask[np.argsort(self.base @ middle)[:count]] = True
        else:
            rng = np.random.default_rng([SEED, round(1 / fraction)])
            mask[rng.permutation(len(mask))[:count]] = True
        return mask

    def far_queries(self) -> Ids:
        """Return the queries around the first one, which can all be far from the same rows."""
        return np.argsort(-(self.queries @ self.queries[0]))[:FAR_QUERIES].astype(np.int64)

    def truth(self, rows: Ids, kind: str = "all", fraction: float = 1.0) -> Ids:
        """Return the K nearest accepted of each query; -2 where fewer are accepted."""
        key = (f"{kind} {fraction}", len(rows))
        if key not in self.truths:
            similarity = self.queries[rows] @ self.base.T
            if kind != "all":
                similarity[:, ~self.accepted(kind, fraction)] = -np.inf
            best = np.argpartition(-similarity, K, axis=1)[:, :K].astype(np.int64)
            best[np.take_along_axis(similarity, best, 1) == -np.inf] = -2
            self.truths[key] = best
        return self.truths[key]


def recall(found: Ids, truth: Ids) -> float:
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True))
    return hits / int((truth >= 0).sum())


def tag(fraction: float) -> str:
    return f"one of {1 / fraction:g}"
