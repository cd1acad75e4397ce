"""Time of one decision: recall, region model and re-ranking, embedding apart.

The memory is filled with seeded episodes of 20 steps, half of them won, and then asked within a
running episode; every tenth decision is acted on and closed, so that what is timed has learned
and pays for it. The bound is held against CPU time, which other processes do not stretch.

    python -m benches.decision [--events 10000 100000] [--decisions 500]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

from benches.figures import RUNS, Figure, leave
from cvx.learn.loop import ActiveMemory
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue

DIM, STEPS, SEED, CLUSTERS = 384, 20, 0, 500
MUST_MS = {10_000: 2.0, 100_000: 5.0}
ACTIONS = ("go to desk 1", "take mug 1", "open box 2", "clean mug 1", "heat mug 1", "put mug 1")
TASKS = ("heat", "clean", "place")


def situations(count: int, rng: np.random.Generator, dim: int = DIM) -> npt.NDArray[np.float32]:
    centres = np.random.default_rng(SEED).normal(size=(CLUSTERS, dim))
    rows = centres[rng.integers(0, CLUSTERS, count)] + 0.8 * rng.normal(size=(count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def filled(events: int) -> ActiveMemory:
    """Build a memory of `events` steps."""
    rng = np.random.default_rng(SEED + 1)
    memory = ActiveMemory(TemporalIndex(DIM, seed=SEED))
    episodes, last = events // STEPS, 0.0
    for number in range(episodes):
        vectors = situations(STEPS, rng)
        actions = rng.integers(0, len(ACTIONS), STEPS)
        steps = [("", ACTIONS[a], v) for a, v in zip(actions, vectors, strict=True)]
        memory.add_demonstration(
            "a goal", steps, TASKS[number % len(TASKS)], reward=float(rng.random() < 0.5)
        )
        if time.perf_counter() - last > 5:
            last = time.perf_counter()
            print(f"\r  {(number + 1) * STEPS:,} of {events:,} events", end="", flush=True)
    print(f"\r  {episodes * STEPS:,} of {events:,} events", flush=True)
    return memory


def measured(events: int, decisions: int) -> dict[str, Any]:
    start = time.perf_counter()
    memory = filled(events)
    fill_s = time.perf_counter() - start
    rng = np.random.default_rng(SEED + 2)
    cues = situations(decisions + 20, rng)
    times, busy, run = [], [], memory.begin("a goal", "heat")
    for number, vector in enumerate(cues):
        wall, cpu = time.perf_counter(), time.process_time()
        decision = memory.recall(Cue(goal="a goal", task_type="heat", vector=vector))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        # The first ones build what is kept for later.
        if number >= 20:
            times.append(wall * 1e3)
            busy.append(cpu * 1e3)
        if number % 10 == 9:
            memory.act(decision, ACTIONS[number % len(ACTIONS)])
            memory.close(run, float(number % 20 == 9))
            run = memory.begin("a goal", "heat")
    return {
        "events": events,
        "dim": DIM,
        "k": memory.k,
        "decisions": decisions,
        "seed": SEED,
        "fill_s": round(fill_s, 1),
        "cpu_mean_ms": round(float(np.mean(busy)), 3),
        "p50_ms": round(float(np.median(times)), 3),
        "mean_ms": round(float(np.mean(times)), 3),
        "p99_ms": round(float(np.percentile(times, 99)), 3),
        "must_ms": MUST_MS.get(events),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--decisions", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "decision.json")
    args = parser.parse_args()
    print(f"one decision (recall, region model, re-ranking), dim={DIM}, seed={SEED}, one thread")
    rows = [measured(events, args.decisions) for events in args.events]
    print(
        f"\n{'events':>9}{'CPU mean ms':>14}{'p50 ms':>10}{'mean ms':>10}{'p99 ms':>10}{'must':>8}"
    )
    for row in rows:
        must = f"< {row['must_ms']:g}" if row["must_ms"] else "-"
        print(
            f"{row['events']:>9,}{row['cpu_mean_ms']:>14.2f}{row['p50_ms']:>10.2f}{row['mean_ms']:>10.2f}"
            f"{row['p99_ms']:>10.2f}{must:>8}"
        )
    figures = []
    for row in rows:
        must = row["must_ms"]
        bound = (f"mean < {must:g} ms", row["cpu_mean_ms"] < must) if must else ("", None)
        told = f"{row['cpu_mean_ms']} / {row['p50_ms']} / {row['p99_ms']} ms"
        figures.append(Figure(f"{row['events']:,} events, CPU mean / p50 / p99", told, *bound))
    title = "Learning: one decision of the loop"
    leave(args.out, title, "python -m benches.decision", figures, rows=rows)
    late = [row for row in rows if row["must_ms"] and row["cpu_mean_ms"] >= row["must_ms"]]
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
