"""Many threads at one index: readers beside each other, writers in between, no panic across."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cvx.errors import InternalError
from cvx.index import RawIndex
from tests.index_twin import panic


def test_searches_beside_inserts_see_whole_nodes() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 8)).astype(np.float32)
    index = RawIndex(8, exact_below=0)
    index.bulk_insert([0] * 200, range(200), rows[:200], actions=["go"] * 200)
    done = threading.Event()

    def write() -> None:
        try:
            for n in range(200, 1200):
                index.insert(n % 7, n, rows[n], action="go")
                if n % 50 == 0:
                    index.delete(n - 60)
        finally:
            done.set()

    def read(worker: int) -> int:
        asked = 0
        while not done.is_set() or asked == 0:
            for hit in index.causal_search(rows[(worker + asked) % 200], 5, 2):
                assert hit.action == "go"
                assert all(s.entity_id == hit.entity_id for s in hit.predecessors)
            asked += 1
        return asked

    with ThreadPoolExecutor(4) as pool:
        writer = pool.submit(write)
        readers = [pool.submit(read, worker) for worker in range(3)]
        writer.result()
        assert all(reader.result() > 0 for reader in readers)
    assert len(index) == 1180
    assert [s.timestamp for s in index.trajectory(3)] == sorted(
        s.timestamp for s in index.trajectory(3)
    )


def test_searches_beside_changed_vectors_see_each_node_as_it_was_or_is() -> None:
    rows = np.random.default_rng(3).normal(size=(400, 8)).astype(np.float32)
    index = RawIndex(8, metric="l2", exact_below=0)
    index.bulk_insert(vectors=rows[:200])
    done = threading.Event()

    def write() -> None:
        try:
            for node in range(200):
                index.set_vector(node, rows[200 + node])
        finally:
            done.set()

    def read(worker: int) -> None:
        asked = worker
        while not done.is_set():
            ids, distances = index.search(rows[asked % 200], 3)
            assert len(set(ids.tolist())) == 3
            either = np.stack([rows[ids], rows[ids + 200]]) - rows[asked % 200]
            apart = np.abs((either**2).sum(axis=2) - distances).min(axis=0)
            assert (apart < 1e-4).all()
            asked += 1

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(write), pool.submit(read, 0), pool.submit(read, 70)]:
            future.result()
    index.validate()
    assert index.search(rows[200:], 1)[0][:, 0].tolist() == list(range(200))


def test_searches_of_threads_agree_with_searches_alone() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2000, 8)).astype(np.float32)
    index = RawIndex(8, exact_below=0)
    index.bulk_insert(np.zeros(2000, int), np.arange(2000), rows)
    alone = [index.search(row, 10)[0].tolist() for row in rows[:200]]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda row: index.search(row, 10)[0].tolist(), rows[:200]))
    assert together == alone


def test_python_goes_on_while_the_index_works() -> None:
    batch = 3000
    rows = np.random.default_rng(2).normal(size=(batch, 32)).astype(np.float32)
    index = RawIndex(32)
    seen = {0}
    with ThreadPoolExecutor(1) as pool:
        # Only who runs while a batch is under way sees a part of it: with the GIL held, nobody.
        for _ in range(20):
            work = pool.submit(index.bulk_insert, [0] * batch, range(batch), rows, threads=1)
            while not work.done():
                seen.add(len(index) % batch)
            work.result()
            if seen != {0}:
                break
    assert seen != {0}


@pytest.mark.filterwarnings("ignore")
def test_a_panic_inside_is_an_error_outside(capfd: pytest.CaptureFixture[str]) -> None:
    index = RawIndex(2)
    index.insert(1, 1, [1, 0])
    with pytest.raises(InternalError, match=r"on purpose.*report"):
        panic(index, changing=False)
    assert index.search([1, 0])[0].tolist() == [0]
    with pytest.raises(InternalError, match="on purpose"):
        panic(index, changing=True)
    calls: list[Callable[[], object]] = [
        lambda: index.search([1, 0]),
        lambda: index.insert(1, 2, [1, 0]),
        lambda: len(index),
    ]
    for call in calls:
        with pytest.raises(InternalError, match="load"):
            call()
    assert "on purpose" in capfd.readouterr().err


def test_a_batch_is_what_its_arrays_held_at_the_call() -> None:
    batch = 2000
    given = np.random.default_rng(3).normal(size=(batch, 32)).astype(np.float32)
    index = RawIndex(32)
    spoilt_halfway = False
    with ThreadPoolExecutor(1) as pool:
        # Spoilt once some rows are in and others are not, which no pause could make sure of.
        for first in range(0, 20 * batch, batch):
            rows = given.copy()
            work = pool.submit(index.bulk_insert, [0] * batch, range(batch), rows, threads=1)
            while not work.done() and not first < len(index) < first + batch:
                pass
            spoilt_halfway = not work.done()
            rows[:] = np.nan
            stored = [np.asarray(index.vector(node)) for node in work.result().tolist()]
            np.testing.assert_array_equal(stored, given)
            if spoilt_halfway:
                break
    assert spoilt_halfway
    index.validate()


def test_a_batch_of_queries_lets_changes_in_between() -> None:
    index = RawIndex(2)
    index.bulk_insert([0] * 200, range(200), np.linspace([1, 1], [2, 1], 200))
    queries = np.tile(np.array([0, 1], np.float32), (4_000, 1))
    answers: set[int] = set()
    with ThreadPoolExecutor(1) as pool:
        # Each node is nearer to the query than those before it: two answers, two states.
        for _ in range(20):
            batch = pool.submit(index.search, queries, 1)
            while not batch.done():
                index.insert(1, len(index), [1, len(index)])
            answers = set(batch.result()[0].ravel().tolist())
            if len(answers) > 1:
                break
    assert len(answers) > 1
