"""Print the table of speeds beside the peers, each line with a pass or how far it falls short.

    python -m benches.peers [--quick] [--rounds 5] [--queries 1000] [--out FILE]

A process a library, asked in turn round after round; medians of CPU time on one thread, each
library at its own smallest width for the recall, and the recall beside every time. `--quick`
takes fewer vectors, queries and peers: for development, not for figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from benches.peers import filters, others, speed
from benches.peers.data import MIXED, Data
from benches.peers.libraries import PATHS
from benches.peers.targets import Line
from benches.peers.workers import Question, Workers

ROOT = Path(__file__).resolve().parents[2]
PEERS = ["faiss", "usearch f32", "usearch bf16", "hnswlib 24", "hnswlib 32", "hnswlib 48"]


def paths(workers: Workers, queries: int) -> dict[str, Any]:
    """Recall at one width on every instruction set that this processor has."""
    from benches.peers.data import recall

    question = Question(workers.data.far_queries()[:queries])
    truth = workers.data.truth(question.rows)
    found = {}
    for name in [name for name in workers.pipes if name.startswith("cvx")]:
        ids, times = workers.ask(name, "search", question, 64)
        found[name] = {"recall": round(recall(ids, truth), 4), "us": round(times.mean, 1)}
        print(
            f"{name}: recall {found[name]['recall']} at ef 64, {found[name]['us']} us", flush=True
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer vectors, queries and peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "peers.json")
    args = parser.parse_args()
    queries = min(args.queries, 200) if args.quick else args.queries
    peers = ["hnswlib", *([] if args.quick else PEERS)]
    forced = [f"cvx {path}" for path in PATHS]

    table: list[Line] = []
    sets = {"text": [*forced], "mix": ["numpy", "scan"]}
    recalls: dict[str, Any] = {}
    libraries: dict[str, dict[str, str]] = {}
    for name, extra in sets.items():
        data = Data.load(name, 40_000 if args.quick else MIXED)
        print(f"\n{name}: {len(data.base):,} x {data.base.shape[1]}, {queries} queries", flush=True)
        workers = Workers(data, ["cvx", *peers, *extra], args.rounds)
        table += speed.lines(workers, queries, ["cvx", *peers])
        if name == "text":
            recalls = paths(workers, queries)
        else:
            table += filters.lines(workers, min(queries, 200))
        table += others.lines(workers, queries, around=name == "mix")
        libraries[name] = workers.notes
        workers.close()

    print(f"\n{'against':52}{'measured':>12}   {'must':22}")
    for line in table:
        print(line)
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "quick": args.quick,
        "rounds": args.rounds,
        "queries": queries,
        "libraries": libraries,
        "instruction_sets": recalls,
        "table": [line.as_row() for line in table],
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(
        f"\n{sum(line.reaches(line.must) for line in table)} of {len(table)} lines pass; {args.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
