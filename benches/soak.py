"""A soak test: memory and time of one process over long use, and of hostile text.

    python -m benches.soak [--reads 200000] [--writes 2000] [--seed 0]

A store of 2,000 texts is asked by key, recalled from, asked for blocks (one read of twenty) and
written between. Resident memory, descriptors and the write-ahead log are
looked at after each twentieth; what they were after the first fifth is the measure. The week that
requirements speak of is ``--reads 10000000 --writes 100000`` (hours).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from benches.figures import RUNS, Figure, leave
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.types import Event

SEED, EVENTS, PARTS, LONG = 0, 2_000, 20, 100_000
WORDS = [f"word{number}" for number in range(500)]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=15))


def state(folder: Path) -> dict[str, float]:
    """Return resident memory and log in MB, and open descriptors."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    log = folder / "memory.db-wal"
    return {
        "resident_mb": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "log_mb": log.stat().st_size / 2**20 if log.exists() else 0.0,
    }


def used(
    memory: Memory, folder: Path, reads: int, writes: int, rng: random.Random
) -> Iterator[dict[str, float]]:
    """Use a memory, and yield what the process holds after each part."""
    for part in range(1, PARTS + 1):
        for number in range(reads // PARTS):
            if number % max(reads // writes, 1) == 0:
                memory.add(sentence(rng), key=f"k{rng.randrange(EVENTS)}")
            if number % 40 == 0:
                memory.recall(sentence(rng))
            elif number % 40 == 20:
                memory.context(sentence(rng), 300)
            else:
                memory.get(key=f"k{rng.randrange(EVENTS)}")
        found = state(folder)
        print(f"{part * (reads // PARTS):,} of {reads:,} reads: {found}", file=sys.stderr)
        yield found


def texts() -> dict[str, str]:
    """Return texts of 100 KB that are dear to patterns that look back, and a plain one."""
    plain = " ".join(random.Random(SEED).choices(WORDS, k=LONG // 7))
    many = {
        "spaces": " " * LONG,
        "one letter": "a" * LONG,
        "brackets": "[" * LONG,
        "open quotes": '"a ' * (LONG // 3),
        "full stops": "a. " * (LONG // 3),
        "orders": "ignore all " * (LONG // 11),
        "marks": "<recalled>" * (LONG // 10),
        "commas and digits": "1,1:1-" * (LONG // 6),
    }
    return {"plain": plain[:LONG], **many}


def blocks(text: str, folder: Path) -> float:
    """Return the p99 in ms of a block from a memory that holds a text of 100 KB."""
    rng, times = random.Random(SEED), []
    with Memory.open(folder, embedder=LexicalEmbedder()) as memory:
        memory.add_many(Event(timestamp=at, text=sentence(rng)) for at in range(200))
        memory.add(f"word1 word2 {text}")
        for _ in range(200):
            begun = time.process_time()
            memory.context(f"word1 word2 {rng.choice(WORDS)}", 500)
            times.append(1e3 * (time.process_time() - begun))
    return float(np.percentile(times, 99))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=200_000)
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "soak.json")
    args = parser.parse_args()
    figures: list[Figure] = []
    report: dict[str, Any] = {"reads": args.reads, "writes": args.writes, "seed": args.seed}
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name) / "store", random.Random(args.seed)
        with Memory.open(folder, embedder=LexicalEmbedder()) as memory:
            for number in range(EVENTS):
                memory.add(sentence(rng), key=f"k{number}")
            seen = list(used(memory, folder, args.reads, args.writes, rng))
        warm, rest = seen[PARTS // 5 - 1], seen[PARTS // 5 :]
        grown = max(one["resident_mb"] for one in rest) / warm["resident_mb"]
        more = max(one["descriptors"] for one in rest) - warm["descriptors"]
        log = max(one["log_mb"] for one in seen)
        figures += [
            Figure("resident memory, most after warm-up", f"{grown:.2f}x", "<= 1.1x", grown <= 1.1),
            Figure("descriptors, more than after warm-up", f"{more:.0f}", "0", more <= 0),
            Figure("write-ahead log, most", f"{log:.1f} MB", "<= 16 MB", log <= 16),
        ]
        report["seen"] = seen
        cost = {text: blocks(told, Path(name) / text) for text, told in texts().items()}
    for text, p99 in cost.items():
        ratio = p99 / cost["plain"]
        bound = ("", None) if text == "plain" else ("<= 2x plain", ratio <= 2)
        told = f"{p99:.1f} ms, {ratio:.2f}x plain"
        figures.append(Figure(f"p99 of a block beside 100 KB of {text}, CPU", told, *bound))
    for figure in figures:
        print(f"{figure.what:58}{figure.value:>22}  {figure.bound}")
    title = f"Store: {args.reads:,} reads and {args.writes:,} writes in one process"
    leave(args.out, title, "python -m benches.soak", figures, **report, p99_ms=cost)
    return int(any(figure.met is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
