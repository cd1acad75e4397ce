"""What a memory of a million events costs, or of ten million, beside one of 100,000.

    nice -n 10 python -m benches.at_scale --events 1000000 --dim 384 [--folder DIR] [--out FILE]

An export in Parquet is written, imported into a new store, opened, asked and changed, each part in
a process of its own. With ``--folder`` what a part left is kept, and the same command goes on after
the last that ended; without it everything is removed. A million of 384 dimensions takes some 6 GB
of disk and a quarter of an hour of CPU; ten million of 128 some 25 GB of disk, and hours.

Ten namespaces, texts of ten words drawn by Zipf's law, vectors around 2,000 centres, sessions of 20
turns by two speakers, all seeded. A cue is three rare and two common words with a vector, asked in
one namespace with a filter by time that three quarters pass. Times are CPU time of the process
unless they say wall; a shared machine makes both longer.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benches.figures import RUNS, leave
from benches.peers.targets import Line
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store import Record, rows
from cvx.store.rows import event_row
from cvx.store.transfer.format import Header, types
from cvx.store.transfer.parquet_file import write_into
from cvx.types import Cue, Event, Filter, Vector

SEED, SPACES, CENTRES, WORDS, BLOCK = 0, 10, 2_000, 30_000, 5_000
BESIDE, CUES, CHANGES = 100_000, 200, 40


class Hashed:
    """A vector drawn by the checksum of each text: what is timed is not the embedding."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def info(self) -> Mapping[str, Any]:
        return {"id": "given", "dim": self.dim, "semantic": True}

    def embed(self, texts: Sequence[str]) -> Vector:
        rows = [
            np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dim) for text in texts
        ]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dim)


class Drawn:
    """Seeded events and cues, block by block."""

    def __init__(self, events: int, dim: int) -> None:
        self.events, self.dim = events, dim
        random = np.random.default_rng(SEED)
        self.centres = random.normal(size=(CENTRES, dim)).astype(np.float32)
        odds = 1.0 / np.arange(1, WORDS + 1)
        self.odds = np.cumsum(odds / odds.sum())

    def block(self, first: int) -> Iterator[Event]:
        """Yield the events of a block."""
        random = np.random.default_rng((SEED, first))
        n = min(BLOCK, self.events - first)
        words = np.searchsorted(self.odds, random.random((n, 10)))
        vectors = self.centres[random.integers(CENTRES, size=n)]
        vectors = vectors + 0.7 * random.standard_normal((n, self.dim), dtype=np.float32)
        for row, (own, vector) in enumerate(zip(words.tolist(), vectors, strict=True), first):
            yield Event(
                entity_id=row % 2,
                timestamp=row * 1_000_000,
                text=" ".join([f"w{word}" for word in own]),
                vector=vector,
                namespace=f"n{row * SPACES // self.events}",
                metadata={"session": row // 20, "speaker": ("ann", "bob")[row % 2]},
            )

    def cues(self, n: int) -> Iterator[tuple[Cue, str, Filter]]:
        """Cues with a namespace and a filter each."""
        random = np.random.default_rng((SEED, 1, 1))
        span = self.events * 1_000_000 // SPACES
        for _ in range(n):
            asked = [*random.integers(200, WORDS // 3, size=3), *random.integers(5, 100, size=2)]
            vector = self.centres[random.integers(CENTRES)] + random.normal(size=self.dim)
            space = int(random.integers(SPACES))
            since = space * span + span // 4
            text = "What did Ann say about " + " ".join(f"w{word}" for word in asked) + "?"
            yield Cue(text=text, vector=vector.astype(np.float32)), f"n{space}", Filter(since=since)


def measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def own_mb() -> int:
    """Memory of this process that is no page of a file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("RssAnon"))


def quantiles(times: list[float]) -> dict[str, float]:
    return {f"p{at}_ms": 1e3 * float(np.percentile(times, at)) for at in (50, 99)}


def write_export(drawn: Drawn, folder: Path) -> dict[str, Any]:
    """Write the events as `cvx export` would, without a store to export them from."""
    shutil.rmtree(folder / "export.parquet", ignore_errors=True)
    body = json.dumps([[0, drawn.events - 1]], separators=(",", ":"))
    chain = zlib.crc32(body.encode())
    change = (1, 1, "insert", body, chain)
    meta = {"embedder": "given", "dim": str(drawn.dim), "metric": "cosine", "index": "{}"}
    counts = dict.fromkeys(rows.COLUMNS, 0) | {"events": drawn.events, "journal": 1}
    header = Header("0" * 32, 1, chain, meta, counts)

    def batches() -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        for first in range(0, drawn.events, BLOCK):
            some = [
                event_row(event, (number + 1, number, None), True, 1)
                for number, event in enumerate(drawn.block(first), first)
            ]
            yield "events", [(*row, rows.row_crc(*row)) for row in some]
        yield "journal", [(*change, rows.row_crc(*change))]

    with Record() as record:
        db = record.database.connection()
        declared = {table: types(db, table) for table in rows.COLUMNS}
    _, spent = measured(lambda: write_into(folder / "export.parquet", header, declared, batches()))
    return spent


def take_in(_: Drawn, folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder / "store", ignore_errors=True)
    told = iter(range(5, 101, 5))
    following = next(told)

    def progress(done: int, of: int) -> None:
        nonlocal following
        if 100 * done >= following * of:
            print(f"    {following}% of the rows, {peak_mb():,} MB", flush=True)
            following = next(told, 101)

    _, spent = measured(
        lambda: import_export(folder / "store", folder / "export.parquet", progress=progress)
    )
    files = [path for path in (folder / "store").rglob("*") if path.is_file()]
    size = {path.suffix: path.stat().st_size for path in files}
    return spent | {"peak_mb": peak_mb(), "record_bytes": size[".db"], "index_bytes": size[".cvx"]}


def opened(drawn: Drawn, folder: Path) -> Memory:
    return Memory.open(folder / "store", embedder=Hashed(drawn.dim))


def ask(drawn: Drawn, folder: Path) -> dict[str, Any]:
    """Open, and ask; what is asked first is counted apart."""
    opened(drawn, folder).close()
    before = own_mb()
    memory, opening = measured(lambda: opened(drawn, folder))
    asked = list(drawn.cues(CUES))
    report: dict[str, Any] = {"open": opening, "open_mb": own_mb() - before}
    with memory:
        verbs: dict[str, Callable[[Cue, str, Filter], Any]] = {
            "recall": lambda cue, own, where: memory.recall(cue, namespace=own, where=where),
            "context": lambda cue, own, _: memory.context(cue, 512, namespace=own),
        }
        for name, verb in verbs.items():
            times = [measured(partial(verb, *one))[1]["cpu_s"] for one in asked]
            report[name] = quantiles(times[1:]) | {"first_ms": 1e3 * times[0]}
        report["asked_mb"] = own_mb() - before
    return report


def change(drawn: Drawn, folder: Path) -> dict[str, Any]:
    """Change a memory that was just opened: add, link and ask why, learn, erase."""
    report: dict[str, Any] = {}
    vectors = iter(Hashed(drawn.dim).embed([f"thing {turn}" for turn in range(3 * CHANGES)]))
    step = drawn.events // (CHANGES + 1)
    with opened(drawn, folder) as memory:
        begun = memory.record.now()

        def add() -> int:
            return memory.add("a new thing", vector=next(vectors), namespace="n0").id

        def both() -> None:
            memory.recall(Cue(text="new", vector=next(vectors)), namespace="n0")

        report["first_change_ms"] = 1e3 * (measured(add)[1]["cpu_s"] + measured(both)[1]["cpu_s"])
        added = [measured(add) for _ in range(CHANGES)]
        report["add"] = quantiles([spent["cpu_s"] for _, spent in added])
        pairs = [(1 + turn * step, 2 + turn * step) for turn in range(CHANGES)]
        for cause, effect in pairs:
            memory.link(cause, effect, why="it was so", effect_first="allow")

        def why(effect: int) -> dict[str, float]:
            own = f"n{(effect - 1) * SPACES // drawn.events}"
            return measured(lambda: memory.why(effect, namespace=own))[1]

        report["why"] = quantiles([why(effect)["cpu_s"] for _, effect in pairs])
        advised, ended = [], []
        for turn in range(CHANGES):
            with memory.episode("get a coffee", task="coffee", namespace="n0") as episode:
                choices = ["press the first", "press the second"]
                advised.append(measured(partial(episode.advise, "a hall", choices))[1]["cpu_s"])
                episode.act(choices[turn % 2])
                ended.append(measured(partial(episode.end, outcome=turn % 2))[1]["cpu_s"])
        report["advise"], report["end"] = quantiles(advised), quantiles(ended)
        away = [measured(partial(memory.forget, turn * step + 7))[1] for turn in range(CHANGES)]
        report["forget"] = quantiles([spent["cpu_s"] for spent in away])
        own = own_mb()
        past, spent = measured(partial(memory.as_of, begun))
        report["as_of_s"], report["as_of_mb"] = spent["cpu_s"], own_mb() - own
        past.close()
        report["erase_s"] = measured(partial(memory.erase, step + 9))[1]["cpu_s"]
    return report


WORK = {"export": write_export, "import": take_in, "ask": ask, "change": change}


def parts(events: int, dim: int, folder: Path) -> dict[str, Any]:
    """Run each part in a process of its own, unless it ended before."""
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.json"
    report: dict[str, Any] = json.loads(state.read_text()) if state.exists() else {}
    for name in WORK:
        if name not in report:
            print(f"  {name} of {events:,} x {dim}", flush=True)
            own = ["--events", str(events), "--dim", str(dim), "--folder", str(folder)]
            run = [sys.executable, "-m", "benches.at_scale", "--part", name, *own]
            subprocess.run(run, check=True)
            report[name] = json.loads((folder / f"{name}.json").read_text())
            report[name]["load"] = os.getloadavg()[0]
            state.write_text(json.dumps(report))
        print(f"    {report[name]}", flush=True)
        if name == "import":
            shutil.rmtree(folder / "export.parquet", ignore_errors=True)
    return report


def lines(told: dict[str, Any], beside: dict[str, Any], events: int) -> list[Line]:
    """What was measured beside what it must be, a line each."""
    large = events > 1_000_000
    taken, asked, changed = told["import"], told["ask"], told["change"]

    def ratio(name: str) -> float:
        return float(asked[name]["p50_ms"] / beside["ask"][name]["p50_ms"])

    opening = 1e3 * asked["open"]["cpu_s"]
    must, aim = (6, 3) if large else (3, 1.5)
    return [
        Line("import, events a CPU second", events / taken["cpu_s"], 20_000, 40_000, ""),
        Line("import, events a second on the wall", events / taken["wall_s"], 20_000, 40_000, ""),
        Line("open", opening, 1000 if large else 200, 100, " ms", at_most=True),
        Line("recall p50, to that at 100,000", ratio("recall"), must, aim, " x", at_most=True),
        Line("context p50, to that at 100,000", ratio("context"), must, aim, " x", at_most=True),
        Line("first change and recall", changed["first_change_ms"], 10, 1, " ms", at_most=True),
    ]


def table(told: dict[str, Any], events: int) -> Iterator[str]:
    taken, asked, changed = told["import"], told["ask"], told["change"]
    for name, where in (
        *(("recall", asked), ("context", asked), ("add", changed), ("why", changed)),
        *(("advise", changed), ("end", changed), ("forget", changed)),
    ):
        found = where[name]
        yield f"{name:10} p50 {found['p50_ms']:9.2f} ms   p99 {found['p99_ms']:9.2f} ms"
    yield f"erase one      {changed['erase_s']:9.2f} s"
    if "as_of_s" in changed:
        yield f"as_of          {changed['as_of_s']:9.2f} s, {changed['as_of_mb']} MB of its own"
    disk = taken["record_bytes"] / events, taken["index_bytes"] / events
    yield f"disk       {disk[0]:.0f} bytes an event in the record, {disk[1]:.0f} in the index"
    yield (
        f"memory     {taken['peak_mb']:,} MB at the peak of the import; own pages"
        f" {asked['open_mb']:,} MB after opening, {asked['asked_mb']:,} MB after all questions"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--folder", type=Path, help="where parts are kept; removed without it")
    parser.add_argument("--part", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "at_scale.json")
    args = parser.parse_args()
    if args.part is not None:
        found = WORK[args.part](Drawn(args.events, args.dim), args.folder)
        (args.folder / f"{args.part}.json").write_text(json.dumps(found))
        return 0
    begun = time.perf_counter()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="cvx-at-scale-"))
    try:
        beside = parts(BESIDE, args.dim, folder / "beside")
        told = parts(args.events, args.dim, folder / "store")
    finally:
        if args.folder is None:
            shutil.rmtree(folder)
    reached = lines(told, beside, args.events)
    print(*reached, f"{BESIDE:,} events:", *table(beside, BESIDE), sep="\n")
    print(f"{args.events:,} events:", *table(told, args.events), sep="\n")
    print(f"took {(time.perf_counter() - begun) / 60:.0f} min, load {os.getloadavg()[0]:.0f}")
    title = f"Scale: a memory of {args.events:,} events, {args.dim} dimensions"
    figures = [line.figure() for line in reached]
    leave(args.out, title, "python -m benches.at_scale", figures, told=told, beside=beside)
    return 0


if __name__ == "__main__":
    sys.exit(main())
