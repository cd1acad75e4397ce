"""What led to a node, and what it led to, within a budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.index import RawIndex
from tests.index_twin import KINDS, Twin, built, twins


def layers(twin: Twin, start: int, kinds: list[str], depth: int) -> dict[int, tuple[int, float]]:
    """Depth and weight of all that leads to a node, by looking at every edge for every depth."""
    space = twin.rows[start].namespace
    edges = [
        (a, b, weight)
        for (a, b, kind), weight in twin.edges.items()
        if kind in kinds and twin.rows[a].namespace == space
    ]
    if "temporal" in kinds:
        for n in twin.live():
            edges += [(before, n, 1.0) for before in twin.around(n)[0][-1:]]
    reached = {start: (0, 1.0)}
    for step in range(1, depth + 1):
        found: dict[int, float] = {}
        for a, b, weight in edges:
            if a not in reached and reached.get(b, (-1, 0.0))[0] == step - 1:
                found[a] = max(found.get(a, 0.0), float(np.float32(reached[b][1] * weight)))
        reached |= {n: (step, weight) for n, weight in found.items()}
    del reached[start]
    return reached


@given(twins(), st.sets(st.sampled_from([*KINDS, "temporal"]), min_size=1), st.integers(1, 5))
def test_all_that_leads_to_a_node_is_found_with_depth_and_weight(
    twin: Twin, kinds: set[str], depth: int
) -> None:
    index = built(twin)
    for n in list(twin.live())[:5]:
        found = index.ancestors(n, sorted(kinds), depth)
        pairs = zip(found.depths.tolist(), found.weights.tolist(), strict=True)
        got = dict(zip(found.nodes.tolist(), pairs, strict=True))
        expected = layers(twin, n, sorted(kinds), depth)
        assert {m: depth for m, (depth, _) in got.items()} == {
            m: depth for m, (depth, _) in expected.items()
        }
        assert [w for _, w in got.values()] == pytest.approx([expected[m][1] for m in got])
        assert not found.truncated


def test_consequences_are_the_same_walk_along_the_edges() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 2, 3], [10, 20, 30], None)
    index.add_edge(0, 1, "caused", 0.5)
    index.add_edge(1, 2, "caused_success", 0.5)
    kinds = ["caused", "caused_success"]
    found = index.ancestors(0, kinds, direction="out")
    assert found.nodes.tolist() == [1, 2]
    assert found.toward.tolist() == [0, 1]
    assert [index.edge_kinds[kind] for kind in found.kinds] == kinds
    assert index.ancestors(2, kinds).nodes.tolist() == [1, 0]


def test_a_budget_holds_inside_one_huge_list_of_edges_and_the_answer_says_so() -> None:
    index = RawIndex(2)
    index.bulk_insert(np.arange(2001), np.arange(2001), None)
    for cause in range(1, 2001):
        index.add_edge(cause, 0, "caused", 0.5)
    found = index.ancestors(0, ["caused"], budget=50)
    assert found.truncated
    assert sorted(found.nodes.tolist()) == list(range(1951, 2001))
    assert not index.ancestors(0, ["caused"], budget=2000).truncated


def test_no_walk_leaves_the_namespaces_that_were_named() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 2, 3], [1, 2, 3], None, namespaces=["", "other", ""])
    index.add_edge(0, 1, "caused")
    index.add_edge(1, 2, "caused")
    assert index.ancestors(2, ["caused"]).nodes.tolist() == []
    assert index.ancestors(2, ["caused"], namespaces=["", "other"]).nodes.tolist() == [1, 0]


def test_what_cannot_be_walked_is_refused() -> None:
    index = RawIndex(2)
    index.insert(1, 1, None)
    with pytest.raises(UnknownError):
        index.ancestors(1, ["caused"])
    with pytest.raises(UnknownError):
        index.ancestors(0, ["feels_like"])
    for bounds in ({"max_depth": 0}, {"budget": 0}, {"direction": "up"}):
        with pytest.raises(InvalidInputError):
            index.ancestors(0, ["caused"], **bounds)
