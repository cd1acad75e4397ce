"""Latency of a search, alone and beside a thread that writes and a thread that searches in batches.

One thread searches, query by query, over real sentence vectors (CVX_DATA). Its calls are timed by
the clock on the wall, as a user meets them, three ways in turn: alone; while the other two work on
an index of their own, which takes the same time from the processor and no lock from the search; and
while they work on the same index. What the third adds to the second is what the index makes a
search wait for. Every round begins with fresh copies, so that all search as many rows.

    python -m benches.beside_writers [--searches 10000] [--rounds 5] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benches.figures import RUNS, Figure, leave
from benches.peers.data import SEED, K, Matrix, real
from cvx.index import RawIndex

BATCH = 5_000
MUST = 2.0
WAYS = ("alone", "others elsewhere", "others beside it")


def filled(rows: Matrix) -> RawIndex:
    index = RawIndex(rows.shape[1], seed=SEED)
    index.bulk_insert(np.arange(len(rows)) % 1000, np.arange(len(rows)), rows)
    return index


@contextmanager
def others_at(index: RawIndex, rows: Matrix, queries: Matrix) -> Iterator[None]:
    """Insert one row after the other, and search in batches, each in a thread, while within."""
    over = threading.Event()
    failed: list[BaseException] = []

    def again(step: Callable[[int], object]) -> None:
        turn = 0
        try:
            while not over.is_set():
                step(turn)
                turn += 1
        except BaseException as error:
            failed.append(error)

    many = np.resize(queries, (BATCH, queries.shape[1]))
    steps: tuple[Callable[[int], object], ...] = (
        lambda turn: index.insert(turn % 1000, turn, rows[turn % len(rows)]),
        lambda _: index.search(many, K),
    )
    threads = [threading.Thread(target=again, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def timed(index: RawIndex, queries: Matrix, searches: int) -> list[int]:
    times = []
    for turn in range(searches):
        query = queries[turn % len(queries)]
        begun = time.perf_counter_ns()
        index.search(query, K)
        times.append(time.perf_counter_ns() - begun)
    return times


def recall(index: RawIndex, queries: Matrix) -> float:
    """Share of the true nearest that searches find, by distance."""
    near = index.search(queries, K)[1]
    truth = index.search(queries, K, ef=len(index))[1]
    return float((near <= truth[:, -1:]).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=10_000, help="in each round")
    parser.add_argument("--rounds", type=int, default=5)
    out = RUNS / "bench" / "beside_writers.json"
    parser.add_argument("--out", type=Path, default=out)
    args = parser.parse_args()
    base, queries = real()
    # The writer brings rows that are no copies: half of the set.
    rows, later = base[::2], base[1::2]
    folder = args.out.parent
    folder.mkdir(parents=True, exist_ok=True)
    saved = folder / "beside_writers.cvx"
    filled(rows).save(saved)
    index = RawIndex.load(saved)
    rounds: dict[str, list[list[int]]] = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way in WAYS:
            index, elsewhere = RawIndex.load(saved), RawIndex.load(saved)
            # The first change copies what is mapped.
            for one in (index, elsewhere):
                one.insert(0, 0, later[0])
            timed(index, queries, 100)
            if way == "alone":
                rounds[way].append(timed(index, queries, args.searches))
                continue
            busy = index if way == "others beside it" else elsewhere
            with others_at(busy, later, queries):
                rounds[way].append(timed(index, queries, args.searches))
    saved.unlink()
    table = {}
    for way, times in rounds.items():
        p50, p99, worst = np.percentile(np.array(times) / 1e3, [50, 99, 100], axis=1)
        table[way] = {
            "p50_us": round(float(np.median(p50)), 1),
            "p99_us": round(float(np.median(p99)), 1),
            "worst_us": round(float(worst.max()), 1),
        }
    found = recall(index, queries)
    print(
        f"one search beside one writer and one batch: n={len(rows):,}, then up to {len(index):,}, "
        f"dim={rows.shape[1]}, k={K}, seed={SEED}, recall@{K} {found:.3f}, "
        f"medians of {args.rounds} rounds of {args.searches:,} searches"
    )
    print(f"{'':20}{'p50 us':>10}{'p99 us':>10}{'worst us':>12}")
    for way, row in table.items():
        print(f"{way:20}{row['p50_us']:10.0f}{row['p99_us']:10.0f}{row['worst_us']:12.0f}")
    beside = table[WAYS[2]]
    ratios = {way: round(beside["p99_us"] / table[way]["p99_us"], 2) for way in WAYS[:2]}
    print(f"p99 beside it: {ratios['alone']} x alone, must {MUST:g}")
    print(f"               {ratios['others elsewhere']} x the same work elsewhere")
    met = ratios["alone"] <= MUST
    leave(
        args.out,
        "Index: a search beside a writer and a batch",
        "python -m benches.beside_writers",
        [
            Figure("p99 alone", f"{table['alone']['p99_us']:.0f} us"),
            Figure("p99 beside both, times alone", f"{ratios['alone']}", f"<= {MUST:g}", met),
        ],
        rows=len(rows),
        dim=rows.shape[1],
        k=K,
        seed=SEED,
        recall=found,
        rounds=args.rounds,
        searches=args.searches,
        ways=table,
        p99_ratios=ratios,
    )
    return int(ratios["alone"] > MUST)


if __name__ == "__main__":
    sys.exit(main())
