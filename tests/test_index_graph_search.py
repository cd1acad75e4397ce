"""Similarity and edges together, in time and over typed links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.index import RawIndex
from cvx.types import Filter, Hit
from tests.index_twin import KINDS, Twin, built, filters, twins, vectors


def assert_explained(twin: Twin, hits: Sequence[Hit], query: list[int]) -> None:
    """A hit tells distance and score apart, and its factors add up."""
    for hit in hits:
        row = twin.rows[hit.node]
        assert abs(hit.distance - twin.distance(query, hit.node)) < 1e-4 * (1 + abs(hit.distance))
        assert abs(hit.similarity - twin.similarity(query, hit.node)) < 1e-4 * (1 + abs(hit.score))
        assert (hit.entity_id, hit.timestamp) == (row.entity, row.timestamp)
        assert (hit.reward, hit.action) == (row.reward, row.action)
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score, abs=1e-5)
        assert hit["node_id"] == hit.node
        assert hit["score"] == hit.score
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.node for hit in hits}) == len(hits)


@pytest.mark.requirement("V8")
@given(
    twins(),
    vectors(),
    st.integers(1, 10),
    st.dictionaries(
        st.sampled_from([*KINDS, "temporal"]), st.sampled_from([0.0, 0.3, 0.5, 1.0]), max_size=3
    ),
    st.integers(0, 3),
    st.integers(1, 12),
    filters(),
)
def test_graph_search_scores_as_its_definition(
    twin: Twin,
    query: list[int],
    k: int,
    boost: dict[str, float],
    max_hops: int,
    ef: int,
    where: Filter,
) -> None:
    index = built(twin)
    ef = max(ef, k)
    # With a tie at the edge of S its members are anybody's choice: ask for whole groups only.
    near = twin.distances(query, where)
    while ef < len(near) and near[ef][0] - near[ef - 1][0] < 1e-4:
        ef += 1
    expected = twin.graph(query, ef, boost, max_hops, where)
    hits = index.graph_search(query, k, boost, max_hops, ef=ef, where=where)
    assert_explained(twin, hits, query)
    assert len(hits) == min(k, len(expected))
    best = sorted(expected.values(), reverse=True)[:k]
    np.testing.assert_allclose([hit.score for hit in hits], best, atol=1e-4, rtol=1e-4)
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.node], abs=1e-4, rel=1e-4)
        if hit.path:
            product = twin.similarity(query, hit.path[0].from_node)
            for edge in hit.path:
                assert edge.boost is not None
                product *= edge.boost * edge.weight
            assert hit.path[-1].to_node == hit.node
            assert len(hit.path) <= max_hops
            assert hit.score - hit.similarity == pytest.approx(product, abs=1e-4, rel=1e-3)


@pytest.mark.requirement("V8")
def test_graph_search_finds_over_an_edge_what_similarity_alone_misses() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 16))
    index = RawIndex(16)
    index.bulk_insert(np.arange(500), np.arange(500), rows)
    query = rows[0]
    opposite = int(index.search(-query, 1)[0][0])
    assert opposite not in index.search(query, 50)[0]
    index.add_edge(0, 7, "caused_success", 1.0)
    index.add_edge(7, opposite, "caused_success", 1.0)
    boosted = index.graph_search(query, 400, {"caused_success": 1.0}, max_hops=2, ef=400)
    hit = next(h for h in boosted if h.node == opposite)
    assert [e.to_node for e in hit.path] == [7, opposite]
    assert hit.score == pytest.approx(hit.similarity + 1.0, abs=1e-5)
    one_hop = index.graph_search(query, 400, {"caused_success": 1.0}, max_hops=1, ef=400)
    assert opposite not in [h.node for h in one_hop]


def test_graph_search_never_walks_into_another_namespace() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 2, 3], [1, 1, 1], [[1, 0], [0, 1], [0, 1]], namespaces=["", "secret", ""])
    index.add_edge(0, 1, "caused", 1.0)
    index.add_edge(1, 2, "caused", 1.0)
    alone = index.graph_search([1, 0], 3, {"caused": 1.0}, max_hops=3)
    assert [(h.node, h.path) for h in alone if h.path] == []
    shared = index.graph_search(
        [1, 0], 3, {"caused": 1.0}, max_hops=3, where=Filter(namespaces=["", "secret"])
    )
    assert sorted(len(h.path) for h in shared) == [0, 1, 2]


@pytest.mark.requirement("V19", "X14")
@given(twins(), vectors(), st.integers(1, 10), st.sampled_from([0.0, 0.3, 0.9, 1.0]), filters())
def test_hybrid_search_scores_as_its_definition(
    twin: Twin, query: list[int], k: int, beta: float, where: Filter
) -> None:
    hits = built(twin).hybrid_search(query, k, beta, ef=100, where=where)
    assert_explained(twin, hits, query)
    expected = twin.hybrid(query, beta, where)
    by_node = {n: score for score, n in expected}
    np.testing.assert_allclose(
        [h.score for h in hits], [s for s, _ in expected[:k]], atol=1e-4, rtol=1e-4
    )
    for hit in hits:
        assert hit.score == pytest.approx(by_node[hit.node], abs=1e-4, rel=1e-4)


@pytest.mark.requirement("V19")
def test_beta_truly_weighs() -> None:
    index = RawIndex(2)
    index.bulk_insert([1, 1, 2], [1, 2, 1], [[1, 0], [-1, 0], [0.5, 1]])
    order = {b: [h.node for h in index.hybrid_search([1, 0], 3, b)] for b in (0.0, 0.3, 0.9)}
    assert order == {0.0: [0, 2, 1], 0.3: [0, 2, 1], 0.9: [0, 1, 2]}
    plain = index.search([1, 0], 3)[0].tolist()
    assert plain == order[0.0]
    beside = index.hybrid_search([1, 0], 3, 0.3)[2]
    assert beside.node == 1
    assert beside.score == pytest.approx(0.3)


@pytest.mark.requirement("V6", "V19", "X14")
@given(twins(), vectors(), st.integers(1, 8), st.integers(0, 4), filters())
def test_causal_search_brings_what_came_before_and_after(
    twin: Twin, query: list[int], k: int, context: int, where: Filter
) -> None:
    index = built(twin)
    hits = index.causal_search(query, k, context, where=where)
    assert_explained(twin, hits, query)
    assert [h.node for h in hits] == index.search(query, k, where=where)[0].tolist()
    for hit in hits:
        before, after = twin.around(hit.node)
        kept = before[-context:] if context else []
        assert [s.node_id for s in hit.predecessors] == kept
        assert [s.node_id for s in hit.successors] == after[:context]
        assert hit.score == hit.similarity
        for step in (*hit.predecessors, *hit.successors):
            row = twin.rows[step.node_id]
            assert step[1:] == (row.entity, row.timestamp, row.action, row.reward)


def test_arguments_out_of_bounds_are_refused() -> None:
    index = RawIndex(2)
    index.insert(1, 1, [1, 0])
    for k in (0, -3):
        for search in (
            index.search,
            index.causal_search,
            index.hybrid_search,
            index.graph_search,
        ):
            with pytest.raises(InvalidInputError, match=str(k)):
                search([1, 0], k)
    for beta in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInputError, match="beta"):
            index.hybrid_search([1, 0], beta=beta)
    for factor in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="boost"):
            index.graph_search([1, 0], edge_boost={"caused": factor})
    with pytest.raises(InvalidInputError, match="temporal_context is -1"):
        index.causal_search([1, 0], temporal_context=-1)
    with pytest.raises(InvalidInputError, match="max_hops is -1"):
        index.graph_search([1, 0], max_hops=-1)
    with pytest.raises(InvalidInputError, match=f"max_hops is {2**60}: .* from 0 to 64"):
        index.graph_search([1, 0], max_hops=2**60)
    with pytest.raises(InvalidInputError, match="ef is 0"):
        index.search([1, 0], ef=0)
    with pytest.raises(InvalidInputError, match="threads is 0"):
        index.search([[1, 0]], threads=0)
    for start in (
        lambda: index.search([[1, 0]], threads=20_000),
        lambda: index.bulk_insert([1], [1], [[1, 0]], threads=20_000),
    ):
        with pytest.raises(InvalidInputError, match=r"threads is 20000: .* from 1 to 256"):
            start()
