"""Measures the constants of the search planner: walk against scan under a filter.

    python -m benches.planner [--rows 40000]

A filter accepts just as many rows as make the index walk. The same question goes to an index that
always scans. Where the planner is right both take the same time; the last column is the number in
place of `ROWS_OF_A_LIST` (random) and `ROWS_OF_A_RUN` (window) of
`crates/cvx-index/src/filter/plan.rs` that would make it right here. Sets are those of the peers,
text and mix; CPU time of one thread, medians of rounds in turn.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from statistics import median

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


import numpy as np

from benches.peers.data import EF_CONSTRUCTION, SEED, Data, Ids, K, M, Matrix
from cvx.index import RawIndex
from cvx.types import Filter

#: As `plan.rs` has them: a walk of width w among a share s of the rows is as dear as a scan of
#: w / s times as many.
ROWS = {"random": 56, "window": 72}
WIDTHS = (16, 24, 32, 48, 64)
QUERIES, ROUNDS = 100, 5
HEADER = ("accepted", "share", "ef", "walk us", "scan us", "recall", "measured")


def asked(index: RawIndex, queries: Matrix, ef: int, where: Filter) -> tuple[Ids, float]:
    """Return what was found, and microseconds of CPU time a query."""
    start = time.process_time()
    found = [index.search(query, K, ef=ef, where=where)[0] for query in queries]
    return np.stack(found), (time.process_time() - start) / len(queries) * 1e6


def accepted(kind: str, rows: int, width: int) -> int:
    """Return just more rows than a scan is planned for."""
    return math.ceil(1.02 * math.sqrt(ROWS[kind] * width * rows))


def indexes(data: Data) -> tuple[RawIndex, RawIndex]:
    """Return one that walks wherever it is planned, and one that always scans."""
    rows, dim = data.base.shape
    rng = np.random.default_rng(SEED)
    tags: list[list[str]] = [[] for _ in range(rows)]
    for width in WIDTHS:
        for row in rng.permutation(rows)[: accepted("random", rows, width)]:
            tags[row].append(f"for {width}")
    walks = RawIndex(dim, "cosine", M, EF_CONSTRUCTION, SEED, exact_below=0)
    scans = RawIndex(dim, "cosine", 4, 8, SEED, exact_below=rows + 1)
    for index in (walks, scans):
        index.bulk_insert(np.zeros(rows, np.int64), np.arange(rows), data.base, tags=tags)
    return walks, scans


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="of mix")
    args = parser.parse_args()
    measured: dict[str, list[float]] = {kind: [] for kind in ROWS}
    for name in ("text", "mix"):
        data = Data.load(name, args.rows)
        rows, queries = len(data.base), data.queries[:QUERIES]
        walks, scans = indexes(data)
        print(f"\n{name}, {rows:,} rows\n{'':8}" + "".join(f"{head:>10}" for head in HEADER))
        for kind in ROWS:
            for width in WIDTHS:
                count = accepted(kind, rows, width)
                where = Filter(tags=[f"for {width}"])
                if kind == "window":
                    where = Filter(since=rows // 3, until=rows // 3 + count)
                spent: list[list[float]] = [[], []]
                for _ in range(ROUNDS):
                    found, walked = asked(walks, queries, width, where)
                    truth, scanned = asked(scans, queries, width, where)
                    spent[0].append(walked)
                    spent[1].append(scanned)
                walk, scan = (median(rounds) for rounds in spent)
                hits = sum(len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True))
                measured[kind].append(count * count / (width * rows) * walk / scan)
                asked_for = f"{kind:8}{count:>10,}{count / rows:>10.1%}{width:>10}"
                times = f"{walk:>10.1f}{scan:>10.1f}{hits / truth.size:>10.4f}"
                print(f"{asked_for}{times}{measured[kind][-1]:>10.1f}", flush=True)
    for kind, found_here in measured.items():
        print(f"{kind}: {min(found_here):.0f} to {max(found_here):.0f}, {ROWS[kind]} in plan.rs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
