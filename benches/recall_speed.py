"""Time of a recall in a memory of 100,000 events, embedding apart.

Ten namespaces of 10,000 events each: texts of 20 words drawn by Zipf's law, vectors of dimension
384 around 2,000 centres, sessions of 20 turns by two speakers. Each cue is three rare and two
common words, with a vector of its own, and is asked once in one namespace. CPU time of the process
and time on the wall are both printed, since other work on the machine lengthens the one only.

    python -m benches.recall_speed [--events 100000] [--cues 400] [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benches.figures import RUNS, Figure, leave
from benches.precomputed import NoEmbedder
from cvx.memory import Memory
from cvx.recall import Pipeline, Weighting, by_rank
from cvx.recall.sources import Dense, Lexical
from cvx.types import Cue, Event

SPACES, DIM, CENTRES, WORDS = 10, 384, 2_000, 30_000


def filled(n: int, random: np.random.Generator) -> Memory:
    memory = Memory(embedder=NoEmbedder(DIM))
    centres = random.normal(size=(CENTRES, DIM)).astype(np.float32)
    odds = 1.0 / np.arange(1, WORDS + 1)
    words = random.choice(WORDS, size=(n, 20), p=odds / odds.sum())
    for first in range(0, n, 10_000):
        rows = range(first, min(first + 10_000, n))
        vectors = centres[random.integers(CENTRES, size=len(rows))]
        vectors = vectors + 0.7 * random.normal(size=vectors.shape).astype(np.float32)
        memory.add_many(
            (
                Event(
                    entity_id=row % 2,
                    timestamp=row * 60_000_000,
                    text=" ".join(f"w{word}" for word in words[row]),
                    vector=vector,
                    namespace=f"n{row * SPACES // n}",
                    metadata={"session": row // 20, "speaker": ("ann", "bob")[row % 2]},
                )
                for row, vector in zip(rows, vectors, strict=True)
            ),
            again=True,
        )
    return memory


def cues(n: int, random: np.random.Generator) -> list[tuple[Cue, str]]:
    out = []
    for _ in range(n):
        rare, common = random.integers(200, WORDS // 3, size=3), random.integers(5, 100, size=2)
        text = "What did Ann say about " + " ".join(f"w{word}" for word in (*rare, *common)) + "?"
        vector = random.normal(size=DIM).astype(np.float32)
        out.append((Cue(text=text, vector=vector), f"n{random.integers(SPACES)}"))
    return out


def timed(call: Callable[[Cue, str], object], asked: Sequence[tuple[Cue, str]]) -> dict[str, float]:
    cpu, wall = [], []
    for cue, namespace in asked:
        begun = time.process_time(), time.perf_counter()
        call(cue, namespace)
        cpu.append(time.process_time() - begun[0])
        wall.append(time.perf_counter() - begun[1])
    return {
        f"{name}_p{q}_ms": float(np.percentile(values, q)) * 1e3
        for name, values in (("cpu", cpu), ("wall", wall))
        for q in (50, 99)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--cues", type=int, default=400)
    out = RUNS / "bench" / "recall_speed.json"
    parser.add_argument("--json", type=Path, default=out)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    begun = time.process_time()
    memory = filled(options.events, random)
    built = time.process_time() - begun
    asked = cues(options.cues, random)
    begun = time.process_time()
    memory.recall(*asked[0][:1], namespace=asked[0][1])
    first = time.process_time() - begun
    plain = Pipeline(
        sources={"dense": Dense(30), "lexical": Lexical(30)},
        fusion=by_rank(),
        weighting=Weighting({"dense": 1.0, "lexical": 1.0}),
    )
    whole = replace(memory.learning.pipeline)
    rows = {
        "whole pipeline, k=10": timed(
            lambda cue, name: memory.recall(cue, namespace=name, pipeline=whole), asked
        ),
        "dense + lexical, k=10, one namespace": timed(
            lambda cue, name: memory.recall(cue, namespace=name, pipeline=plain), asked
        ),
        "block of 512 tokens": timed(
            lambda cue, name: memory.context(cue, 512, namespace=name), asked
        ),
    }
    print(f"{options.events} events, {SPACES} namespaces, dim {DIM}, {len(asked)} cues, seed 0")
    print(f"filled in {built:.1f} CPU s; first recall and index {first * 1e3:.0f} ms CPU")
    print(f"{'':<38} {'cpu p50':>8} {'cpu p99':>8} {'wall p50':>9} {'wall p99':>9}  ms")
    for name, row in rows.items():
        print(
            f"{name:<38} {row['cpu_p50_ms']:>8.2f} {row['cpu_p99_ms']:>8.2f}"
            f" {row['wall_p50_ms']:>9.2f} {row['wall_p99_ms']:>9.2f}"
        )
    figures = [
        Figure(f"{name}, CPU p50 / p99", f"{row['cpu_p50_ms']:.2f} / {row['cpu_p99_ms']:.2f} ms")
        for name, row in rows.items()
    ]
    title = f"Recall: what one costs at {options.events:,} events"
    leave(options.json, title, "python -m benches.recall_speed", figures, rows=rows)


if __name__ == "__main__":
    main()
