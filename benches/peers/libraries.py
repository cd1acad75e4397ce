"""Adapters: each library behind the same few calls.

Every one has `build_s` in CPU seconds and `note`, the parameters it runs with. A search returns
node ids, nearest first; what a library cannot do, it lacks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from benches.peers.data import (
    EF_CONSTRUCTION,
    FRACTIONS,
    SEED,
    Data,
    Ids,
    K,
    M,
    Mask,
    Matrix,
    tag,
)


class Library(Protocol):
    """What the driver asks of each."""

    build_s: float
    note: str

    def search(self, query: Matrix, ef: int) -> Ids: ...
    def batch(self, queries: Matrix, ef: int) -> Ids: ...


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Cvx:
    """Ours."""

    def __init__(self, data: Data) -> None:
        from cvx.index import RawIndex

        base = data.base
        rows = len(base)
        tags: list[list[str]] = [[] for _ in range(rows)]
        far = [("far", fraction) for fraction in (0.5, 0.1, 0.01)]
        for kind, fraction in [*(("random", fraction) for fraction in FRACTIONS), *far]:
            for row in np.flatnonzero(data.accepted(kind, fraction)):
                tags[row].append(f"{kind} {tag(fraction)}")
        self.data = data
        self.index = RawIndex(base.shape[1], "cosine", M, EF_CONSTRUCTION, SEED)
        owners, times = np.arange(rows) // 50, np.arange(rows)
        self.build_s = cpu(
            lambda: self.index.bulk_insert(owners, times, base, tags=tags, threads=1)
        )
        self.note = f"M={M} efC={EF_CONSTRUCTION} kernels={self.index.stats()['kernels']}"

    def search(self, query: Matrix, ef: int) -> Ids:
        return self.index.search(query, K, ef=ef)[0]

    def batch(self, queries: Matrix, ef: int) -> Ids:
        return self.index.search(queries, K, ef=ef)[0]

    def filtered(self, query: Matrix, ef: int, kind: str, fraction: float) -> Ids:
        """Search under a filter that is made anew for the call."""
        from cvx.types import Filter

        if kind == "window":
            since, until = self.data.window(fraction)
            where = Filter(since=since, until=until)
        else:
            where = Filter(tags=[f"{kind} {tag(fraction)}"])
        return self.index.search(query, K, ef=ef, where=where)[0]


class Opened(Cvx):
    """Ours, as another process built and saved it."""

    def __init__(self, data: Data, path: str) -> None:
        from cvx.index import RawIndex

        self.data = data
        self.build_s = cpu(lambda: setattr(self, "index", RawIndex.load(path, mmap=True)))
        self.note = f"opened, not built, kernels={self.index.stats()['kernels']}"


class Hnswlib:
    """hnswlib."""

    def __init__(self, data: Data, m: int = M) -> None:
        import hnswlib  # type: ignore[import-untyped]

        rows, dim = data.base.shape
        self.data = data
        self.masks: dict[tuple[str, float], list[bool]] = {}
        self.index = hnswlib.Index(space="cosine", dim=dim)
        self.index.init_index(rows, ef_construction=EF_CONSTRUCTION, M=m, random_seed=SEED)
        self.index.set_num_threads(1)
        self.build_s = cpu(lambda: self.index.add_items(data.base, np.arange(rows), num_threads=1))
        self.note = f"{version('hnswlib')} M={m} efC={EF_CONSTRUCTION}, as built by pip"

    def search(self, query: Matrix, ef: int) -> Ids:
        self.index.set_ef(ef)
        return np.asarray(self.index.knn_query(query, K, num_threads=1)[0][0], np.int64)

    def batch(self, queries: Matrix, ef: int) -> Ids:
        self.index.set_ef(ef)
        return np.asarray(self.index.knn_query(queries, K, num_threads=1)[0], np.int64)

    def filtered(self, query: Matrix, ef: int, kind: str, fraction: float) -> Ids:
        """Search under a list of flags that is kept, its cost not counted."""
        key = (kind, fraction)
        if key not in self.masks:
            self.masks[key] = self.data.accepted(kind, fraction).tolist()
        self.index.set_ef(ef)
        try:
            accepts = self.masks[key].__getitem__
            found = self.index.knn_query(query, K, num_threads=1, filter=accepts)[0][0]
        except RuntimeError:  # It found fewer than K.
            return np.full(K, -1, np.int64)
        return np.asarray(found, np.int64)


class Faiss:
    """faiss, its HNSW over rows of eight bits."""

    def __init__(self, data: Data) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        # The stubs know only one of the constructors.
        made: Any = faiss.IndexHNSWSQ
        kind, inner = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        self.index = made(data.base.shape[1], kind, M, inner)
        self.index.hnsw.efConstruction = EF_CONSTRUCTION

        def build() -> None:
            self.index.train(data.base)
            self.index.add(data.base)

        self.build_s = cpu(build)
        self.note = f"{faiss.__version__} HNSW-SQ8 M={M} efC={EF_CONSTRUCTION}, as built by pip"

    def search(self, query: Matrix, ef: int) -> Ids:
        found: Ids = self.batch(query[None], ef)[0]
        return found

    def batch(self, queries: Matrix, ef: int) -> Ids:
        self.index.hnsw.efSearch = ef
        found: Ids = np.asarray(self.index.search(queries, K)[1], np.int64)
        return found


class Usearch:
    """usearch."""

    def __init__(self, data: Data, dtype: str = "f32") -> None:
        import usearch
        from usearch.index import Index

        rows, dim = data.base.shape
        self.index: Any = Index(
            ndim=dim, metric="cos", dtype=dtype, connectivity=M, expansion_add=EF_CONSTRUCTION
        )
        self.build_s = cpu(lambda: self.index.add(np.arange(rows), data.base, threads=1))
        self.note = f"{usearch.__version__} {dtype} M={M} efC={EF_CONSTRUCTION}, as built by pip"

    def search(self, query: Matrix, ef: int) -> Ids:
        self.index.expansion_search = ef
        return np.asarray(self.index.search(query, K, threads=1).keys, np.int64)

    def batch(self, queries: Matrix, ef: int) -> Ids:
        self.index.expansion_search = ef
        return np.asarray(self.index.search(queries, K, threads=1).keys, np.int64)


class Numpy:
    """A matrix product over the accepted rows; its recall is 1."""

    def __init__(self, data: Data) -> None:
        self.data, self.build_s, self.note = data, 0.0, f"{np.__version__}, one BLAS thread"
        self.rows: dict[tuple[str, float], tuple[Matrix, Ids]] = {}

    def search(self, query: Matrix, _ef: int) -> Ids:
        return self._best(query, self.data.base)

    def batch(self, queries: Matrix, _ef: int) -> Ids:
        return np.stack([self.search(query, _ef) for query in queries])

    def filtered(self, query: Matrix, _ef: int, kind: str, fraction: float) -> Ids:
        if kind == "window":
            start, end = self.data.window(fraction)
            return self._best(query, self.data.base[start:end]) + start
        key = (kind, fraction)
        if key not in self.rows:
            mask: Mask = self.data.accepted(kind, fraction)
            self.rows[key] = self.data.base[mask], np.flatnonzero(mask).astype(np.int64)
        rows, ids = self.rows[key]
        return ids[self._best(query, rows)]

    @staticmethod
    def _best(query: Matrix, rows: Matrix) -> Ids:
        similarity = rows @ query
        if len(rows) <= K:
            return np.argsort(-similarity)
        best = np.argpartition(-similarity, K)[:K]
        return best[np.argsort(-similarity[best])]


class Scan:
    """A bare exact scan: an index of the accepted rows alone, which compares with every one."""

    def __init__(self, data: Data) -> None:
        self.data, self.build_s, self.note = data, 0.0, "cvx, exact_below=n, accepted rows alone"
        self.indexes: dict[tuple[str, float], tuple[Any, Ids]] = {}

    def filtered(self, query: Matrix, _ef: int, kind: str, fraction: float) -> Ids:
        from cvx.index import RawIndex

        key = (kind, fraction)
        if key not in self.indexes:
            rows = np.flatnonzero(self.data.accepted(kind, fraction)).astype(np.int64)
            index = RawIndex(
                self.data.base.shape[1], "cosine", 4, 8, SEED, exact_below=len(rows) + 1
            )
            index.bulk_insert(np.arange(len(rows)), np.arange(len(rows)), self.data.base[rows])
            self.indexes[key] = index, rows
        index, rows = self.indexes[key]
        found: Ids = rows[index.search(query, K)[0]]
        return found


LIBRARIES: dict[str, Callable[[Data], Any]] = {
    "cvx": Cvx,
    "hnswlib": Hnswlib,
    "hnswlib 24": lambda data: Hnswlib(data, 24),
    "hnswlib 32": lambda data: Hnswlib(data, 32),
    "hnswlib 48": lambda data: Hnswlib(data, 48),
    "faiss": Faiss,
    "usearch f32": Usearch,
    "usearch bf16": lambda data: Usearch(data, "bf16"),
    "numpy": Numpy,
    "scan": Scan,
}
#: Instruction sets of cvx, slowest first.
PATHS = ("scalar", "avx2", "avx512")


def opened(path: str, snapshot: str) -> str:
    """Return the name of a library that opens a snapshot of ours with the kernels of a path."""
    return f"cvx {path} {snapshot}"


def made(name: str, data: Data) -> Any:
    """Build the library of that name."""
    if name.startswith("cvx "):
        _, path, snapshot = name.split(" ", 2)
        os.environ["CVX_CPU"] = path
        return Opened(data, snapshot)
    return LIBRARIES[name](data)
