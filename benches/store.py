"""Cost of durable writes, beside bare SQLite doing the same.

* durable adds: one event a transaction, by ours and by bare SQLite in turn, median times. Bare
  SQLite is one table with the columns of an event (text and vector among them), the same settings
  (write-ahead log, synchronous FULL), one commit a row; with words, an FTS5 table beside it. Ours
  also writes the journal, a checksum a row and the words. Its index takes the events in at the
  next read, which is timed apart. The ratio depends on how long the disk takes to sync.
* bulk import: batches of 10,000 events until all are in the record and in the index, beside one
  transaction of bare SQLite (without words) plus the build of an index of the same vectors.
* opening with a good snapshot, warm.
* another process: the answer to a question about what was committed just before it; `import cvx`.
* recall, embedding apart, filtered by one of ten namespaces: dense and lexical fused, and the
  pipeline that a memory comes with; and words that every event holds.

    python -m benches.store [--events 100000] [--adds 2000]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


import numpy as np

from benches.figures import RUNS, Figure, leave
from benches.storing.material import (
    DIM,
    INSERT,
    NAMESPACES,
    SEED,
    WORDS,
    Material,
    bare,
    row,
)
from benches.storing.processes import import_ms, until_recalled
from cvx.embed import LexicalEmbedder
from cvx.index import RawIndex
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.recall.sources import Lexical
from cvx.types import Cue, Event, Filter

BATCH, OPENINGS, QUESTIONS = 10_000, 20, 500


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, and what it must reach."""

    name: str
    value: float
    unit: str
    must: str
    met: bool | None
    details: str = ""


def durable_adds(folder: Path, adds: int) -> Iterator[Line]:
    """Add events one by one, in turn with bare SQLite."""
    events = iter(Material(1).events(3 * adds))
    plain, worded = bare(folder / "plain.db", words=False), bare(folder / "words.db", words=True)
    times: dict[str, list[float]] = {"ours": [], "plain": [], "words": []}
    with Memory.open(folder / "adds", embedder=LexicalEmbedder(dim=DIM)) as memory:

        def ours(number: int) -> None:  # noqa: ARG001
            event = next(events)
            memory.add(event.text, vector=event.vector, namespace=event.namespace)

        def commit_plain(number: int) -> None:
            plain.execute(INSERT, row(number, next(events)))

        def commit_words(number: int) -> None:
            event = next(events)
            worded.execute("BEGIN")
            worded.execute(INSERT, row(number, event))
            worded.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, event.text))
            worded.execute("COMMIT")

        ways = (("ours", ours), ("plain", commit_plain), ("words", commit_words))
        for number in range(adds):
            # In turn, since how long a disk takes to sync drifts within seconds.
            for name, add in ways:
                start = time.perf_counter()
                add(number)
                times[name].append(time.perf_counter() - start)
        start = time.perf_counter()
        assert memory.index.stats()["nodes"] == adds
        taken_in = (time.perf_counter() - start) * 1e3
    plain.close()
    worded.close()
    took = {name: float(np.median(some)) * 1e3 for name, some in times.items()}
    details = ", ".join(f"{name} {median:.2f} ms" for name, median in took.items())
    ratio, with_words = took["plain"] / took["ours"], took["words"] / took["ours"]
    yield Line("durable adds / bare SQLite", ratio, "x", ">= 0.8", ratio >= 0.8, details)
    yield Line("durable adds / bare with words", with_words, "x", "", None)
    own = took["ours"] - took["plain"]
    needed = f"the ratio is 0.8 where bare SQLite takes {4 * own:.2f} ms"
    yield Line("what an add costs beside that", own, "ms", "", None, needed)
    yield Line(f"the index takes in {adds:,} adds", taken_in, "ms", "", None)


def bulk(folder: Path, events: Sequence[Event]) -> Iterator[Line]:
    """Import everything at once, and beside it bare SQLite and the index alone."""

    def clocked(work: Callable[[], None]) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - wall, time.process_time() - cpu

    def ours() -> None:
        with Memory.open(folder / "bulk", embedder=LexicalEmbedder(dim=DIM)) as memory:
            for at in range(0, len(events), BATCH):
                memory.add_many(events[at : at + BATCH])
            assert memory.index.stats()["nodes"] == len(events)

    def alone() -> None:
        db = bare(folder / "bulk.db", words=False)
        db.execute("BEGIN")
        db.executemany(INSERT, (row(number, event) for number, event in enumerate(events)))
        db.execute("COMMIT")
        db.close()

    def build() -> None:
        index = RawIndex(DIM)
        vectors = np.stack([event.vector for event in events if event.vector is not None])
        for at in range(0, len(events), BATCH):
            some = events[at : at + BATCH]
            index.bulk_insert(
                [event.entity_id for event in some],
                [event.timestamp for event in some],
                vectors[at : at + BATCH],
                namespaces=[event.namespace for event in some],
            )

    rows, graph, whole = clocked(alone), clocked(build), clocked(ours)
    for at, unit in enumerate(("wall", "CPU")):
        ratio = whole[at] / (rows[at] + graph[at])
        details = (
            f"{whole[at]:.1f} s; bare {rows[at]:.1f} s, index {graph[at]:.1f} s, "
            f"so {whole[at] - graph[at]:.1f} s beside the index"
        )
        name = f"bulk import, {unit} / (bare + index)"
        yield Line(name, ratio, "x", "< 3", ratio < 3, details)


def opening(folder: Path) -> Iterator[Line]:
    """Open and close a store that did not change."""
    times = []
    for _ in range(OPENINGS + 1):
        start = time.perf_counter()
        memory = Memory.open(folder / "bulk", embedder=LexicalEmbedder(dim=DIM))
        times.append((time.perf_counter() - start) * 1e3)
        assert memory.admin.stats()["rebuilds"] == 0
        memory.close()
    median = float(np.median(times[1:]))
    slowest = f"the slowest of {OPENINGS}: {max(times[1:]):.0f} ms"
    yield Line("opening, warm", median, "ms", "< 100", median < 100, slowest)


def elsewhere(folder: Path) -> Iterator[Line]:
    """Ask another process for what this one committed, and start others."""
    waits = until_recalled(folder / "shared", QUESTIONS)
    median = float(np.median(waits))
    details = f"p99 {np.percentile(waits, 99):.1f} ms"
    yield Line("a commit, recalled elsewhere", median, "ms", "< 100", median < 100, details)
    imports = import_ms(5)
    fastest, details = min(imports), f"the slowest of {len(imports)}: {max(imports):.0f} ms"
    yield Line("import cvx, CPU", fastest, "ms", "< 150", fastest < 150, details)


def recalls(folder: Path) -> Iterator[Line]:
    """Ask questions of a few words, the vector given."""
    material = Material(2)
    vectors = material.vectors(QUESTIONS)
    mixed = [" ".join(material.text().split()[:6]) for _ in range(QUESTIONS)]
    everywhere = ["the"] * QUESTIONS
    with Memory.open(folder / "bulk", embedder=LexicalEmbedder(dim=DIM)) as memory:
        start = time.perf_counter()
        memory.recall(Cue(text="the", vector=vectors[0]), namespace="n0")
        first = time.perf_counter() - start
        yield Line("the first recall of a process", first * 1e3, "ms", "", None)

        def ask(texts: Sequence[str], pipeline: Pipeline | None) -> Callable[[int], object]:
            def one(at: int) -> object:
                cue = Cue(text=texts[at], vector=vectors[at])
                return memory.recall(cue, 10, namespace=f"n{at % NAMESPACES}", pipeline=pipeline)

            return one

        def search(at: int) -> object:
            where = Filter(namespaces=(f"n{at % NAMESPACES}",))
            return memory.index.search(vectors[at], 10, where=where)

        plain, words = Pipeline(), Pipeline(sources={"lexical": Lexical(30)})
        yield from timed("recall, dense + lexical", ask(mixed, plain), bound=True)
        yield from timed("recall, as it comes", ask(mixed, None), bound=False)
        yield from timed("recall of a word in every event", ask(everywhere, plain), bound=True)
        yield from timed("of these, the index's search", search, bound=False)
        yield from timed("recall, lexical alone", ask(mixed, words), bound=False)


def timed(name: str, ask: Callable[[int], object], *, bound: bool) -> Iterator[Line]:
    """Time the questions one by one: wall clock, and CPU, which other processes stretch less."""
    wall, cpu = [], []
    for at in range(QUESTIONS):
        start, busy = time.perf_counter(), time.thread_time()
        ask(at)
        wall.append((time.perf_counter() - start) * 1e3)
        cpu.append((time.thread_time() - busy) * 1e3)
    for share, must in ((50, 1.0), (99, 5.0)):
        value = float(np.percentile(wall[20:], share))
        details = f"CPU {np.percentile(cpu[20:], share):.2f} ms"
        met = value < must if bound else None
        yield Line(f"{name}, p{share}", value, "ms", f"< {must:g}" if bound else "", met, details)


def main() -> int:
    """Measure, print a table, write JSON; return 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--adds", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "store.json")
    args = parser.parse_args()
    print(f"{args.events:,} events, dim={DIM}, {WORDS + 1} words a text, seed={SEED}")
    lines: list[Line] = []
    # Beside the results, not in the system's own folder: that may be in RAM, where syncs are free.
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent) as name:
        folder = Path(name)
        events = Material().events(args.events)
        for part in (
            durable_adds(folder, args.adds), bulk(folder, events), opening(folder),
            elsewhere(folder), recalls(folder),
        ):  # fmt: skip
            for line in part:
                lines.append(line)
                verdict = "" if line.met is None else "met" if line.met else "MISSED"
                print(
                    f"{line.name:<36}{line.value:>9.2f} {line.unit:<3}{line.must:>7} {verdict:<7}"
                    f"{line.details}",
                    flush=True,
                )
    leave(
        args.out,
        "Store",
        "python -m benches.store",
        [Figure(line.name, f"{line.value:.2f} {line.unit}", line.must, line.met) for line in lines],
        sqlite=sqlite3.sqlite_version,
        events=args.events,
        dim=DIM,
        seed=SEED,
        lines=[{name: getattr(line, name) for name in Line.__slots__} for line in lines],
    )
    return 1 if any(line.met is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
