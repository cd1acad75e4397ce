"""Time of an advice, a step and the end of an episode in a memory that has acted before.

A store is filled with episodes of 20 steps over 1,000 text states, five tasks and four actions,
then opened again: the first episode replays it, and forty more are played by advice; opened once
more, the first episode goes on from what was kept of that. CPU times,
which other processes do not stretch, the disk's among them only where SQLite computes. Texts come
back, so that embedding them is no part of it.

    python -m benches.advice [--steps 10000 100000]

A million steps (`--steps 1000000`) take some 6 minutes of CPU, most of it for the replay.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import numpy as np

from benches.figures import RUNS, Figure, leave
from cvx import LexicalEmbedder, Memory
from cvx.memory.episode import RunningEpisode
from cvx.types import Episode, Event, Vector, task_tag

SEED, DIM, LENGTH, STATES, ROUNDS = 0, 64, 20, 1000, 40
TASKS = ("fetch", "clean", "cool", "warm", "hang")
WAYS = ("go north", "go east", "go south", "go west")
TREES = ["oak", "elm", "ash", "fir", "yew", "pine", "beech", "larch", "birch", "maple"]
ROOMS = [
    f"You stand in the {TREES[n % 10]} room, door {n} of hall {n // 10}." for n in range(STATES)
]
WON = 0.6
ADVICE, STEP, END = "advice", "act without its commit", "end with its commit"
RESUMED = "open, begin, advise, by what was kept"
BOUNDS_MS: dict[str, Any] = {
    ADVICE: {10_000: 2.0, 100_000: 5.0},
    STEP: 1.0,
    END: 20.0,
    RESUMED: {1_000_000: 1000.0},
}


def episodes(steps: int, vectors: list[Vector]) -> Iterator[Episode]:
    """Yield episodes with so many steps in all, as ``Memory.episode`` stores them."""
    draw = random.Random(SEED)
    for number in range(steps // LENGTH):
        task, won, kept = draw.choice(TASKS), float(draw.random() < WON), []
        at = draw.randrange(STATES)
        for place in range(LENGTH):
            at = (at + draw.choice((-3, -1, 1, 3))) % STATES
            event = Event(
                text=ROOMS[at],
                timestamp=number * LENGTH + place,
                entity_id=number,
                vector=vectors[at],
                action=draw.choice(WAYS),
                kind="step" if won else "failed_step",
                reward=won,
                node=number * LENGTH + place,
                tags=(task_tag(task),),
                metadata={} if place else {"actions": list(WAYS)},
            )
            kept.append(event)
        yield Episode(
            goal=f"{task} it",
            task_type=task,
            reward=won,
            steps=tuple(kept),
            episode_id=number,
            entity_id=number,
        )


def fill(folder: Path, steps: int) -> None:
    """Store so many steps at once."""
    embedder = LexicalEmbedder(DIM)
    vectors = list(embedder.embed(ROOMS))
    with Memory.open(folder, embedder=embedder) as memory, memory.record.transaction() as write:
        for episode in episodes(steps, vectors):
            write.take_nodes(LENGTH)
            write.add_episode(episode, recallable=bool(episode.reward))


class Clock:
    """Collects CPU times in milliseconds by name."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def __call__(self, name: str, done: Callable[..., Any], *args: Any) -> Any:
        """Do something, and note how long it took."""
        began = time.process_time()
        result = done(*args)
        self.times.setdefault(name, []).append(1000 * (time.process_time() - began))
        return result


def measured(folder: Path) -> dict[str, list[float]]:
    """Play episodes by advice; return the times of each call."""
    clock, draw = Clock(), random.Random(SEED + 1)
    with Memory.open(folder) as memory:
        clock("first episode, with the replay", memory.episode, "fetch it").discard()
        warm = memory.episode("fetch it", task="fetch")
        for room in ROOMS:
            warm.advise(room, WAYS)
        warm.discard()
        for _ in range(ROUNDS):
            episode = clock("begin", lambda: memory.episode("fetch it", task="fetch"))
            for _ in range(LENGTH):
                advice = clock(ADVICE, episode.advise, draw.choice(ROOMS), WAYS)
                clock("advice in words", str, advice)
                clock("act with its commit", episode.act, advice.choose().action)
            clock(END, episode.end, float(draw.random() < WON))
        # All that is written in such a block is committed at its end.
        with memory.admin.transaction():
            episode = memory.episode("fetch it", task="fetch")
            for _ in range(10 * LENGTH):
                advice = episode.advise(draw.choice(ROOMS), WAYS)
                clock(STEP, episode.act, advice.choose().action)
            episode.discard()

    def resumed() -> tuple[Memory, RunningEpisode]:
        memory = Memory.open(folder)
        episode = memory.episode("fetch it", task="fetch")
        episode.advise(ROOMS[0], WAYS)
        return memory, episode

    memory, episode = clock(RESUMED, resumed)
    episode.discard()
    memory.close()
    return clock.times


def main() -> int:
    """Measure, print, and leave the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--out", type=Path, default=RUNS / "advice.json")
    options = parser.parse_args()
    rows, figures, late = [], [], False
    for steps in options.steps:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), steps)
            times = measured(Path(folder))
        print(f"{steps} steps, {STATES} states, dim {DIM}, seed {SEED}; CPU ms")
        for name, each in times.items():
            p50, p99 = (float(np.percentile(each, at)) for at in (50, 99))
            rows.append({"steps": steps, "what": name, "p50": p50, "p99": p99, "n": len(each)})
            bound = BOUNDS_MS.get(name)
            most = bound.get(steps) if isinstance(bound, dict) else bound
            met = None if most is None else p50 <= most
            late |= met is False
            print(f"  {name:37} p50 {p50:8.2f}  p99 {p99:8.2f}  n {len(each)}")
            value = f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
            limit = "" if most is None else f"p50 {most:g} ms"
            figures.append(Figure(f"{name}, {steps:,} steps", value, limit, met))
    title = f"Advice: episodes of {LENGTH} steps in a memory that has acted, CPU"
    leave(options.out, title, "python -m benches.advice", figures, rows=rows)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
