"""Recall and time of cvx beside hnswlib, on the same vectors and queries, in one run.

Each library runs in a process of its own; the driver asks them in turn, round after round, and
compares medians of CPU time, one query a call, one thread. Quality stands beside every time.

    python benches/peers.py [--rounds 5] [--queries 1000] [--out runs/bench/peers.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
Matrix = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

K, M, EF_CONSTRUCTION, SEED = 10, 16, 200, 0
FRACTIONS = (0.5, 0.1, 0.01, 0.001)
EFS = (10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512)


def vectors() -> tuple[str, Matrix, Matrix]:
    """Name, base and queries: the real ones of CVX_DATA, or clusters made here."""
    folder = Path(os.environ.get("CVX_DATA") or ROOT.parent / "shared" / "data") / "ann"
    if (folder / "text_base_f16.npy").is_file():
        base = np.load(folder / "text_base_f16.npy").astype(np.float32)
        queries = np.load(folder / "text_q_f16.npy").astype(np.float32)
        return "text", normalised(base), normalised(queries)
    print(f"no real vectors in {folder} (set CVX_DATA): seeded clusters instead", flush=True)
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(400, 384))
    noisy = centres[rng.integers(0, 400, 21_000)] + 0.9 * rng.normal(size=(21_000, 384))
    rows = normalised(noisy.astype(np.float32))
    return "clusters", rows[:20_000], rows[20_000:]


def normalised(rows: Matrix) -> Matrix:
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def accepted(rows: int, fraction: float, kind: str) -> npt.NDArray[np.bool_]:
    """Rows that a filter accepts: at random, or a window in time (rows are in time order)."""
    rng = np.random.default_rng([SEED, int(1 / fraction)])
    count = max(int(rows * fraction), 1)
    mask = np.zeros(rows, np.bool_)
    if kind == "window":
        start = int(rng.integers(0, rows - count + 1))
        mask[start : start + count] = True
    else:
        mask[rng.permutation(rows)[:count]] = True
    return mask


def tag(fraction: float) -> str:
    return f"one of {1 / fraction:g}"


class Cvx:
    """Ours, by its public calls."""

    def __init__(self, base: Matrix) -> None:
        from cvx.index import TemporalIndex

        rows = len(base)
        tags: list[list[str]] = [[] for _ in range(rows)]
        self.windows = {}
        for fraction in FRACTIONS:
            for row in np.flatnonzero(accepted(rows, fraction, "random")):
                tags[row].append(tag(fraction))
            window = np.flatnonzero(accepted(rows, fraction, "window"))
            self.windows[fraction] = int(window[0]), int(window[-1]) + 1
        self.index = TemporalIndex(base.shape[1], "cosine", M, EF_CONSTRUCTION, SEED)
        entities, times = np.arange(rows) // 50, np.arange(rows)
        self.build_s = cpu(
            lambda: self.index.bulk_insert(entities, times, base, tags=tags, threads=1)
        )

    def search(self, query: Matrix, ef: int | None) -> Ids:
        return self.index.search(query, K, ef=ef)[0]

    def filtered(self, query: Matrix, ef: int | None, fraction: float, kind: str) -> Ids:
        from cvx.types import Filter

        if kind == "window":
            since, until = self.windows[fraction]
            where = Filter(since=since, until=until)
        else:
            where = Filter(tags=[tag(fraction)])
        return self.index.search(query, K, ef=ef, where=where)[0]


class Hnswlib:
    """hnswlib, by its Python module."""

    def __init__(self, base: Matrix) -> None:
        import hnswlib  # type: ignore[import-untyped]

        rows, dim = base.shape
        self.masks = {
            (f, kind): accepted(rows, f, kind).tolist() for f in FRACTIONS for kind in KINDS
        }
        self.index = hnswlib.Index(space="cosine", dim=dim)
        self.index.init_index(rows, ef_construction=EF_CONSTRUCTION, M=M, random_seed=SEED)
        self.index.set_num_threads(1)
        self.build_s = cpu(lambda: self.index.add_items(base, np.arange(rows), num_threads=1))

    def search(self, query: Matrix, ef: int | None) -> Ids:
        if ef is not None:
            self.index.set_ef(ef)
        return np.asarray(self.index.knn_query(query, K, num_threads=1)[0][0], np.int64)

    def filtered(self, query: Matrix, ef: int | None, fraction: float, kind: str) -> Ids:
        if ef is not None:
            self.index.set_ef(ef)
        mask = self.masks[fraction, kind]
        try:
            found = self.index.knn_query(query, K, num_threads=1, filter=mask.__getitem__)[0][0]
        except RuntimeError:
            # It raises where it finds fewer than k.
            return np.full(K, -1)
        return np.asarray(found, np.int64)


KINDS = ("random", "window")
LIBRARIES: dict[str, Callable[[Matrix], Any]] = {"cvx": Cvx, "hnswlib": Hnswlib}


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def serve(name: str, pipe: Connection) -> None:
    """Build one library and answer requests until the driver hangs up."""
    _, base, queries = vectors()
    library = LIBRARIES[name](base)
    pipe.send(library.build_s)
    while (request := pipe.recv()) is not None:
        count, ef, *condition = request
        ids = np.full((count, K), -1, np.int64)
        times = np.empty(count)
        call = library.filtered if condition else library.search
        for row in range(count):
            start = time.process_time_ns()
            found = call(queries[row], ef, *condition)
            times[row] = time.process_time_ns() - start
            ids[row, : len(found)] = found
        pipe.send((ids, float(times.mean()) / 1e3, float(np.percentile(times, 99)) / 1e3))


class Driver:
    """The libraries behind their pipes, and the truth to hold them to."""

    def __init__(self, base: Matrix, queries: Matrix, rounds: int) -> None:
        self.base, self.queries, self.rounds = base, queries, rounds
        self.pipes: dict[str, Connection] = {}
        context = multiprocessing.get_context("spawn")
        self.processes = []
        for name in LIBRARIES:
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(name, theirs), daemon=True)
            process.start()
            self.processes.append(process)
            self.pipes[name] = ours
            # One after the other: a build must not slow down the other one.
            if not ours.poll(600):
                raise TimeoutError(f"{name} did not build its index within ten minutes")
            setattr(self, f"build_{name}", ours.recv())

    def truth(self, count: int, mask: npt.NDArray[np.bool_] | None = None) -> Ids:
        similarity = self.queries[:count] @ self.base.T
        if mask is not None:
            similarity[:, ~mask] = -np.inf
        best = np.argsort(-similarity, axis=1, kind="stable")[:, :K].astype(np.int64)
        best[np.take_along_axis(similarity, best, 1) == -np.inf] = -2
        return best

    def ask(self, name: str, *request: object) -> tuple[Ids, float, float]:
        self.pipes[name].send(request)
        answer: tuple[Ids, float, float] = self.pipes[name].recv()
        return answer

    def recall(self, ids: Ids, truth: Ids) -> float:
        hits = sum(len(np.intersect1d(a, b)) for a, b in zip(ids, truth, strict=True))
        return hits / int((truth >= 0).sum())

    def smallest_ef(self, name: str, target: float, truth: Ids, *condition: object) -> int | None:
        for ef in EFS:
            if self.recall(self.ask(name, len(truth), ef, *condition)[0], truth) >= target:
                return ef
        return None

    def compare(
        self, label: str, efs: dict[str, int | None], truth: Ids, *condition: object
    ) -> dict[str, Any]:
        """Medians over rounds in turn, each library at the ef given for it."""
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in LIBRARIES}
        row: dict[str, Any] = {"measure": label}
        for _ in range(self.rounds):
            for name in LIBRARIES:
                ids, mean, p99 = self.ask(name, len(truth), efs[name], *condition)
                runs[name].append((mean, p99))
                row[f"{name}_recall"] = round(self.recall(ids, truth), 4)
        for name in LIBRARIES:
            row[f"{name}_us"] = round(median(mean for mean, _ in runs[name]), 2)
            row[f"{name}_p99_us"] = round(median(p99 for _, p99 in runs[name]), 2)
            row[f"{name}_ef"] = efs[name]
        row["speed"] = round(row["hnswlib_us"] / row["cvx_us"], 3)
        return row

    def close(self) -> None:
        for pipe in self.pipes.values():
            pipe.send(None)
        for process in self.processes:
            process.join(10)


def show(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'':26}{'cvx':>28}{'hnswlib':>36}{'speed':>15}")
    header = f"{'recall@10':>12}{'us/query':>10}{'p99':>8}{'ef':>5}"
    print(f"{'':20}{header}{header}   hnswlib/cvx")
    for row in rows:
        cells = "".join(
            f"{row[f'{name}_recall']:>12.4f}{row[f'{name}_us']:>10.1f}"
            f"{row[f'{name}_p99_us']:>8.0f}{row[f'{name}_ef'] or '-':>5}"
            for name in LIBRARIES
        )
        print(f"{row['measure']:20}{cells}{row['speed']:>11.2f}x")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "peers.json")
    args = parser.parse_args()

    name, base, queries = vectors()
    count = min(args.queries, len(queries))
    few = min(count, 200)
    print(
        f"{name}: n={len(base):,} dim={base.shape[1]} queries={count} k={K} M={M} "
        f"efC={EF_CONSTRUCTION} seed={SEED}; CPU time, one thread, one query a call",
        flush=True,
    )
    driver = Driver(base, queries, args.rounds)
    builds = {library: round(getattr(driver, f"build_{library}"), 2) for library in LIBRARIES}
    print("build, CPU s: " + ", ".join(f"{n} {s}" for n, s in builds.items()), flush=True)

    truth = driver.truth(count)
    rows = [driver.compare("each one's default", dict.fromkeys(LIBRARIES), truth)]
    for target in (0.95, 0.99):
        efs = {library: driver.smallest_ef(library, target, truth) for library in LIBRARIES}
        rows.append(driver.compare(f"recall {target}", efs, truth))
    for kind in KINDS:
        for fraction in FRACTIONS:
            truth = driver.truth(few, accepted(len(base), fraction, kind))
            efs = {
                "cvx": None,
                "hnswlib": driver.smallest_ef("hnswlib", 0.95, truth, fraction, kind),
            }
            rows.append(driver.compare(f"{kind} {fraction:.1%}", efs, truth, fraction, kind))
    driver.close()
    show(rows)

    args.out.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "data": name,
        "n": len(base),
        "dim": base.shape[1],
        "k": K,
        "m": M,
        "ef_construction": EF_CONSTRUCTION,
        "seed": SEED,
        "rounds": args.rounds,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "build_cpu_s": builds,
        "rows": rows,
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nfilters: cvx at its default ef, hnswlib at its smallest that reaches .95\n{args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
