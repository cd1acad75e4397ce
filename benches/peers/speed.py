"""One query at a time, and batches, each library at its own smallest width for the recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from benches.peers.targets import Line, best, ratio
from benches.peers.workers import Question, Workers

TARGETS = (0.95, 0.99)
OTHERS = ["faiss", "usearch f32", "usearch bf16"]
BATCH = {"text": (5.5, 8.0), "mix": (6.5, 10.0)}


def lines(workers: Workers, queries: int, graphs: list[str]) -> list[Line]:
    data = workers.data
    rows = np.arange(min(queries, len(data.queries)))
    found: list[Line] = []
    for target in TARGETS:
        question = Question(rows)
        efs = {name: workers.smallest_ef(name, question, target) for name in graphs}
        single = workers.compare(efs, question)
        show(f"{data.name}, recall {target}, one query a call", single)
        label = f"{data.name} .{round(100 * target)}"
        found.append(against(f"{label} single, hnswlib M=16", single, "hnswlib", 4, 6))
        hnswlibs = [name for name in graphs if name.startswith("hnswlib")]
        if len(hnswlibs) > 1:
            fastest = best(single, hnswlibs)
            found.append(against(f"{label} single, hnswlib at its best M", single, fastest, 3, 3))
        if any(name in graphs for name in OTHERS):
            other = best(single, OTHERS)
            measure = f"{label} single, best of faiss and usearch"
            found.append(against(measure, single, other, 2, 3))
        both = {name: efs[name] for name in ("cvx", "hnswlib")}
        together = workers.compare(both, Question(rows, batch=True))
        show(f"{data.name}, recall {target}, a batch on one thread", together)
        # One query at a time is how hnswlib is fastest or as fast: it gains nothing in a batch.
        together["hnswlib"] = min(
            together["hnswlib"], single["hnswlib"], key=lambda one: float(one["mean_us"])
        )
        found.append(
            against(f"{label} batch, hnswlib M=16", together, "hnswlib", *BATCH[data.name])
        )
    return found


def against(
    measure: str, result: dict[str, Any], name: str | None, must: float, aim: float
) -> Line:
    value = None if name is None else ratio(result, name)
    return Line(measure, value, must, aim, detail={**result, "against": name})


def show(title: str, result: dict[str, Any]) -> None:
    print(f"\n{title}\n{'':16}{'recall@10':>10}{'ef':>6}{'us':>10}{'p50':>10}{'p99':>10}")
    for name, one in result.items():
        print(
            f"{name:16}{one['recall']:>10.4f}{one['ef'] or '-':>6}{one['mean_us']:>10.1f}"
            f"{one['p50_us']:>10.1f}{one['p99_us']:>10.1f}",
            flush=True,
        )
