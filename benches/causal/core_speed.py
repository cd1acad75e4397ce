"""CPU time of a walk to causes, and of adding an event to a Causal Memory Core."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benches.ancestors import heavy_tailed
from benches.causal.report import Figure, Report
from cvx.causal import CausalMemoryCore, RuleJudge
from cvx.causal.cause_probability import PairModel
from cvx.causal.judges.protocol import Judge

EVENTS, EDGES, LARGEST, DEPTH = 1_000_000, 3_000_000, 10_000, 4
# The bound is asked of the middle one; the last is the default of `ancestors`.
BUDGETS = {1024: None, 2048: 1.0, 4096: None}
RECORDED, DIM, CLUSTERS, ADDED, SEED = 100_000, 128, 500, 300, 0
ADD_MS = 2.0


def run(report: Report, *, small: bool = False) -> None:
    """Time walks and additions.

    Parameters
    ----------
    report : Report
        Where the figures go.
    small : bool, default False
        A hundredth of the size, to see that it runs.
    """
    part = 100 if small else 1
    _walks(report, EVENTS // part, EDGES // part)
    _additions(report, RECORDED // part)


def _walks(report: Report, events: int, edges: int) -> None:
    index = heavy_tailed(events, edges, min(LARGEST, events), SEED)
    rng = np.random.default_rng(SEED + 1)
    calls = 3_000
    starts = rng.integers(0, events, calls).tolist()
    # Half of the starts are ends of edges drawn at random: there the large lists are met.
    ends = [edge.to_node for edge in index.edges()[:: max(1, edges // calls)]]
    starts[::2] = ends[: len(starts[::2])]
    report.section(
        "ancestors, ms of CPU",
        f"{events:,} events, {edges:,} edges, depth {DEPTH}, largest list {LARGEST:,}; a walk that "
        "its budget cuts off says so",
    )
    for budget, must in BUDGETS.items():
        times, cut = [], 0
        for start in starts:
            begun = time.thread_time_ns()
            cut += index.ancestors(start, ["caused"], DEPTH, budget=budget).truncated
            times.append((time.thread_time_ns() - begun) / 1e6)
        report.row(
            f"index.ancestors, budget {budget} edges",
            Figure("p50", float(np.median(times)), lower=True),
            Figure("p99", float(np.percentile(times, 99)), must, lower=True),
            Figure("cut off", cut / calls),
        )


class _Prepared:
    """Vectors made beforehand: what is timed is not the embedding."""

    def __init__(self, rows: npt.NDArray[np.float64]) -> None:
        self._rows = iter(rows.tolist())

    def embed(self, text: str) -> list[float]:
        del text
        row: list[float] = next(self._rows)
        return row


def _additions(report: Report, recorded: int) -> None:
    report.section(
        "add_event without a language model, ms of CPU",
        f"{recorded:,} events in {CLUSTERS} clusters, {DIM} dimensions, embedding apart",
    )
    judges: dict[str, Judge] = {
        "rules": RuleJudge(),
        "pair model, as shipped": PairModel.shipped(),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "core.duckdb"
        near = _filled(path, recorded)
        for name, judge in judges.items():
            with CausalMemoryCore(str(path), judge, _Prepared(near)) as core:
                # The first addition takes in what was recorded before.
                core.add_event("a first thing happened")
                times = []
                for number in range(ADDED):
                    begun = time.process_time()
                    core.add_event(f"thing {number} happened in the harbour after the storm")
                    times.append((time.process_time() - begun) * 1e3)
            _row(report, name, times, ADD_MS)
        _row(report, "the same row into DuckDB, nothing else", _bare(path, near), None)


def _row(report: Report, name: str, times: list[float], must: float | None) -> None:
    report.row(
        name,
        Figure("mean", float(np.mean(times)), must, lower=True),
        Figure("p50", float(np.median(times)), lower=True),
        Figure("p99", float(np.percentile(times, 99)), lower=True),
    )


def _bare(path: Path, rows: npt.NDArray[np.float64]) -> list[float]:
    """Insert as many rows as were added, each durable: what DuckDB itself takes."""
    times = []
    with duckdb.connect(str(path)) as file:
        for number, row in enumerate(rows[:ADDED].astype(np.float32)):
            begun = time.process_time()
            file.execute(
                "INSERT INTO events VALUES (nextval('event_ids'), TIMESTAMP '2026-11-01', ?, ?,"
                " NULL, NULL)",
                (f"thing {number} happened in the harbour after the storm", row),
            )
            times.append((time.process_time() - begun) * 1e3)
    return times


def _filled(path: Path, recorded: int) -> npt.NDArray[np.float64]:
    """Fill a file, and return vectors near to some that it holds."""
    CausalMemoryCore(str(path), None, _Prepared(np.zeros((0, DIM)))).close()
    noise = np.random.default_rng(SEED + 2).normal(scale=0.05, size=(ADDED + 1, DIM))
    with duckdb.connect(str(path)) as file:
        file.execute("SELECT setseed(0.5)")
        file.execute(
            f"""
            INSERT INTO events
            SELECT nextval('event_ids'), TIMESTAMP '2026-01-01' + to_seconds(i), 'event ' || i,
                list_transform(range({DIM}), lambda x:
                    (hash(i % {CLUSTERS}, x) % 1000 / 1000 + 0.3 * random() - 0.65)::FLOAT),
                NULL, NULL
            FROM range({recorded}) AS numbers (i)
            """
        )
        held = file.execute(
            f"SELECT embedding FROM events ORDER BY event_id LIMIT {ADDED + 1}"
        ).fetchall()
    return np.array([row for (row,) in held]) + noise
