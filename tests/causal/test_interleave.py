"""The interleaving rule, against twins that do the same with lists and loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.causal.fusing import cases, measured
from benches.causal.generated_crises import Recipe
from benches.causal.known_rules import Given, similarity, tcmf
from benches.causal.scenarios import Geometry
from cvx.causal.fusion import Ancestors, Candidates, interleave, likely_links, witnesses
from cvx.errors import InvalidInputError


def drawn(seed: int, n: int = 15, a: int = 4, dim: int = 5) -> tuple[Candidates, Ancestors]:
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n + a, dim))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    normal[rng.random(n + a) < 0.15] = 0.0
    rows = normal.astype(np.float32)
    memories = Candidates(
        vectors=rows[:n],
        similarity=rng.integers(0, 5, n) / 5,
        recency=rng.random(n),
        importance=rng.random(n),
    )
    events = Ancestors(
        vectors=rows[n:],
        depths=rng.integers(1, 4, a),
        weights=rng.random(a),
        times=rng.integers(0, 9, a),
    )
    return memories, events


def twin_witnesses(event: np.ndarray, memories: Candidates, floor: float) -> list[int]:
    if not event.any():
        return []
    seen = [(float(row @ event), at) for at, row in enumerate(memories.vectors) if row.any()]
    seen.sort(key=lambda pair: -pair[0])
    if not seen or seen[0][0] < floor:
        return []
    gaps = [seen[i][0] - seen[i + 1][0] for i in range(len(seen) - 1)]
    count = gaps.index(max(gaps)) + 1 if gaps else 1
    return [at for _, at in seen[:count]]


def twin(memories: Candidates, events: Ancestors, floor: float) -> list[int]:
    surest_first = sorted(
        (e for e in range(len(events)) if events.weights[e] > 0),
        key=lambda e: (-events.weights[e], -events.depths[e], events.times[e]),
    )
    queues = [(e, twin_witnesses(events.vectors[e], memories, floor)) for e in surest_first]
    calls = [
        (queue[turn], e)
        for turn in range(len(memories))
        for e, queue in queues
        if turn < len(queue)
    ]
    alike = sorted(
        range(len(memories)),
        key=lambda at: (
            -memories.similarity[at],
            -(memories.recency[at] + memories.importance[at]),
        ),
    )
    if len(calls) < 5:
        wanted = [at for at, _ in calls] + alike
    else:
        first = calls[:4]
        direct = [call for call in calls if events.depths[call[1]] == 1]
        if direct and direct[0] not in first:
            first[3] = direct[0]
        wanted = [at for at, _ in first] + alike[:1]
        for (at, _), other in zip(calls[4:], alike[1:], strict=False):
            wanted += [at, other]
        wanted += alike
    return list(dict.fromkeys(wanted))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), floor=st.sampled_from([-1.0, 0.0, 0.3, 0.7]))
def test_the_rule_is_its_twin(seed: int, floor: float) -> None:
    memories, events = drawn(seed)
    ranked = interleave(memories, events, floor=floor)
    assert [one.candidate for one in ranked] == twin(memories, events, floor)
    first = interleave(memories, events, floor=floor, k=6)
    assert first == ranked[:6]


def crowd(ancestors: int, *, direct: float) -> tuple[Candidates, Ancestors]:
    """A graph as auto-linking makes it: many ancestors, each with a witness, one direct cause."""
    rows = np.eye(ancestors + 1, dtype=np.float32)
    memories = Candidates(
        vectors=rows,
        similarity=np.r_[np.zeros(ancestors), 1.0],
        recency=np.zeros(ancestors + 1),
        importance=np.zeros(ancestors + 1),
    )
    depths = np.r_[1, np.full(ancestors - 1, 4)].astype(np.int64)
    weights = np.r_[direct, np.full(ancestors - 1, 0.6)]
    times = np.arange(ancestors)
    return memories, Ancestors(vectors=rows[:-1], depths=depths, weights=weights, times=times)


@pytest.mark.requirement("T19", "T22")
@pytest.mark.parametrize("direct", [1.0, 0.4])
def test_among_many_ancestors_the_direct_cause_and_the_likest_memory_keep_places(
    direct: float,
) -> None:
    memories, events = crowd(40, direct=direct)
    first = [one.candidate for one in interleave(memories, events, k=5)]
    assert {0, 40} <= set(first)
    assert (first[0] == 0) == (direct == 1.0)


@pytest.mark.requirement("T19")
def test_an_ancestor_at_the_end_of_a_path_of_weight_nothing_calls_nobody() -> None:
    memories, events = crowd(3, direct=0.0)
    assert all(one.ancestor != 0 for one in interleave(memories, events))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), reached=st.integers(0, 4))
def test_every_memory_is_ranked_once_and_says_why(seed: int, reached: int) -> None:
    memories, events = drawn(seed)
    parts = [
        Ancestors(
            vectors=events.vectors[part],
            depths=events.depths[part],
            weights=events.weights[part],
            times=events.times[part],
        )
        for part in (slice(0, reached), slice(reached, None))
    ]
    ranked = interleave(memories, parts[0], fallback=parts[1], event=events.vectors[0])
    assert sorted(one.candidate for one in ranked) == list(range(len(memories)))
    assert [one.score for one in ranked] == [1 / (at + 1) for at in range(len(ranked))]
    for one in ranked:
        assert math.isclose(sum(part for _, part in one.factors), one.score)
        if one.arm == "relevance":
            assert one.ancestor is None
        else:
            assert one.ancestor is not None
            source = parts[one.arm == "fallback"].vectors[one.ancestor]
            assert one.likeness == pytest.approx(
                float(memories.vectors[one.candidate] @ source), abs=1e-6
            )


def twin_links(events: Ancestors, known: Ancestors, event: np.ndarray) -> list[int]:
    chain = [(row, time) for row, time in zip(known.vectors, known.times, strict=True)]
    chain.append((event, math.inf))
    order: list[int] = []
    while len(order) < len(events):
        best, found = -math.inf, -1
        for at in sorted(range(len(events)), key=lambda e: events.times[e]):
            if at in order:
                continue
            tie = -math.inf
            for row, time in chain:
                if time >= events.times[at] and row.any() and events.vectors[at].any():
                    tie = max(tie, float(row @ events.vectors[at]))
            if found < 0 or tie > best:
                best, found = tie, at
        order.append(found)
        chain.append((events.vectors[found], float(events.times[found])))
    return order


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_likely_links_grow_the_chain_as_their_twin_does(seed: int) -> None:
    _, known = drawn(seed, a=2)
    _, events = drawn(seed + 1, a=6)
    event = drawn(seed + 2)[1].vectors[0]
    assert likely_links(events, known, event) == twin_links(events, known, event)


def test_without_vectors_the_fallback_is_in_order_of_time() -> None:
    events = Ancestors(
        vectors=np.zeros((3, 2), np.float32),
        depths=np.ones(3, np.int64),
        weights=np.ones(3),
        times=np.array([30, 10, 20]),
    )
    assert likely_links(events, events.part(slice(0))) == [1, 2, 0]


def test_witnesses_stand_above_the_largest_gap() -> None:
    assert witnesses(np.array([0.2, 0.9, 0.85, 0.1]), 0.3) == [1, 2]
    assert witnesses(np.array([0.2, 0.1]), 0.3) == []
    assert witnesses(np.array([0.5]), 0.3) == [0]
    assert witnesses(np.array([np.nan, np.nan]), -1.0) == []


def test_the_degrees_of_missing_all_give_a_ranking() -> None:
    memories, events = drawn(3)
    blind = Candidates(
        vectors=np.zeros_like(memories.vectors),
        similarity=np.zeros(len(memories)),
        recency=memories.recency,
        importance=memories.importance,
    )
    order = np.argsort(-(memories.recency + memories.importance)).tolist()
    for ancestors in (events, events.part(slice(0))):
        assert [one.candidate for one in interleave(blind, ancestors)] == order
    with pytest.raises(InvalidInputError, match="floor"):
        interleave(memories, events, floor=2.0)


def rule(case: Given) -> list[int]:
    return [one.candidate for one in interleave(case.candidates, case.ancestors)]


def mended(case: Given) -> list[int]:
    crisis = case.scenario.events[case.scenario.plot.crisis]
    ranked = interleave(case.candidates, case.ancestors, fallback=case.unreached, event=crisis)
    return [one.candidate for one in ranked]


@pytest.mark.requirement("X2")
def test_the_default_rule_finds_the_causes_and_what_resembles() -> None:
    whole = cases(Recipe(), Geometry(64), range(30))
    found = measured(rule, whole)
    assert found.at5 >= 0.97
    assert found.at10 == 1.0
    assert found.root <= 1.2
    assert measured(similarity, whole).at5 <= 0.5
    assert measured(tcmf, whole).at5 <= 0.5


@pytest.mark.requirement("X4")
def test_the_fallback_finds_causes_that_no_edge_leads_to() -> None:
    cut = cases(Recipe(missing=0.5, decoys=3), Geometry(64), range(60))
    assert measured(rule, cut).at5 < 0.7 < measured(mended, cut).at5
