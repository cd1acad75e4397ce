"""Typed edges from both ends, and walks over them and over time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import (
    InvalidInputError,
    UnknownError,
)
from cvx.index import RawIndex
from cvx.types import Edge
from tests.index_twin import KINDS, Twin, built, twins


def three_in_a_row() -> RawIndex:
    index = RawIndex(2)
    index.bulk_insert([1, 1, 2], [10, 20, 10], [[1, 0], [0, 1], [1, 1]])
    return index


@pytest.mark.requirement("V7")
def test_every_kind_of_the_design_is_known_by_its_lower_snake_name() -> None:
    index = three_in_a_row()
    known: tuple[str, ...] = index.edge_kinds
    assert known == (
        "temporal",
        "caused",
        "caused_success",
        "caused_failure",
        "same_action_type",
        "region_transition",
        "granger_causal",
        "irrelevant",
    )
    for kind in index.edge_kinds[1:]:
        index.add_edge(0, 2, kind, 0.5)
        assert Edge(0, 2, kind, 0.5) in index.typed_neighbors(0)
    index.declare_edge_kind("reminds_of")
    index.declare_edge_kind("reminds_of")
    index.add_edge(2, 0, "reminds_of")
    assert index.edge_kinds[-1] == "reminds_of"
    assert index.typed_neighbors(2) == [Edge(2, 0, "reminds_of", 1.0)]


@pytest.mark.requirement("V8", "V9")
@given(twins(), st.sampled_from([None, *KINDS, "temporal"]), st.sampled_from([0.0, 0.5, 0.75]))
def test_edges_are_found_from_either_end(twin: Twin, kind: str | None, min_weight: float) -> None:
    index = built(twin)
    spaces = ["", "a"]
    for n in twin.live():
        line_before, line_after = twin.around(n)
        out = {(n, b, k): w for (a, b, k), w in twin.edges.items() if a == n}
        into = {(a, n, k): w for (a, b, k), w in twin.edges.items() if b == n}
        out |= {(n, m, "temporal"): 1.0 for m in line_after[:1]}
        into |= {(m, n, "temporal"): 1.0 for m in line_before[-1:]}
        for direction, edges in (("out", out), ("in", into)):
            expected = {
                (a, b, k, w)
                for (a, b, k), w in edges.items()
                if (kind is None or k == kind)
                and w >= min_weight
                and twin.rows[b if direction == "out" else a].namespace in spaces
            }
            found = index.typed_neighbors(n, kind, min_weight, direction, namespaces=spaces)
            assert len(found) == len(expected)
            assert {(e.from_node, e.to_node, e.kind, e.weight) for e in found} == expected


@pytest.mark.requirement("V8")
@given(
    twins(max_rows=10),
    st.integers(1, 4),
    st.sets(st.sampled_from([*KINDS, "temporal"]), min_size=1),
)
def test_traverse_returns_the_strongest_paths_first(
    twin: Twin, max_hops: int, kinds: set[str]
) -> None:
    index = built(twin)
    spaces = ["", "a"]
    for start in twin.live():
        expected = sorted(
            twin.paths(start, kinds, max_hops, spaces), key=lambda p: (-p[0], len(p[1]), p[1])
        )
        found = index.traverse(start, sorted(kinds), max_hops, max_paths=10**6, namespaces=spaces)
        assert sorted((p.nodes, tuple(e.kind for e in p.edges)) for p in found) == sorted(
            p[1:] for p in expected
        )
        assert [p.strength for p in found] == [p[0] for p in expected]
        assert [p.nodes for p in found] == [p[1] for p in expected]
        few = index.traverse(start, sorted(kinds), max_hops, max_paths=3, namespaces=spaces)
        assert few == found[:3]


@pytest.mark.requirement("V8")
def test_a_path_tells_every_edge_it_walked() -> None:
    index = three_in_a_row()
    index.add_edge(1, 2, "caused_success", 0.5)
    found = index.traverse(0, ["caused_success", "temporal"], max_hops=3)
    assert [p.nodes for p in found] == [(0, 1), (0, 1, 2)]
    assert found[1].edges == (Edge(0, 1, "temporal", 1.0), Edge(1, 2, "caused_success", 0.5))
    assert found[1].strength == 0.5


def test_a_walk_enters_only_the_namespaces_of_the_call() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 2, 3], [1, 1, 1], np.ones((3, 2)), namespaces=["", "secret", ""])
    index.add_edge(0, 1, "caused")
    index.add_edge(1, 2, "caused")
    assert index.traverse(0, ["caused"]) == []
    assert index.typed_neighbors(0) == []
    both = index.traverse(0, ["caused"], namespaces=["", "secret"])
    assert [p.nodes for p in both] == [(0, 1), (0, 1, 2)]


def test_the_same_edge_again_takes_the_new_weight_and_removal_removes_it() -> None:
    index = three_in_a_row()
    index.add_edge(0, 2, "caused", 0.25)
    index.add_edge(0, 2, "caused", 0.75)
    index.add_edge(0, 2, "irrelevant", 0.5)
    assert index.edges() == [Edge(0, 2, "caused", 0.75), Edge(0, 2, "irrelevant", 0.5)]
    index.remove_edge(0, 2, "caused")
    assert index.edges() == [Edge(0, 2, "irrelevant", 0.5)]
    with pytest.raises(UnknownError, match=r"0.*2"):
        index.remove_edge(0, 2, "caused")


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    index = three_in_a_row()
    calls = (
        lambda: index.add_edge(0, 2, "helps"),
        lambda: index.remove_edge(0, 2, "helps"),
        lambda: index.typed_neighbors(0, "helps"),
        lambda: index.traverse(0, ["caused", "helps"]),
        lambda: index.graph_search([1, 0], edge_boost={"helps": 0.3}),
    )
    for call in calls:
        with pytest.raises(UnknownError, match=r"helps.*caused_success.*declare"):
            call()


def test_an_edge_that_cannot_be_is_refused() -> None:
    index = three_in_a_row()
    for weight in (-0.1, 1.5, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match=r"\[0, 1\]"):
            index.add_edge(0, 2, "caused", weight)
    with pytest.raises(InvalidInputError, match="temporal"):
        index.add_edge(0, 2, "temporal")
    with pytest.raises(InvalidInputError, match="itself"):
        index.add_edge(1, 1, "caused")
    for a, b in ((0, 3), (3, 0), (-1, 0), (0, 2**40)):
        with pytest.raises(UnknownError):
            index.add_edge(a, b, "caused")
    for name in ("", "Helps", "helps me", "x" * 65):
        with pytest.raises(InvalidInputError, match="snake"):
            index.declare_edge_kind(name)
    with pytest.raises(InvalidInputError, match="sideways"):
        index.typed_neighbors(0, direction="sideways")
    for bounds in ({"max_hops": 0}, {"max_paths": 0}):
        with pytest.raises(InvalidInputError, match="at least 1"):
            index.traverse(
                0, ["caused"], bounds.get("max_hops", 3), max_paths=bounds.get("max_paths", 9)
            )
    assert index.edges() == []
