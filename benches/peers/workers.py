"""One process for each library; CPU time is measured in it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import numpy as np

from benches.peers import first_filters, libraries, ours
from benches.peers.data import Data, Ids, K, recall

#: What only cvx is asked.
ASKED: dict[str, Callable[..., Any]] = {
    "floor": ours.floor,
    "memory": ours.memory,
    "opening": ours.opening,
    "saved": ours.saved,
    "threads": ours.threads,
    "edges": ours.edges,
    "beside_plain": ours.beside_plain,
    "cold": first_filters.cold,
}
#: The widest walk that is tried.
WIDEST = 2_000


@dataclass(frozen=True)
class Times:
    """Of one run over all queries, in microseconds a query."""

    mean: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Question:
    """Which queries, and how."""

    rows: Ids
    kind: str = "all"
    fraction: float = 1.0
    batch: bool = False


def answered(library: Any, data: Data, question: Question, ef: int) -> tuple[Ids, Times]:
    rows = question.rows
    found = np.full((len(rows), K), -1, np.int64)
    if question.batch:
        queries = data.queries[rows]
        start = time.process_time_ns()
        found = library.batch(queries, ef)
        each = (time.process_time_ns() - start) / len(rows) / 1e3
        return found, Times(each, each, each)
    spent = np.empty(len(rows))
    condition = () if question.kind == "all" else (question.kind, question.fraction)
    call = library.search if question.kind == "all" else library.filtered
    for at, row in enumerate(rows):
        query = data.queries[row]
        start = time.process_time_ns()
        ids = call(query, ef, *condition)
        spent[at] = time.process_time_ns() - start
        found[at, : len(ids)] = ids
    p50, p99 = np.percentile(spent, [50, 99]) / 1e3
    return found, Times(float(spent.mean()) / 1e3, float(p50), float(p99))


def serve(name: str, set_name: str, rows: int, pipe: Connection) -> None:
    """Build one library and answer until the driver hangs up."""
    data = Data.load(set_name, rows)
    library = libraries.made(name, data)
    pipe.send((library.build_s, library.note))
    while (request := pipe.recv()) is not None:
        call, *arguments = request
        if call == "search":
            pipe.send(answered(library, data, *arguments))
        else:
            pipe.send(ASKED[call](library, *arguments))


class Workers:
    """The libraries behind their pipes."""

    def __init__(self, data: Data, names: list[str], rounds: int) -> None:
        self.data, self.rounds = data, rounds
        self.pipes: dict[str, Connection] = {}
        self.build_s: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.processes: dict[str, Any] = {}
        for name in names:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a library and wait for its index: a build must not slow down another one."""
        context = multiprocessing.get_context("spawn")
        near, far = context.Pipe()
        arguments = (name, self.data.name, len(self.data.base), far)
        process = context.Process(target=serve, args=arguments, daemon=True)
        process.start()
        self.processes[name] = process
        self.pipes[name] = near
        if not near.poll(1200):
            raise TimeoutError(f"{name} did not build its index within 20 minutes")
        self.build_s[name], self.notes[name] = near.recv()
        print(f"  {name}: {self.notes[name]}, built in {self.build_s[name]:.1f} CPU s", flush=True)

    def ask(self, name: str, *request: object) -> Any:
        self.pipes[name].send(request)
        return self.pipes[name].recv()

    def smallest_ef(self, name: str, question: Question, target: float) -> int | None:
        """Return the narrowest walk that reaches a recall, `None` where none does."""
        truth = self.data.truth(question.rows, question.kind, question.fraction)

        def reaches(ef: int) -> bool:
            return recall(self.ask(name, "search", question, ef)[0], truth) >= target

        high = 16
        while not reaches(high):
            if high >= WIDEST:
                return None
            high = min(2 * high, WIDEST)
        low = max(high // 2, K)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if reaches(middle) else (middle + 1, high)
        return low

    def compare(self, efs: dict[str, int | None], question: Question) -> dict[str, Any]:
        """Return medians over rounds in turn, with the recall of each beside its time."""
        truth = self.data.truth(question.rows, question.kind, question.fraction)
        runs: dict[str, list[Times]] = {name: [] for name, ef in efs.items() if ef is not None}
        result: dict[str, Any] = {}
        for _ in range(self.rounds):
            for name, times in runs.items():
                found, spent = self.ask(name, "search", question, efs[name])
                times.append(spent)
                result[name] = {"recall": round(recall(found, truth), 4), "ef": efs[name]}
        for name, times in runs.items():
            for part in ("mean", "p50", "p99"):
                result[name][f"{part}_us"] = round(median(getattr(t, part) for t in times), 2)
        return result

    def stop(self, name: str) -> None:
        """Let one library go; its build and its note are kept."""
        self.pipes.pop(name).send(None)
        self.processes.pop(name).join(10)

    def close(self) -> None:
        for name in list(self.pipes):
            self.stop(name)
