"""What one insert and one search cost as an index grows: they should grow like log n.

    python benches/growth.py [--most 160000] [--out runs/bench/growth.json]

The rows are those of the comparison with the peers, mixed from the real ones of CVX_DATA. An index
grows by doublings from 10,000; before each, a thousand nodes are inserted one by one and timed, on
one thread. If inserts grow like log n, the last column stays level.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np

from benches.peers.data import K, Matrix, mixed, real, recall
from cvx.index import TemporalIndex

FIRST, SINGLE, EF = 10_000, 1_000, 64


def per_item_us(start: float, count: int) -> float:
    return (time.process_time() - start) / count * 1e6


def measured(index: TemporalIndex, base: Matrix, queries: Matrix, upto: int) -> dict[str, float]:
    """Grow the index to `upto` rows; the last of them one by one."""
    done = len(index)
    bulk = np.arange(done, upto - SINGLE)
    start = time.process_time()
    index.bulk_insert(bulk // 50, bulk, base[bulk], threads=1)
    in_bulk = per_item_us(start, len(bulk))
    start = time.process_time()
    for row in range(upto - SINGLE, upto):
        index.insert(row // 50, row, base[row])
    single = per_item_us(start, SINGLE)
    start = time.process_time()
    found = np.stack([index.search(query, K, ef=EF)[0] for query in queries])
    search = per_item_us(start, len(queries))
    similarity = queries @ base[:upto].T
    truth = np.argpartition(-similarity, K, axis=1)[:, :K].astype(np.int64)
    return {
        "rows": upto,
        "bulk_us": round(in_bulk, 1),
        "insert_us": round(single, 1),
        "search_us": round(search, 1),
        "recall": round(recall(found, truth), 4),
        "insert_over_log": round(single / math.log2(upto), 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=160_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "growth.json")
    args = parser.parse_args()

    base, queries = real()
    sizes = [FIRST * 2**step for step in range(30) if FIRST * 2**step <= args.most]
    rows = mixed(base, max(sizes[-1], len(base)))
    index = TemporalIndex(base.shape[1], exact_below=0)
    print(f"dim={base.shape[1]} M=16 efC=200 ef={EF} k={K}, CPU us on one thread")
    header = ("rows", "bulk_us", "insert_us", "search_us", "recall", "insert_over_log")
    print("".join(f"{name:>16}" for name in header))
    table = []
    for upto in sizes:
        table.append(measured(index, rows, queries[: args.queries], upto))
        print("".join(f"{table[-1][name]:>16}" for name in header), flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(table, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
