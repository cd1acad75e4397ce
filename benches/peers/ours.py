"""Measurements of cvx alone: edges, time, opening, bytes."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benches.peers.data import EF_CONSTRUCTION, SEED, Ids, K, M, Matrix

EDGES, BOOST, HOPS = 8, 0.3, 2
KIND = "caused_success"


def per_call_us(work: Callable[[int], object], calls: int, rounds: int = 5) -> float:
    """Return the median of rounds, in microseconds of CPU time a call."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        for turn in range(calls):
            work(turn)
        spent.append((time.process_time() - start) / calls * 1e6)
    return median(spent)


def floor(library: Any) -> float:
    """Time of one search of ten rows."""
    from cvx.index import RawIndex

    base: Matrix = library.data.base[:10]
    tiny = RawIndex(base.shape[1])
    tiny.bulk_insert(np.arange(10), np.arange(10), base)
    query = library.data.queries[0]
    return per_call_us(lambda _: tiny.search(query, K), 5_000)


def memory(library: Any) -> dict[str, float]:
    """Bytes a vector: by the index's own count, rows in full precision apart."""
    rows, dim = library.data.base.shape
    stats = library.index.stats()
    # Timestamp and entity 8 each, reward, namespace, tags and action 4 each, flags 1, and the
    # entry in the order of time.
    columns = 8 + 8 + 4 * 4 + 1 + 16
    counted = stats["bytes"] / rows
    return {"hot": counted - 4 * dim + columns, "full_precision_rows": 4.0 * dim}


def opening(library: Any) -> float:
    """Milliseconds to open a saved index, its file in the page cache."""
    from cvx.index import RawIndex

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.cvx"
        library.index.save(path)
        RawIndex.load(path, mmap=True)
        return per_call_us(lambda _: RawIndex.load(path, mmap=True), 1, 9) / 1e3


def saved(library: Any, path: str) -> None:
    """Save the index, to be opened with other kernels."""
    library.index.save(path)


def threads(library: Any) -> dict[str, Any]:
    """Build at 1, 2 and 4 threads: CPU and wall seconds, and whether the files are the same."""
    from cvx.index import RawIndex

    base: Matrix = library.data.base
    nodes = np.arange(len(base))
    found: dict[str, Any] = {}
    digests = set()
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 2, 4):
            index = RawIndex(base.shape[1], "cosine", M, EF_CONSTRUCTION, SEED)
            wall, cpu = time.perf_counter(), time.process_time()
            index.bulk_insert(nodes // 50, nodes, base, threads=count)
            found[f"cpu_s at {count}"] = round(time.process_time() - cpu, 2)
            found[f"wall_s at {count}"] = round(time.perf_counter() - wall, 2)
            path = Path(folder) / f"{count}.cvx"
            index.save(path)
            digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
            path.unlink()
    found["identical"] = len(digests) == 1
    return found


def edges(library: Any) -> None:
    """Give every node its typed edges, the same in every run."""
    rows = len(library.data.base)
    rng = np.random.default_rng([SEED, EDGES])
    ends = rng.integers(0, rows, (rows, EDGES))
    weights = rng.random((rows, EDGES)).astype(np.float32)
    library.ends, library.weights = ends, weights
    for start in range(rows):
        for end, weight in zip(ends[start].tolist(), weights[start].tolist(), strict=True):
            if end != start:
                library.index.add_edge(start, end, KIND, weight)


def twin_of_graph_search(library: Any, query: Matrix, ef: int) -> Ids:
    """Every path of at most two edges from the ef truly nearest nodes, one by one."""
    similarity = library.data.base @ query
    near = np.argsort(-similarity)[:ef]
    gains: dict[int, float] = {}

    def walk(start: int, node: int, value: float, hops: int) -> None:
        # A later entry for the same two ends replaces the weight of an earlier one.
        out = dict(zip(library.ends[node].tolist(), library.weights[node].tolist(), strict=True))
        for end, weight in out.items():
            gained = value * BOOST * weight
            if end in (start, node) or gained <= 0:
                continue
            gains[end] = max(gains.get(end, 0.0), gained)
            if hops > 1:
                walk(start, end, gained, hops - 1)

    for node in near.tolist():
        walk(node, node, float(similarity[node]), HOPS)
    scores = {node: float(similarity[node]) for node in near.tolist()}
    for node, gain in gains.items():
        scores[node] = float(similarity[node]) + gain
    best = sorted(scores, key=lambda node: -scores[node])[:K]
    return np.array(best, np.int64)


def beside_plain(library: Any, ef: int, count: int) -> dict[str, float]:
    """Times of the searches that look around a hit, over that of plain search at the same width."""
    index, queries = library.index, library.data.queries
    boost = {KIND: BOOST}
    calls: dict[str, Callable[[int], object]] = {
        "plain": lambda turn: index.search(queries[turn], K, ef=ef),
        "graph": lambda turn: index.graph_search(
            queries[turn], K, edge_boost=boost, max_hops=HOPS, ef=ef
        ),
        "causal": lambda turn: index.causal_search(queries[turn], K, temporal_context=5, ef=ef),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(5):
        for name, call in calls.items():
            spent[name].append(per_call_us(call, count, 1))
    agreed = 0
    tested = min(count, 100)
    for turn in range(tested):
        hits = index.graph_search(queries[turn], K, edge_boost=boost, max_hops=HOPS, ef=ef)
        twin = twin_of_graph_search(library, queries[turn], ef)
        agreed += len(np.intersect1d([hit.node for hit in hits], twin))
    plain = median(spent["plain"])
    return {
        "plain_us": plain,
        "graph": median(spent["graph"]) / plain,
        "causal": median(spent["causal"]) / plain,
        "agreement": agreed / (tested * K),
    }
