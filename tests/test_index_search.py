"""Plain search: what is nearest, in which shape, at which metric and size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.index import RawIndex
from cvx.types import Filter
from tests.index_twin import DIM, Twin, assert_nearest, built, filters, twins, vectors


@pytest.mark.requirement("V19", "X14")
@given(twins(), vectors(), st.integers(1, 30), st.booleans())
def test_search_returns_the_nearest_by_distance(
    twin: Twin, query: list[int], k: int, bulk: bool
) -> None:
    index = built(twin, bulk=bulk)
    ids, distances = index.search(query, k)
    assert ids.dtype == np.int64
    assert distances.dtype == np.float32
    assert_nearest(twin, ids, distances, query, k, None)


@given(twins(max_rows=40), vectors(), st.integers(1, 5), filters())
def test_the_walk_over_a_small_graph_finds_what_a_scan_finds(
    twin: Twin, query: list[int], k: int, where: Filter
) -> None:
    index = built(twin, exact_below=0)
    ids, distances = index.search(query, k, ef=64, where=where)
    assert_nearest(twin, ids, distances, query, k, where)


@given(twins(), st.lists(vectors(), max_size=5), st.integers(1, 30))
def test_several_queries_are_answered_as_each_alone_and_padded(
    twin: Twin, queries: list[list[int]], k: int
) -> None:
    index = built(twin)
    matrix = np.asarray(queries, np.float32).reshape(-1, DIM)
    ids, distances = index.search(matrix, k)
    assert ids.shape == distances.shape == (len(queries), k)
    for row, query in enumerate(queries):
        alone, near = index.search(query, k)
        assert ids[row, : len(alone)].tolist() == alone.tolist()
        assert distances[row, : len(alone)].tobytes() == near.tobytes()
        assert (ids[row, len(alone) :] == -1).all()
        assert np.isposinf(distances[row, len(alone) :]).all()


def test_an_empty_index_answers_with_nothing() -> None:
    index = RawIndex(3)
    ids, distances = index.search([1, 0, 0])
    assert (ids.shape, distances.shape) == ((0,), (0,))
    assert index.search(np.ones((2, 3)), 4)[0].tolist() == [[-1] * 4] * 2
    assert index.causal_search([1, 0, 0]) == []
    assert index.hybrid_search([1, 0, 0]) == []
    assert index.graph_search([1, 0, 0]) == []
    assert len(index) == 0


def test_an_empty_batch_is_an_empty_answer() -> None:
    index = RawIndex(3)
    assert index.bulk_insert([], [], []).shape == (0,)
    assert index.bulk_insert([], [], np.empty((0, 3))).dtype == np.int64
    assert index.search(np.empty((0, 3)), 7)[0].shape == (0, 7)


def test_more_than_there_is_brings_what_there_is() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 2], [1, 2], [[1, 0], [0, 1]])
    assert index.search([1, 0], 1_000_000)[0].tolist() == [0, 1]


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.float32])
def test_any_numeric_layout_is_accepted(metric: str, dtype: type) -> None:
    rng = np.random.default_rng(0)
    rows: npt.NDArray[Any] = rng.integers(-9, 9, (40, 6)).astype(dtype)
    rows[:, 0] = 5
    index = RawIndex(6, metric)
    index.bulk_insert(np.arange(40), np.arange(40), np.asfortranarray(rows))
    spread = np.repeat(rows, 2, axis=0)[::2]
    expected = index.search(rows.astype(np.float32), 5)
    for view in (np.asfortranarray(rows), spread, rows.tolist()):
        np.testing.assert_array_equal(index.search(view, 5)[0], expected[0])
    np.testing.assert_array_equal(index.search(rows[3][::-1][::-1], 5)[0], expected[0][3])


def test_the_same_input_gives_the_same_bytes_at_any_number_of_threads(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(3000, 16)).astype(np.float32)
    files = []
    for threads in (1, 2, 5):
        index = RawIndex(16, seed=7, exact_below=0)
        index.bulk_insert(np.arange(3000) % 50, np.arange(3000), rows, threads=threads)
        index.save(tmp_path / f"{threads}.cvx")
        files.append((tmp_path / f"{threads}.cvx").read_bytes())
    assert files[0] == files[1] == files[2]
    batch = index.search(rows[:50], 10, threads=1)
    again = index.search(rows[:50], 10, threads=3)
    assert batch[0].tobytes() == again[0].tobytes()
    assert batch[1].tobytes() == again[1].tobytes()


@pytest.mark.requirement("V19")
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "l2", "ip"]))
def test_the_walk_agrees_with_the_scan_on_clustered_vectors(seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(20, 12))
    rows = centres[rng.integers(0, 20, 1500)] + 0.4 * rng.normal(size=(1500, 12))
    if metric == "ip":
        # Norms of one size: inner products over arbitrary norms are no task for a graph.
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    walk, scan = (RawIndex(12, metric, exact_below=n) for n in (0, 10_000))
    for index in (walk, scan):
        index.bulk_insert(np.zeros(1400, int), np.arange(1400), rows[:1400])
    found, truth = walk.search(rows[1400:], 10)[0], scan.search(rows[1400:], 10)[0]
    agreed = sum(len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True))
    assert agreed / truth.size >= 0.95
