"""Changes of what is stored: vectors and tags of nodes, and the list of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import CvxError, InvalidInputError, InvalidVectorError, UnknownError
from cvx.index import RawIndex
from cvx.types import Filter
from tests.index_twin import Twin, assert_nearest, built, twins, vectors

labels = st.frozensets(st.sampled_from(["x", "y", "new"]))


@pytest.mark.requirement("V2", "V19")
@given(twins(), st.data(), vectors(), st.booleans())
def test_after_any_changes_it_answers_as_if_it_had_been_built_so(
    twin: Twin, data: st.DataObject, query: list[int], exact: bool
) -> None:
    index = built(twin, exact_below=10_000 if exact else 0)
    live = st.sampled_from(twin.live() or [0])
    for node, vector, tags in data.draw(
        st.lists(st.tuples(live, st.none() | vectors(), labels), max_size=8 if twin.live() else 0)
    ):
        index.set_vector(node, vector)
        index.set_tags(node, tags)
        twin.rows[node].vector = None if vector is None else np.asarray(vector, np.float64)
        twin.rows[node].tags = tags
        index.validate()
    assert index.node_ids().tolist() == twin.live()
    for node in twin.live():
        kept, row = index.vector(node), twin.rows[node]
        assert (kept is None) == (row.vector is None)
        assert kept is None or row.vector is None or kept.tolist() == row.vector.tolist()
        assert index.tags(node) == row.tags
    for where in (None, Filter(tags="new"), Filter(tags=["x", "y"], namespaces=["", "a"])):
        plain = where and where._replace(tags=[where.tags] if where.tags == "new" else where.tags)
        ids, distances = index.search(query, 5, where=where)
        assert_nearest(twin, ids, distances, query, 5, plain)
    found = {hit.node: hit.score for hit in index.graph_search(query, 50, {"caused": 0.5}, ef=50)}
    assert found == pytest.approx(twin.graph(query, 50, {"caused": 0.5}, 2), abs=1e-5)
    scores = [hit.score for hit in index.hybrid_search(query, 50, 0.5)]
    assert scores == pytest.approx([score for score, _ in twin.hybrid(query, 0.5)], abs=1e-5)


def test_a_node_keeps_all_but_its_vector() -> None:
    index = RawIndex(2)
    index.bulk_insert(
        [7, 7, 7], [10, 20, 30], [[1, 0], [0, 1], [1, 1]], actions=["a", "b", "c"], tags=[["x"]] * 3
    )
    index.set_reward(1, 0.5)
    index.add_edge(0, 1, "caused", 0.5)
    for vector in ([1, 0.2], None, [0, -1]):
        index.set_vector(1, vector)
        assert [step.node_id for step in index.trajectory(7)] == [0, 1, 2]
        assert index.step(1) == (1, 7, 20, "b", 0.5)
        assert index.tags(1) == {"x"}
        assert [edge.to_node for edge in index.typed_neighbors(0, "caused")] == [1]
        assert (1 in index.search([0, 1], 3)[0].tolist()) == (vector is not None)
    assert index.insert(vector=[1, 1]) == 3


def test_a_changed_vector_is_that_of_a_copy_and_of_a_file_too(tmp_path: object) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(500, 8)).astype(np.float32)
    index = RawIndex(8, m=2, ef_construction=20, exact_below=0)
    index.bulk_insert(vectors=[None if n % 7 == 0 else row for n, row in enumerate(rows)])
    # In no order, so that blocks of links do not lie in the order of nodes either.
    for node in rng.permutation(500)[:200].tolist():
        index.set_vector(node, rows[-1 - node])
    index.validate()
    path = f"{tmp_path}/changed.cvx"
    index.save(path)
    for verify in (False, True):
        loaded = RawIndex.load(path, verify=verify, mmap=True)
        loaded.validate()
        np.testing.assert_array_equal(loaded.search(rows, 5)[0], index.search(rows, 5)[0])
        loaded.set_vector(0, rows[0])
        loaded.validate()
        assert loaded.search(rows[0], 1)[0].tolist() == [0]


def test_a_snapshot_is_the_same_whoever_changed_it() -> None:
    rows = np.random.default_rng(6).normal(size=(300, 4)).astype(np.float32)

    def changed() -> bytes:
        index = RawIndex(4, exact_below=0)
        index.bulk_insert(vectors=rows, threads=2)
        for node in (5, 120, 5, 299):
            index.set_vector(node, rows[node] * 2 + 1)
        return index._native.to_bytes()

    assert changed() == changed()


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (lambda ix: ix.set_vector(0, [1.0]), InvalidVectorError, "1 dimensions, the index 2"),
        (lambda ix: ix.set_vector(0, [0, 0]), InvalidVectorError, "no direction"),
        (lambda ix: ix.set_vector(0, [np.nan, 1]), InvalidVectorError, "NaN at position 0"),
        (lambda ix: ix.set_vector(0, [[1, 0]]), InvalidVectorError, "one vector is wanted"),
        (lambda ix: ix.set_vector(0, "up"), InvalidVectorError, "real numbers"),
        (lambda ix: ix.set_vector(9, [1, 0]), UnknownError, "no node 9"),
        (lambda ix: ix.set_vector(1, [1, 0]), UnknownError, "no node 1"),
        (lambda ix: ix.set_tags(0, "draft"), InvalidInputError, "tags is 'draft'"),
        (lambda ix: ix.set_tags(0, None), InvalidInputError, "tags is None"),
        (lambda ix: ix.set_tags(-1, []), UnknownError, "no node -1"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    change: object, error: type[CvxError], named: str
) -> None:
    index = RawIndex(2)
    index.bulk_insert(vectors=[[1, 0], [0, 1]])
    index.delete(1)
    before, changes = index._native.to_bytes(), index.changes
    assert callable(change)
    with pytest.raises(error, match=named):
        change(index)
    assert (index._native.to_bytes(), index.changes) == (before, changes)


@pytest.mark.requirement("V13")
def test_regions_begin_a_new_epoch_where_a_hub_takes_another_vector() -> None:
    rng = np.random.default_rng(1)
    index = RawIndex(4, m=4)
    index.bulk_insert(vectors=rng.normal(size=(200, 4)))
    index.refresh_regions()
    hubs = set(index.regions(1).tolist())
    other = next(node for node in range(200) if node not in hubs)
    before = index.region_epoch
    index.set_vector(other, [1, 2, 3, 4])
    assert index.region_epoch == before
    nodes, regions = index.region_assignments(1)
    assigned = index.assign_region([1.0, 2.0, 3.0, 4.0], 1)
    assert regions[nodes == other].tolist() == [assigned]
    index.set_vector(min(hubs), [1, 2, 3, 4])
    assert index.region_epoch > before
    assert set(index.regions(1).tolist()) == hubs
    taken = index.region_epoch
    index.set_vector(min(hubs), None)
    assert index.region_epoch > taken
    assert set(index.regions(1).tolist()) == hubs - {min(hubs)}
