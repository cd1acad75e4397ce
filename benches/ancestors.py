"""Time to find the causes of an event among 1,000,000 events and 3,000,000 edges.

Most events have few causes; a few have many, the largest 10,000. Prints the percentiles of the CPU
time of one call from Python, by budget, and how often the budget ended the walk.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from cvx.index import RawIndex


def heavy_tailed(events: int, edges: int, largest: int, seed: int) -> RawIndex:
    """Make an index without vectors whose in-degrees follow a power law cut at `largest`."""
    rng = np.random.default_rng(seed)
    degrees = np.minimum(largest, rng.pareto(1.3, events) + 1)
    degrees = np.sort(degrees)[::-1]
    degrees = np.maximum(1, degrees * (edges / degrees.sum())).astype(np.int64)
    degrees[0] = largest
    effects = np.repeat(rng.permutation(events), degrees)[:edges]
    causes = rng.integers(0, events, len(effects))
    weights = rng.uniform(0.2, 1.0, len(effects)).round(2)
    index = RawIndex(2)
    index.bulk_insert(np.arange(events) % 1000, np.arange(events), None)
    for a, b, weight in zip(causes.tolist(), effects.tolist(), weights.tolist(), strict=True):
        if a != b:
            index.add_edge(a, b, "caused", weight)
    return index


def main() -> None:
    """Build, walk, print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=3_000_000)
    parser.add_argument("--largest", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    index = heavy_tailed(chosen.events, chosen.edges, chosen.largest, chosen.seed)
    rng = np.random.default_rng(chosen.seed + 1)
    starts = rng.integers(0, chosen.events, chosen.calls).tolist()
    # Half of the starts are ends of edges drawn at random: there the large lists are met.
    ends = [edge.to_node for edge in index.edges()[:: max(1, chosen.edges // chosen.calls)]]
    starts[::2] = ends[: len(starts[::2])]
    rows = []
    for budget in (256, 1024, 4096, 16384):
        times, found, cut = [], [], 0
        for start in starts:
            begun = time.thread_time_ns()
            ancestry = index.ancestors(start, ["caused"], chosen.depth, budget=budget)
            times.append(time.thread_time_ns() - begun)
            found.append(len(ancestry.nodes))
            cut += ancestry.truncated
        p50, p99, worst = (float(q) / 1e3 for q in np.percentile(times, [50, 99, 100]))
        row = {"budget": budget, "p50_us": p50, "p99_us": p99, "worst_us": worst}
        rows.append(row | {"mean_found": float(np.mean(found)), "cut_off": cut / len(starts)})
    print(f"{chosen.events:,} events, {chosen.edges:,} edges, largest list {chosen.largest:,}")
    print(f"{'budget':>8} {'p50 us':>9} {'p99 us':>9} {'worst us':>9} {'found':>8} {'cut off':>8}")
    for row in rows:
        print(
            f"{row['budget']:8} {row['p50_us']:9.1f} {row['p99_us']:9.1f} {row['worst_us']:9.1f} "
            f"{row['mean_found']:8.0f} {row['cut_off']:8.1%}"
        )
    print(json.dumps({"bench": "ancestors", **vars(chosen), "rows": rows}))


if __name__ == "__main__":
    main()
