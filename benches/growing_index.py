"""Builds an index in growing sizes and times each; shared by several benches."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benches.peers.data import SEED, Ids, K, Matrix, normalised, recall
from cvx.index import RawIndex

BLOCK = 10_000
SINGLE, EF = 1_000, 64
HEADER = ("rows", "bulk_us", "insert_us", "search_us", "recall", "insert_over_log")


@dataclass(frozen=True)
class Mixture:
    """Rows as those of `mix`, any number of them, of which no more than a block is in memory.

    The real ones lie anywhere among mixtures of two of them with noise.
    """

    real: Matrix
    rows: int

    @cached_property
    def _places(self) -> Ids:
        """Of each row, which real one it is; -1 for a mixture."""
        places = np.full(self.rows, -1, np.int64)
        count = min(self.rows, len(self.real))
        chosen = np.random.default_rng(SEED).permutation(self.rows)[:count]
        places[chosen] = np.arange(count)
        return places

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Matrix]]:
        """Yield the first row of each block and its rows, from `start` to before `stop`."""
        for first in range(start - start % BLOCK, stop, BLOCK):
            low, high = max(first, start), min(first + BLOCK, stop)
            yield low, self._block(first)[low - first : high - first]

    def _block(self, first: int) -> Matrix:
        count = min(BLOCK, self.rows - first)
        rng = np.random.default_rng([SEED, 1 + first // BLOCK])
        one, other = rng.integers(0, len(self.real), (2, count))
        noise = normalised(rng.normal(size=(count, self.real.shape[1])).astype(np.float32))
        rows = normalised(0.80 * self.real[one] + 0.45 * self.real[other] + 0.12 * noise)
        places = self._places[first : first + count]
        rows[places >= 0] = self.real[places[places >= 0]]
        return rows

    def nearest(self, queries: Matrix, stop: int) -> Ids:
        """Return the K nearest of the first `stop` rows, by comparing with all of them."""
        best = np.full((len(queries), K), -1, np.int64)
        near = np.full((len(queries), K), -np.inf, np.float32)
        for first, rows in self.blocks(0, stop):
            ids = np.arange(first, first + len(rows))
            near = np.hstack([near, queries @ rows.T])
            best = np.hstack([best, np.broadcast_to(ids, (len(queries), len(rows)))])
            kept = np.argpartition(-near, K, axis=1)[:, :K]
            near = np.take_along_axis(near, kept, 1)
            best = np.take_along_axis(best, kept, 1)
        return best


def per_item_us(start: float, count: int) -> float:
    return (time.process_time() - start) / max(count, 1) * 1e6


def grown(
    index: RawIndex, mixture: Mixture, queries: Matrix, upto: int, threads: int = 1
) -> dict[str, float]:
    """Grow the index to `upto` rows, the last of them one by one; what that cost, and finds."""
    done, last = len(index), upto - SINGLE
    spent = 0.0
    for first, rows in mixture.blocks(done, last):
        nodes = np.arange(first, first + len(rows))
        start = time.process_time()
        index.bulk_insert(nodes // 50, nodes, rows, threads=threads)
        spent += time.process_time() - start
    in_bulk = spent / (last - done) * 1e6
    singles = [
        (row, block[row - first])
        for first, block in mixture.blocks(last, upto)
        for row in range(first, first + len(block))
    ]
    start = time.process_time()
    for row, vector in singles:
        index.insert(row // 50, row, vector)
    single = per_item_us(start, SINGLE)
    start = time.process_time()
    found = np.stack([index.search(query, K, ef=EF)[0] for query in queries])
    search = per_item_us(start, len(queries))
    return {
        "rows": upto,
        "bulk_us": round(in_bulk, 1),
        "insert_us": round(single, 1),
        "search_us": round(search, 1),
        "recall": round(recall(found, mixture.nearest(queries, upto)), 4),
        "insert_over_log": round(single / math.log2(upto), 2),
    }


def exponent(table: list[dict[str, float]]) -> float:
    """Return the p of the least squares fit of `insert_us` to a multiple of ``log(n)**p``.

    1 is growth like log n; a cost that grew with n itself would fit no p below 10.
    """
    x = np.log([math.log(row["rows"]) for row in table])
    y = np.log([row["insert_us"] for row in table])
    return float(np.polyfit(x, y, 1)[0])


def show(row: dict[str, float]) -> None:
    print("".join(f"{row[name]:>16}" for name in HEADER), flush=True)
