"""Nodes going in and out: columns, timelines, deletion, and all-or-nothing batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.index import RawIndex
from cvx.types import Filter, Step
from tests.index_twin import Twin, assert_nearest, built, twins, vectors


@pytest.mark.requirement("V2")
@given(twins(), st.booleans())
def test_every_column_comes_back(twin: Twin, bulk: bool) -> None:
    index = built(twin, bulk=bulk)
    assert len(index) == len(twin.live())
    for n in twin.live():
        row = twin.rows[n]
        assert index.step(n) == Step(n, row.entity, row.timestamp, row.action, row.reward)
        assert index.reward(n) == row.reward
        assert index.namespace(n) == row.namespace
        assert index.tags(n) == row.tags
        assert index.recallable(n) == row.recallable
        vector = index.vector(n)
        if row.vector is None:
            assert vector is None
        else:
            assert vector is not None
            assert vector.tolist() == row.vector.tolist()


@pytest.mark.requirement("V2", "V19")
@given(
    twins(),
    st.none() | st.integers(-1, 9),
    st.none() | st.integers(-1, 9),
    st.sampled_from(["", "a"]),
)
def test_a_trajectory_is_in_time_order_however_events_arrived(
    twin: Twin, since: int | None, until: int | None, namespace: str
) -> None:
    index = built(twin)
    for entity in {row.entity for row in twin.rows}:
        line = twin.timeline(namespace, entity)
        if not line:
            with pytest.raises(UnknownError, match=str(entity)):
                index.trajectory(entity, namespace=namespace)
        elif since is not None and until is not None and since >= until:
            with pytest.raises(InvalidInputError, match=f"{since}.*{until}"):
                index.trajectory(entity, since, until, namespace=namespace)
        else:
            expected = [
                n
                for n in line
                if (since is None or twin.rows[n].timestamp >= since)
                and (until is None or twin.rows[n].timestamp < until)
            ]
            steps = index.trajectory(entity, since, until, namespace=namespace)
            assert [step.node_id for step in steps] == expected
            assert [step.action for step in steps] == [twin.rows[n].action for n in expected]


@given(twins(), st.integers(0, 4))
def test_neighbours_in_time_are_those_of_the_timeline(twin: Twin, n: int) -> None:
    index = built(twin)
    for node in twin.live():
        before, after = twin.around(node)
        found = [step.node_id for step in index.predecessors(node, n)]
        assert found == (before[-n:] if n else [])
        assert [step.node_id for step in index.successors(node, n)] == after[:n]


@pytest.mark.requirement("V2")
def test_a_reward_can_be_set_and_taken_away() -> None:
    index = RawIndex(2)
    node = index.insert(1, 1, [1, 0])
    assert index.reward(node) is None
    index.set_reward(node, 0.25)
    assert index.reward(node) == 0.25
    assert index.search([1, 0], where=Filter(min_reward=0.25))[0].tolist() == [node]
    index.set_reward(node, None)
    assert index.reward(node) is None
    assert index.search([1, 0], where=Filter(min_reward=0.0))[0].tolist() == []


@given(twins(), vectors(), st.data())
def test_what_was_deleted_is_gone_and_its_id_is_never_given_again(
    twin: Twin, query: list[int], data: st.DataObject
) -> None:
    index = built(twin)
    live = twin.live()
    gone = set(data.draw(st.sets(st.sampled_from(live)) if live else st.just(set())))
    index.delete(sorted(gone))
    twin.deleted |= gone
    twin.edges = {k: w for k, w in twin.edges.items() if not gone & {k[0], k[1]}}
    found = {(e.from_node, e.to_node, e.kind): e.weight for e in index.edges()}
    assert found == twin.edges
    assert len(index) == len(twin.live())
    ids, distances = index.search(query, 50)
    assert_nearest(twin, ids, distances, query, 50, None)
    for n in gone:
        assert n not in index
        with pytest.raises(UnknownError, match=str(n)):
            index.step(n)
    assert index.insert(1, 5, query) == len(twin.rows)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a"])), max_size=12),
    st.integers(0, 12),
)
def test_nodes_without_a_time_come_after_all_of_their_timeline(
    rows: list[tuple[int, str]], bulk: int
) -> None:
    index, latest = RawIndex(2), dict[tuple[int, str], int]()
    index.insert(1, 40, [1, 0], namespace="a")
    latest[1, "a"] = 40
    for entity, namespace in rows[bulk:]:
        index.insert(entity, vector=[1, 0], namespace=namespace)
    index.bulk_insert(
        [entity for entity, _ in rows[:bulk]],
        vectors=np.ones((len(rows[:bulk]), 2)),
        namespaces=[namespace for _, namespace in rows[:bulk]],
    )
    for node, row in enumerate(rows[bulk:] + rows[:bulk], 1):
        latest[row] = latest.get(row, -1) + 1
        assert (index.step(node).timestamp, index.step(node).entity_id) == (latest[row], row[0])


def test_vectors_alone_stand_on_one_timeline_in_the_order_of_insertion() -> None:
    index = RawIndex(2)
    assert index.bulk_insert(vectors=[[1, 0], [0, 1]]).tolist() == [0, 1]
    assert index.insert(vector=[1, 1]) == 2
    assert index.bulk_insert(timestamps=[9, 8], vectors=[None, None]).tolist() == [3, 4]
    assert [step.node_id for step in index.trajectory(0)] == [0, 1, 2, 4, 3]
    assert [step.timestamp for step in index.trajectory(0)] == [0, 1, 2, 8, 9]
    assert index.bulk_insert(vectors=[]).tolist() == []
    assert index.bulk_insert(vectors=[None]).tolist() == [5]
    last = 2**63 - 1
    index.insert(3, last, [1, 0])
    index.insert(3, vector=[1, 0])
    assert [step.timestamp for step in index.trajectory(3)] == [last, last]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda ix: ix.insert(), "vector is left out: give vector="),
        (lambda ix: ix.insert(1, 10), "vector is left out: give vector="),
        (lambda ix: ix.bulk_insert(), "vectors is left out: give vectors="),
        (lambda ix: ix.bulk_insert([1], [10]), "vectors is left out: give vectors="),
        (lambda ix: ix.insert([1.0, 0.0], vector=None), "a vector is given as vector="),
        (lambda ix: ix.bulk_insert(np.ones((2, 2)), vectors=None), "vectors are given as vectors="),
        (lambda ix: ix.bulk_insert(vectors=[1.0, 0.0]), "one vector: pass a matrix"),
        (lambda ix: ix.bulk_insert([1], vectors=np.ones((2, 2))), "vectors has 2 rows"),
        (lambda ix: ix.bulk_insert(timestamps=[1], vectors=np.ones((2, 2))), "vectors has 2 rows"),
        (lambda ix: ix.bulk_insert(vectors=np.ones((2, 2)), rewards=[1.0]), "rewards has 1 rows"),
        (lambda ix: ix.bulk_insert(vectors=np.ones((2, 2)), task_types=["a"]), "task_types has 1"),
    ],
)
def test_what_is_given_in_the_wrong_place_is_told_where_it_goes(
    call: Callable[[RawIndex], object], named: str
) -> None:
    index = RawIndex(2)
    with pytest.raises(InvalidInputError, match=named):
        call(index)
    assert len(index) == 0


def test_timelines_close_over_a_deleted_node() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1, 1], [10, 20, 30], np.ones((3, 2)))
    index.delete(1)
    assert [step.node_id for step in index.successors(0, 5)] == [2]
    assert [edge.to_node for edge in index.typed_neighbors(0, "temporal")] == [2]
    assert [step.node_id for step in index.trajectory(1)] == [0, 2]


def test_a_deletion_that_names_an_unknown_node_deletes_nothing() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1], [10, 20], np.ones((2, 2)))
    for nodes in ([0, 2], [0, -1], [1, 2**40]):
        with pytest.raises(UnknownError):
            index.delete(nodes)
        assert len(index) == 2
    index.delete([0])
    with pytest.raises(UnknownError, match="0"):
        index.delete([0])
    index.delete([])
    assert len(index) == 1


@pytest.mark.parametrize(
    "spoilt",
    [
        {"vectors": [[1, 0], [np.nan, 0]]},
        {"vectors": [[1, 0], [0, 0]]},
        {"vectors": [[1, 0, 0], [0, 0, 1]]},
        {"rewards": [0.5, 1.5]},
        {"rewards": [0.5]},
        {"entity_ids": [1, -1]},
        {"entity_ids": [1]},
        {"timestamps": [1]},
        {"actions": ["go"]},
        {"tags": [{"x"}]},
        {"namespaces": ["a"]},
        {"recallable": [True]},
    ],
    ids=str,
)
def test_a_batch_is_inserted_whole_or_not_at_all(spoilt: dict[str, Any]) -> None:
    index = RawIndex(2)
    columns: dict[str, Any] = {"entity_ids": [1, 1], "timestamps": [1, 2], "vectors": np.eye(2)}
    with pytest.raises(ValueError, match=r"."):
        index.bulk_insert(**(columns | spoilt))
    assert len(index) == 0
    assert index.bulk_insert(**columns).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("column", "refused"),
    [
        ({"entity_ids": np.array([1, -1])}, r"entity_ids\[1\] is -1.*from 0"),
        ({"entity_ids": [1, 2**64]}, r"entity_ids\[1\] is 18446744073709551616.*2\*\*64 - 1"),
        ({"entity_ids": [True, False]}, r"entity_ids is \[True, False\].*integers"),
        ({"entity_ids": [[1], [2]]}, r"entity_ids is \[\[1\], \[2\]\].*a row"),
        ({"entity_ids": [[1], [2, 3]]}, r"entity_ids is \[\[1\], \[2, 3\]\].*a row"),
        ({"entity_ids": {1, 2}}, r"entity_ids is {1, 2}.*a row"),
        ({"entity_ids": [1, None]}, r"entity_ids\[1\] is None.*an int"),
        (
            {"timestamps": np.array([2**63, 1], np.uint64)},
            r"timestamps\[0\] is 9223372036854775808.*64 bits",
        ),
        ({"timestamps": [1.5, 2.0]}, r"timestamps is \[1.5, 2.0\].*integers"),
    ],
    ids=str,
)
def test_a_column_of_no_such_numbers_is_told_by_row_and_value(
    column: dict[str, Any], refused: str
) -> None:
    index = RawIndex(2)
    columns: dict[str, Any] = {"entity_ids": [1, 1], "timestamps": [1, 2], "vectors": None}
    with pytest.raises(InvalidInputError, match=refused):
        index.bulk_insert(**(columns | column))
    assert len(index) == 0


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, np.uint64, object])
def test_columns_are_whole_numbers_of_any_type_and_stride(dtype: type) -> None:
    index = RawIndex(2)
    numbers: np.ndarray[Any, Any] = np.arange(10).astype(dtype)
    index.bulk_insert(numbers[::3], numbers[::-3], None)
    steps = [index.step(node) for node in range(4)]
    assert [step.entity_id for step in steps] == [0, 3, 6, 9]
    assert [step.timestamp for step in steps] == [9, 6, 3, 0]
    assert index.bulk_insert([], [], []).tolist() == []


@given(twins(max_rows=12))
def test_one_by_one_and_in_bulk_are_the_same(twin: Twin) -> None:
    bulk, single = built(twin, bulk=True), built(twin, bulk=False)
    # Epochs are counted as the index grows, and one by one it grows more often; bytes are of
    # what is reserved.
    apart = {"region_epoch": 0, "bytes": 0}
    assert bulk.stats() | apart == single.stats() | apart
    for n in twin.live():
        assert bulk.step(n) == single.step(n)
    query = [1, 2, 3, 1]
    assert bulk.search(query, 30)[0].tolist() == single.search(query, 30)[0].tolist()


def test_a_node_without_a_vector_holds_its_place_and_is_not_found() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1, 1], [1, 2, 3], [[1, 0], None, [0, 1]])
    assert index.search([1, 0], 5)[0].tolist() == [0, 2]
    hit = index.causal_search([1, 0], 1, 2)[0]
    assert [step.node_id for step in hit.successors] == [1, 2]
    index.add_edge(0, 1, "caused")
    index.add_edge(1, 2, "caused")
    reached = index.graph_search([1, 0], 5, {"caused": 1.0})
    assert [(h.node, len(h.path)) for h in reached] == [(0, 0), (2, 2)]


def test_compaction_gives_back_what_deleted_nodes_took_and_every_id_stands() -> None:
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(600, 16)).astype(np.float32)
    index = RawIndex(16)
    index.bulk_insert(np.arange(600) % 7, np.arange(600), rows)
    index.add_edge(1, 599, "caused", 0.5)
    index.delete(np.arange(0, 600, 2))
    before = [index.search(row, 5)[0].tolist() for row in rows[1:100:2]]
    bytes_before = index.stats()["bytes"]
    index.compact()
    index.validate()
    assert [index.search(row, 5)[0].tolist() for row in rows[1:100:2]] == before
    assert index.stats()["deleted_rows"] == 0
    assert index.stats()["bytes"] < 0.6 * bytes_before
    assert [edge.to_node for edge in index.typed_neighbors(1, namespaces=[""])][-1] == 599
    assert index.step(599).timestamp == 599
    assert 0 not in index
    assert index.insert(1, 600, rows[0]) == 600


def test_whatever_changes_nodes_is_counted_as_a_change_and_nothing_else_is() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1, 2], [10, 20, 30], [[1, 0], [0, 1], [1, 1]])
    changes: list[Callable[[], object]] = [
        lambda: index.insert(1, 40, [2, 1]),
        lambda: index.insert(1, 50, None),
        lambda: index.delete([0, 1]),
        lambda: index.set_reward(2, 0.5),
        lambda: index.set_recallable(2, False),
        lambda: setattr(index, "center", "mean"),
    ]
    for change in changes:
        before = index.changes
        change()
        assert index.changes > before
    before = index.changes
    index.search([1, 0])
    index.add_edge(2, 3, "caused")
    index.compact()
    with pytest.raises(UnknownError):
        index.delete(99)
    assert index.changes == before
    assert index.deletions == 2
