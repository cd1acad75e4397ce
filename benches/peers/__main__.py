"""Print the table of speeds beside the peers, each line with a pass or how far it falls short.

    python -m benches.peers [--quick] [--rounds 5] [--queries 1000] [--out FILE]

A process a library, asked in turn round after round; medians of CPU time on one thread, each
library at its own smallest width for the recall, and the recall beside every time. The whole takes
some twenty minutes; `--quick`, with fewer vectors, queries and peers, two: for development, not for
figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from benches.figures import RUNS, leave
from benches.peers import filters, others, speed
from benches.peers.data import MIXED, Data, recall
from benches.peers.libraries import PATHS, opened
from benches.peers.targets import Line
from benches.peers.workers import Question, Workers

PEERS = ["faiss", "usearch f32", "usearch bf16", "hnswlib 24", "hnswlib 32", "hnswlib 48"]


def paths(workers: Workers, queries: int) -> dict[str, Any]:
    """Recall and time at one width on every instruction set that this processor has."""
    question = Question(np.arange(queries))
    truth = workers.data.truth(question.rows)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        snapshot = str(Path(folder) / "index.cvx")
        workers.ask("cvx", "saved", snapshot)
        for path in PATHS:
            name = opened(path, snapshot)
            workers.start(name)
            ids, times = workers.ask(name, "search", question, 64)
            found[path] = {"recall": round(recall(ids, truth), 4), "us": round(times.mean, 1)}
            told = f"{workers.data.name} on {path}: recall {found[path]['recall']} at ef 64"
            print(f"{told}, {found[path]['us']} us", flush=True)
            workers.stop(name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer vectors, queries and peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "peers.json")
    args = parser.parse_args()
    queries = min(args.queries, 200) if args.quick else args.queries
    peers = ["hnswlib", *([] if args.quick else PEERS)]
    table: list[Line] = []
    recalls: dict[str, Any] = {}
    libraries: dict[str, dict[str, str]] = {}
    for name in ("text", "mix"):
        headline = name == "mix"
        data = Data.load(name, 40_000 if args.quick else MIXED)
        print(f"\n{name}: {len(data.base):,} x {data.base.shape[1]}, {queries} queries", flush=True)
        extra = ["numpy", "scan"] if headline else []
        workers = Workers(data, ["cvx", *peers, *extra], args.rounds)
        table += speed.lines(workers, queries, ["cvx", *peers])
        recalls[name] = paths(workers, queries)
        if headline:
            table += filters.lines(workers, min(queries, 200))
        whole = not (args.quick and headline)
        table += others.lines(workers, queries, headline=headline, whole=whole)
        libraries[name] = workers.notes
        workers.close()
    table.append(others.growth(40_000 if args.quick else 160_000))

    print(f"\n{'against':52}{'measured':>12}   {'must':22}")
    for line in table:
        print(line)
    print(f"\n{sum(line.reaches(line.must) for line in table)} of {len(table)} lines pass")
    leave(
        args.out,
        "Index: beside hnswlib, faiss and usearch",
        "python -m benches.peers" + (" --quick" if args.quick else ""),
        [line.figure() for line in table],
        rounds=args.rounds,
        queries=queries,
        libraries=libraries,
        instruction_sets=recalls,
        table=[line.as_row() for line in table],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
