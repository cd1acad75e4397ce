"""Searches under a filter: at random, within a window of time, and far from the query."""

from __future__ import annotations

from typing import Any

import numpy as np

from benches.peers.data import FRACTIONS, KINDS
from benches.peers.speed import show
from benches.peers.targets import Line, ratio
from benches.peers.workers import Question, Workers

#: What cvx must reach; the others only .95.
RECALL = 0.99
WALKED = {0.5: (1.5, 3.0), 0.1: (4.0, 6.0)}


def lines(workers: Workers, queries: int) -> list[Line]:
    found: list[Line] = []
    for kind in KINDS:
        for fraction in FRACTIONS:
            question = Question(np.arange(queries), kind, fraction)
            result = compared(workers, question)
            label = f"{kind} {fraction:.1%}"
            show(f"{workers.data.name}, filter {label}", result)
            kept = result["cvx"]["recall"] >= RECALL
            if fraction in WALKED:
                must, aim = WALKED[fraction]
                value = ratio(result, "hnswlib")
                found.append(
                    Line(f"filter {label}, hnswlib", value, must, aim, holds=kept, detail=result)
                )
            else:
                scan = result["cvx"]["mean_us"] / result["scan"]["mean_us"]
                measure = f"filter {label}, a bare scan"
                line = Line(measure, scan, 1.3, 1.1, at_most=True, holds=kept, detail=result)
                found.append(line)
            if kind == "window":
                value = ratio(result, "numpy")
                found.append(Line(f"filter {label}, numpy", value, 1, 1, holds=kept, detail=result))
    question = Question(workers.data.far_queries(), "far", 0.1)
    result = compared(workers, question)
    show(f"{workers.data.name}, filter of the 10% farthest from the queries", result)
    kept = result["cvx"]["recall"] >= RECALL
    value = ratio(result, "hnswlib")
    found.append(Line("filter far 10%, hnswlib", value, 40, 50, holds=kept, detail=result))
    return found


def compared(workers: Workers, question: Question) -> dict[str, Any]:
    efs: dict[str, int | None] = {
        "cvx": workers.smallest_ef("cvx", question, RECALL),
        "hnswlib": workers.smallest_ef("hnswlib", question, 0.95),
        "numpy": 0,
        "scan": 0,
    }
    return workers.compare(efs, question)
