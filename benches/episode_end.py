"""Time of closing an episode (one learning update) while the index grows.

Episodes of 20 steps are played one after the other on a growing memory, and every `close` is
timed: insertion, region model, counts, weights and the record in RAM. Epochs of regions begin as
the index doubles. Two models of the regions are run: one that learns everything again in the
update that meets a new epoch, and one that does so in slices. The bound is held against CPU time,
which other processes do not stretch. Python's garbage collector now and then goes through all
objects of the process; its share is reported apart. The first 20 closes are left out: one of them
imports scikit-learn.

    python -m benches.closing [--events 10000 100000] [--dim 384]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import numpy as np

from benches.decision import ACTIONS, STEPS, TASKS, situations
from benches.figures import RUNS, Figure, leave
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue

SEED = 0
MUST_MS = 20.0
WARM_UP = 20
OnStale = Literal["relearn", "gradual"]


class Collecting:
    """How long the garbage collector took, in CPU ms."""

    def __init__(self) -> None:
        self.ms = 0.0
        gc.callbacks.append(self._tick)

    def _tick(self, phase: str, info: dict[str, int]) -> None:  # noqa: ARG002
        self.ms += time.process_time() * (1e3 if phase == "stop" else -1e3)


def grown(events: int, dim: int, on_stale: OnStale) -> dict[str, Any]:
    """Play until there are so many events; every close is one figure."""
    rng = np.random.default_rng(SEED + 1)
    index = TemporalIndex(dim, seed=SEED)
    memory = ActiveMemory(index, mdp=RegionMDP(index, on_stale=on_stale))
    assert memory.mdp is not None
    times, without, epochs, last = [], [], [], 0.0
    collecting = Collecting()
    epoch, most_behind = 0, 0
    for number in range(events // STEPS):
        vectors = situations(STEPS, rng, dim)
        task = TASKS[number % len(TASKS)]
        run = memory.begin("a goal", task)
        decision = memory.recall(Cue(goal="a goal", task_type=task, vector=vectors[0]))
        memory.act(decision, ACTIONS[number % len(ACTIONS)])
        for vector in vectors[1:]:
            memory.step(run, "", ACTIONS[int(rng.integers(len(ACTIONS)))], vector)
        won = float(rng.random() < 0.5)
        start, collected = time.process_time(), collecting.ms
        memory.close(run, won)
        if number < WARM_UP:
            continue
        times.append((time.process_time() - start) * 1e3)
        without.append(times[-1] - (collecting.ms - collected))
        if index.region_epoch != epoch:
            epoch = index.region_epoch
            epochs.append(without[-1])
        most_behind = max(most_behind, memory.mdp.behind)
        if time.perf_counter() - last > 5:
            last = time.perf_counter()
            print(f"\r  {on_stale}: {(number + 1) * STEPS:,} of {events:,}", end="", flush=True)
    print(f"\r  {on_stale}: {events:,} of {events:,} events", flush=True)
    gc.callbacks.remove(collecting._tick)
    late = np.array(times[len(times) // 2 :])
    return {
        "events": events,
        "dim": dim,
        "on_stale": on_stale,
        "p50_ms": round(float(np.median(late)), 2),
        "p99_ms": round(float(np.percentile(late, 99)), 2),
        "max_ms": round(float(np.max(times)), 2),
        "max_but_gc_ms": round(float(np.max(without)), 2),
        "over": int((np.array(times) >= MUST_MS).sum()),
        "closes": len(times),
        "most_at_an_epoch_ms": round(max(epochs), 2),
        "most_behind": most_behind,
        "seed": SEED,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--models", nargs="+", default=["gradual", "relearn"])
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "closing.json")
    args = parser.parse_args()
    print(f"one close of {STEPS} steps, dim={args.dim}, seed={SEED}, one thread, CPU ms")
    rows = [grown(n, args.dim, model) for n in args.events for model in args.models]
    names = (
        "p50_ms",
        "p99_ms",
        "max_ms",
        "max_but_gc_ms",
        "most_at_an_epoch_ms",
        "over",
        "closes",
        "most_behind",
    )
    print(f"\n{'events':>9} {'epoch':<9}" + "".join(f"{name:>21}" for name in names))
    for row in rows:
        print(f"{row['events']:>9,} {row['on_stale']:<9}" + "".join(f"{row[n]:>21}" for n in names))
    print(f"p50 and p99 over the later half; must < {MUST_MS:g} ms")
    figures = [
        Figure(
            f"{row['events']:,} events, {row['on_stale']}, p50 / p99",
            f"{row['p50_ms']} / {row['p99_ms']} ms",
            f"p99 < {MUST_MS:g} ms",
            row["p99_ms"] < MUST_MS,
        )
        for row in rows
    ]
    title = f"Learning: the end of an episode of {STEPS} steps, CPU"
    leave(args.out, title, "python -m benches.closing", figures, rows=rows)
    late = [row for row in rows if row["on_stale"] == "gradual" and row["p99_ms"] >= MUST_MS]
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
