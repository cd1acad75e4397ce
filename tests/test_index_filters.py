"""Filters inside the search: k results whenever k match, and nothing of another namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.index import RawIndex
from cvx.types import Filter
from tests.index_twin import Twin, assert_nearest, built, filters, twins, vectors


@pytest.mark.requirement("V19")
@given(twins(), vectors(), st.integers(1, 30), filters())
def test_a_filtered_search_is_a_search_among_what_matches(
    twin: Twin, query: list[int], k: int, where: Filter
) -> None:
    ids, distances = built(twin).search(query, k, where=where)
    assert_nearest(twin, ids, distances, query, k, where)


@pytest.mark.requirement("V19")
@given(twins(), vectors(), st.lists(filters(), max_size=3), st.booleans())
def test_of_several_filters_any_may_accept(
    twin: Twin, query: list[int], wheres: list[Filter], exact: bool
) -> None:
    index = built(twin, exact_below=10_000 if exact else 0)
    ids = sorted({node for where in wheres for node in twin.found(where)})
    spaces = {name for where in wheres for name in where.namespaces or [""]} | {
        "" for where in wheres if where.namespaces is None
    }
    any_of = Filter(ids=ids, namespaces=sorted(spaces), recallable=None)
    found, distances = index.search(query, 9, where=wheres)
    assert_nearest(twin, found, distances, query, 9, any_of)
    batch, _ = index.search([query, query], 9, where=wheres)
    assert [row[row >= 0].tolist() for row in batch] == [found.tolist()] * 2
    causal = index.causal_search(query, 9, 0, wheres)
    assert [hit.node for hit in causal] == found.tolist()
    boost = {"caused": 0.5, "temporal": 0.25}
    scores = {hit.node: hit.score for hit in index.graph_search(query, 50, boost, 2, wheres)}
    assert scores == pytest.approx(twin.graph(query, 50, boost, 2, any_of), abs=1e-5)
    hybrid = [hit.score for hit in index.hybrid_search(query, 50, 0.5, wheres)]
    assert hybrid == pytest.approx([s for s, _ in twin.hybrid(query, 0.5, any_of)], abs=1e-5)


@given(twins(), vectors(), filters())
def test_a_mapping_is_the_filter_of_its_fields(twin: Twin, query: list[int], where: Filter) -> None:
    index = built(twin)
    expected = index.search(query, 9, where=where)[0].tolist()
    fields = where._asdict()
    assert index.search(query, 9, where=fields)[0].tolist() == expected
    assert index.search(query, 9, where=[fields])[0].tolist() == expected
    assert index.search(query, 9, where=(where, fields))[0].tolist() == expected


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"sinse": 5}, "a field of where is 'sinse'"),
        ([Filter(), {"kind": "note"}], "where.kind is given, which an index does not know"),
        ([None], r"where\[0\] is None"),
        (["x"], r"where\[0\] is 'x'"),
        ("x", "where is 'x'"),
        ([Filter(since=5, until=5)], "5..5 is inverted"),
        ([[Filter()]], r"where\[0\]"),
    ],
)
def test_a_part_of_a_filter_that_makes_no_sense_is_named(where: Any, named: str) -> None:
    index = RawIndex(2)
    index.insert(vector=[1, 0])
    for search in (index.search, index.causal_search, index.hybrid_search, index.graph_search):
        with pytest.raises(InvalidInputError, match=named):
            search([1, 0], where=where)


@pytest.mark.requirement("V17")
@given(twins(), vectors())
def test_what_is_not_recallable_comes_back_only_when_asked_for(
    twin: Twin, query: list[int]
) -> None:
    index = built(twin)
    kept_out = [n for n in twin.live() if not twin.rows[n].recallable]
    assert not set(kept_out) & set(index.search(query, 100)[0].tolist())
    only = index.search(query, 100, where=Filter(recallable=False))[0].tolist()
    both = index.search(query, 100, where=Filter(recallable=None))[0].tolist()
    assert set(only) == set(twin.found(Filter(recallable=False)))
    assert set(both) == set(twin.found(None)) | set(only)


def test_a_changed_flag_counts_at_once() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1], [1, 2], [[1, 0], [0, 1]], recallable=[True, False])
    assert index.search([0, 1], 2)[0].tolist() == [0]
    index.set_recallable(1, True)
    index.set_recallable(0, False)
    assert index.search([0, 1], 2)[0].tolist() == [1]
    assert (index.recallable(0), index.recallable(1)) == (False, True)


@pytest.mark.parametrize(
    "side", [{"since": 5}, {"until": 5}, {"min_reward": 0.5}, {"max_reward": 0.5}]
)
def test_a_one_sided_range_works(side: dict[str, float]) -> None:
    index = RawIndex(2)
    index.bulk_insert([1] * 10, range(10), np.ones((10, 2)), rewards=np.arange(10) / 10)
    expected = {
        "since": [5, 6, 7, 8, 9],
        "until": [0, 1, 2, 3, 4],
        "min_reward": [5, 6, 7, 8, 9],
        "max_reward": [0, 1, 2, 3, 4, 5],
    }[next(iter(side))]
    found = index.search([1, 1], 10, where=Filter(**side))[0]  # type: ignore[arg-type]
    assert sorted(found.tolist()) == expected


@pytest.mark.parametrize(
    ("where", "named"),
    [
        (Filter(since=5, until=5), "5"),
        (Filter(since=6, until=-5), "-5"),
        (Filter(min_reward=0.75, max_reward=0.5), "0.75"),
    ],
)
def test_an_inverted_range_is_refused(where: Filter, named: str) -> None:
    index = RawIndex(2)
    with pytest.raises(InvalidInputError, match=named):
        index.search([1, 0], where=where)


def test_an_empty_list_matches_nothing_and_an_unknown_name_neither() -> None:
    index = RawIndex(2)
    index.insert(1, 1, [1, 0], tags={"x"}, namespace="a")
    assert index.search([1, 0], where=Filter(namespaces=["a"]))[0].tolist() == [0]
    for where in (
        Filter(namespaces=[]),
        Filter(namespaces=["a"], ids=[]),
        Filter(namespaces=["a"], entities=[]),
        Filter(namespaces=["a"], ids=[99]),
        Filter(namespaces=["a"], ids=[2**40]),
        Filter(namespaces=["a"], tags=["never"]),
        Filter(namespaces=["a"], tags=[]),
        Filter(namespaces=["never"]),
    ):
        assert index.search([1, 0], where=where)[0].tolist() == []


@pytest.mark.parametrize(
    ("where", "named"),
    [
        (1, "cvx.Filter"),
        (Filter(since="yesterday"), "since"),  # type: ignore[arg-type]
        (Filter(since=2**70), "since"),
        (Filter(entities=[-1]), "entities"),
        (Filter(entities=np.array([-1])), "entities"),
        (Filter(namespaces=3), "namespaces"),  # type: ignore[arg-type]
        (Filter(tags=[1]), "tags"),  # type: ignore[list-item]
        (Filter(ids="x"), "ids"),  # type: ignore[arg-type]
    ],
)
def test_a_filter_that_cannot_be_understood_is_refused(where: Filter, named: str) -> None:
    index = RawIndex(2)
    with pytest.raises(InvalidInputError, match=named):
        index.search([1, 0], where=where)


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize("accepted", [1500, 300, 30, 3])
def test_a_filter_never_returns_fewer_than_match(metric: str, accepted: int) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 8)).astype(np.float32)
    index = RawIndex(8, metric, exact_below=0)
    chosen = rng.permutation(3000)[:accepted]
    tags = [{"x"} if n in set(chosen.tolist()) else set[str]() for n in range(3000)]
    index.bulk_insert(np.arange(3000) % 7, np.arange(3000), rows, tags=tags)
    ids, _ = index.search(rng.normal(size=(20, 8)), 10, where=Filter(tags=["x"]))
    assert (np.isin(ids, chosen).sum(axis=1) == min(10, accepted)).all()


@pytest.mark.requirement("V19")
def test_accepted_rows_far_from_the_query_are_all_found() -> None:
    rng = np.random.default_rng(4)
    near, far = rng.normal(size=(2000, 8)) + 6, rng.normal(size=(40, 8)) - 6
    index = RawIndex(8, "l2", exact_below=0)
    index.bulk_insert(
        [0] * 2000 + [1] * 40, np.arange(2040), np.concatenate([near, far]), threads=1
    )
    ids, distances = index.search(np.full(8, 6.0), 40, where=Filter(entities=[1]))
    assert sorted(ids.tolist()) == list(range(2000, 2040))
    assert (np.diff(distances) >= 0).all()
