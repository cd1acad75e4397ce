"""A million vectors of 384 dimensions: build, save, open, search, change.

    nice -n 10 python -m benches.million [--rows 1000000] [--dim 384] [--out FILE]

Rows are made block by block as those of `mix` (benches/growing_index.py), so that the process holds
the index and one block. With fewer dimensions than 384 they are projected at random: for ten
million rows it is `--rows 10000000 --dim 128`. On the way the cost of one insert is printed as the
index grows. Times are CPU time of the process unless they say wall; a shared machine makes the
wall longer.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


import numpy as np

from benches.figures import RUNS, leave
from benches.growing_index import HEADER, Mixture, exponent, grown, show
from benches.peers.data import SEED, K, Matrix, normalised, real, recall
from benches.peers.targets import Line
from cvx.index import RawIndex

T = TypeVar("T")

QUERIES, THREADS = 200, 2
WIDTHS = (32, 64, 128, 256, 512)


def memory_mb() -> dict[str, int]:
    """Resident memory of this process: its own, and pages of files."""
    names = {"RssAnon": "own", "RssFile": "of_files"}
    lines = Path("/proc/self/status").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {names[key]: int(value.split()[0]) // 1024 for key, value in pairs if key in names}


def timed(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return result, {name: round(value, 4) for name, value in spent.items()}


def build(mixture: Mixture, queries: Matrix) -> tuple[RawIndex, dict[str, Any]]:
    """Grow an index by doublings, on two threads, and measure single inserts at each size."""
    index = RawIndex(mixture.real.shape[1], exact_below=0)
    rows, sizes = mixture.rows, []
    while rows >= 10_000:
        sizes.append(rows)
        rows //= 2
    print("".join(f"{name:>16}" for name in HEADER), flush=True)
    table = []
    wall = time.perf_counter()
    for upto in reversed(sizes):
        table.append(grown(index, mixture, queries, upto, THREADS))
        show(table[-1])
    cpu = sum(
        row["bulk_us"] * (row["rows"] - before - 1_000) + row["insert_us"] * 1_000
        for row, before in zip(table, [0, *(row["rows"] for row in table)], strict=False)
    )
    report = {
        "cpu_s": round(cpu / 1e6, 1),
        "wall_s_with_rows_and_truths": round(time.perf_counter() - wall, 1),
        "growth": table,
        "insert_exponent_of_log": round(exponent(table), 3),
    }
    return index, report


def searched(index: RawIndex, queries: Matrix, truth: Any) -> list[dict[str, float]]:
    """Recall and time at several widths."""
    table = []
    for ef in WIDTHS:
        start = time.process_time()
        found = np.stack([index.search(query, K, ef=ef)[0] for query in queries])
        spent = (time.process_time() - start) / len(queries) * 1e6
        table.append({"ef": ef, "recall": round(recall(found, truth), 4), "us": round(spent, 1)})
        print(
            f"  ef {ef:4}: recall@{K} {table[-1]['recall']:.4f}, {spent:.0f} us a query", flush=True
        )
    return table


def changed(index: RawIndex, queries: Matrix, rows: int) -> dict[str, float]:
    """Change an index that was just opened: CPU milliseconds of one change of each kind."""
    insert = partial(index.insert, 0)
    _, first = timed(partial(insert, rows, queries[0]))
    early = [timed(partial(insert, rows + turn, q))[1] for turn, q in enumerate(queries[1:], 1)]
    # The first of the line of that entity is copied; the others find their place in it.
    late = [timed(partial(insert, -turn, q))[1] for turn, q in enumerate(queries, 1)]
    gone = np.random.default_rng(SEED).permutation(rows)[: len(queries)]
    deletes = [timed(partial(index.delete, [int(node)]))[1] for node in gone]
    kinds = {"insert": early, "late_insert": late[1:], "delete": deletes}
    return {"first_ms": round(1e3 * first["cpu_s"], 3)} | {
        f"{kind}_{name}_ms": round(1e3 * float(np.percentile([t["cpu_s"] for t in times], at)), 3)
        for kind, times in kinds.items()
        for name, at in (("p50", 50), ("p99", 99))
    }


def lines(report: dict[str, Any]) -> list[Line]:
    """What was measured beside what it must be, a line each."""
    vector, change = report["bytes_a_vector"], report["changes_after_open"]
    opened = 1e3 * report["open"]["cpu_s"]
    growth = report["insert_exponent_of_log"]
    late = 1e3 * (change["late_insert_p50_ms"] - change["insert_p50_ms"])
    return [
        Line("bytes a vector, rows in f32 apart", vector["without"], 530, 330, " B", at_most=True),
        Line("open mapped, CPU", opened, 200, 10, " ms", at_most=True),
        Line("first change after opening", change["first_ms"], 10, 1, " ms", at_most=True),
        Line("delete one node, p50", change["delete_p50_ms"], 2, 0.3, " ms", at_most=True),
        Line("delete one node, p99", change["delete_p99_ms"], 10, 2, " ms", at_most=True),
        Line("a late timestamp costs more, p50", late, 20, 0, " us", at_most=True),
        Line("one insert: p of (log n)^p", growth, 1, 1, "", at_most=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "million.json")
    args = parser.parse_args()

    base, queries = real()
    queries = queries[:QUERIES]
    if args.dim < base.shape[1]:
        axes = np.random.default_rng(SEED).normal(size=(base.shape[1], args.dim))
        base, queries = (normalised((x @ axes).astype(np.float32)) for x in (base, queries))
    mixture = Mixture(base, args.rows)
    index, report = build(mixture, queries)
    own = index.stats()["bytes"] / args.rows
    report["bytes_a_vector"] = {"with_f32": round(own, 1), "without": round(own - 4 * index.dim, 1)}
    told = {name: value for name, value in report.items() if name != "growth"}
    print(told, memory_mb(), flush=True)
    truth = mixture.nearest(queries, args.rows)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.cvx"
        _, report["save"] = timed(partial(index.save, path))
        report["file_mb"] = path.stat().st_size >> 20
        del index
        before = memory_mb()
        opened, report["open"] = timed(partial(RawIndex.load, path, mmap=True))
        report["memory_mb"] = {"before_open": before, "opened": memory_mb()}
        print({name: report[name] for name in ("save", "file_mb", "open", "memory_mb")}, flush=True)
        report["searches"] = searched(opened, queries, truth)
        report["memory_mb"]["searched"] = memory_mb()
        report["changes_after_open"] = changed(opened, queries, args.rows)
        report["memory_mb"]["changed"] = memory_mb()
        print({name: report[name] for name in ("changes_after_open", "memory_mb")})
    table = lines(report)
    for line in table:
        print(line)
    figures = [line.figure() for line in table]
    title = f"Index: {args.rows:,} rows of {args.dim}"
    leave(args.out, title, "python -m benches.million", figures, **report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
