"""CPU time of adding an event to a memory and of proposing its causes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benches.causal.report import Figure, Report
from benches.precomputed import NoEmbedder
from cvx.memory import Memory
from cvx.types import Event

REMEMBERED, DIM, ADDED, TOPICS, SEED = 100_000, 128, 300, 2_000, 0
BATCH = 20_000
MOST_MS = 3.0


def run(report: Report, *, small: bool = False) -> None:
    """Time ``memory.add`` with ``memory.causes.propose``.

    Parameters
    ----------
    report : Report
        Where the figures go.
    small : bool, default False
        A hundredth of the size, to see that it runs.
    """
    remembered = REMEMBERED // (100 if small else 1)
    for name, text in (("many kinds of event", _of_many), ("one kind of event", _of_one)):
        _measure(report, name, text, remembered)


def _measure(report: Report, kind: str, text: Callable[[int], str], remembered: int) -> None:
    rng = np.random.default_rng(SEED)
    topics = rng.normal(size=(TOPICS, DIM))
    rows = topics[rng.integers(0, TOPICS, remembered + ADDED)]
    rows = (rows + 0.7 * rng.normal(size=rows.shape)).astype(np.float32)
    memory = Memory(embedder=NoEmbedder(DIM))
    for first in range(0, remembered, BATCH):
        last = min(first + BATCH, remembered)
        memory.add_many(
            Event(timestamp=at, text=text(at), vector=rows[at]) for at in range(first, last)
        )
    times: dict[str, list[float]] = {"add": [], "propose": [], "both": []}
    linked = 0
    for at in range(remembered, remembered + ADDED):
        begun = time.process_time()
        event = memory.add(text(at), timestamp=at, vector=rows[at])
        # The index follows at the next read; that belongs to the event, not to its causes.
        memory.recall(rows[at], 1)
        added = time.process_time()
        linked += len(memory.causes.propose(event))
        done = time.process_time()
        times["add"].append(added - begun)
        times["propose"].append(done - added)
        times["both"].append(done - begun)
    report.section(
        f"an event of a memory and its causes, ms of CPU, {kind}",
        f"{remembered:,} events in RAM, {DIM} dimensions, embedding apart, pair model, "
        f"{linked / ADDED:.1f} links and candidates an event",
    )
    for name, seconds in times.items():
        each = np.array(seconds[1:]) * 1e3
        must = MOST_MS if name == "propose" else None
        report.row(
            "add, and one recall" if name == "add" else name,
            Figure("p50", float(np.median(each)), must, lower=True),
            Figure("p99", float(np.percentile(each, 99)), lower=True),
        )


def _of_one(number: int) -> str:
    return f"thing {number % 7_919} happened in harbour {number % 401} on day {number // 97}"


def _of_many(number: int) -> str:
    thing, place = _NAMES[number % 397 % 26], _NAMES[number % 7_919 % 26]
    return (
        f"{thing}{_NAMES[number % 17]} failed in {place}{_NAMES[number % 23]} on day {number // 97}"
    )


_NAMES = [f"{first}{second}" for first in ("bar", "hel", "mon", "tor") for second in
          ("a", "eda", "ik", "olo", "us", "yn", "ant")]  # fmt: skip
