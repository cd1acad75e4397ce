"""The formulas of fusion, against twins written as the published text states them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.causal.fusion import (
    SEED,
    Ancestors,
    Blend,
    Candidates,
    additive,
    causal_boost,
    multiplicative,
)
from cvx.errors import InvalidInputError, InvalidVectorError


def case(seed: int, n: int = 12, a: int = 4, dim: int = 6) -> tuple[Candidates, Ancestors]:
    """Draw memories and ancestors that resemble each other; every fourth row has no vector."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(n + a, dim)) + 1.0
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn[rng.random(n + a) < 0.25] = 0.0
    rows = drawn.astype(np.float32)
    memories = Candidates(
        vectors=rows[:n],
        similarity=rng.random(n),
        recency=rng.random(n),
        importance=rng.integers(1, 11, n) / 10,
    )
    events = Ancestors(
        vectors=rows[n:],
        depths=rng.integers(1, 5, a),
        weights=rng.random(a),
        times=rng.integers(0, 99, a),
    )
    return memories, events


def twin_boost(memory: np.ndarray, ancestors: Ancestors, blend: Blend) -> float:
    """Follow the published loop over ancestors, one memory at a time."""
    best, deepest = 0.0, max(ancestors.depths.tolist(), default=1)
    for vector, depth, weight in zip(
        ancestors.vectors, ancestors.depths.tolist(), ancestors.weights.tolist(), strict=True
    ):
        if not vector.any() or not memory.any():
            continue
        cosine = float(vector @ memory)
        if cosine >= blend.threshold:
            scale = {
                "proximate": 1.0 - (depth - 1) / max(deepest, 1),
                "root": depth / deepest,
                "flat": 1.0,
            }[blend.depth_weight]
            best = max(best, cosine * scale * (weight if blend.edge_weights else 1.0))
    return best


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    blend=st.builds(
        Blend,
        weights=st.tuples(*[st.floats(0, 2)] * 3),
        causal_boost=st.floats(0, 9),
        threshold=st.floats(-0.9, 0.9),
        depth_weight=st.sampled_from(["proximate", "root", "flat"]),
        edge_weights=st.booleans(),
    ),
)
@pytest.mark.requirement("T10", "T11", "X2", "X3")
def test_both_formulas_are_their_twins(seed: int, blend: Blend) -> None:
    memories, ancestors = case(seed)
    product = {one.candidate: one for one in multiplicative(memories, ancestors, blend)}
    total = {one.candidate: one for one in additive(memories, ancestors, blend)}
    for at in range(len(memories)):
        episodic = sum(
            weight * float(column[at])
            for weight, column in zip(
                blend.weights,
                (memories.similarity, memories.recency, memories.importance),
                strict=True,
            )
        )
        boost = blend.causal_boost * twin_boost(memories.vectors[at], ancestors, blend)
        assert product[at].score == pytest.approx(episodic * (1 + boost), abs=1e-5)
        assert total[at].score == pytest.approx(episodic + boost, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), rule=st.sampled_from([multiplicative, additive]))
def test_a_ranking_holds_everything_once_best_first_and_its_factors_add_up(
    seed: int, rule: Any
) -> None:
    memories, ancestors = case(seed)
    ranked = rule(memories, ancestors)
    assert sorted(one.candidate for one in ranked) == list(range(len(memories)))
    scores = [one.score for one in ranked]
    assert scores == sorted(scores, reverse=True)
    for one in ranked:
        assert math.isclose(sum(part for _, part in one.factors), one.score, abs_tol=1e-9)
        assert (one.ancestor is None) == (dict(one.factors)["causal"] == 0)


@pytest.mark.requirement("T10", "T11")
def test_the_seeds_numbers_by_hand() -> None:
    # Cosine .6 to a cause at depth 3 of 3: boost .6 * (1 - 2/3) = .2; 1.5 * (1 + .6 * .2) = 1.68.
    memories = Candidates(
        vectors=np.array([[0.6, 0.8]], np.float32),
        similarity=np.array([0.5]),
        recency=np.array([0.7]),
        importance=np.array([0.3]),
    )
    ancestors = Ancestors(
        vectors=np.array([[1.0, 0.0], [0.0, -1.0]], np.float32),
        depths=np.array([3, 1]),
        weights=np.array([0.5, 1.0]),
        times=np.array([10, 20]),
    )
    boost, best = causal_boost(memories, ancestors)
    assert boost[0] == pytest.approx(0.2)
    assert best.tolist() == [0]
    assert multiplicative(memories, ancestors, SEED)[0].score == pytest.approx(1.68)
    weighed = Blend(edge_weights=True)
    assert multiplicative(memories, ancestors, weighed)[0].score == pytest.approx(1.59)
    rooted = Blend(depth_weight="root")
    assert multiplicative(memories, ancestors, rooted)[0].score == pytest.approx(1.5 * 1.36)


def test_without_ancestors_the_episodic_score_ranks() -> None:
    memories, ancestors = case(1)
    nobody = ancestors.part(slice(0))
    episodic = memories.similarity + memories.recency + memories.importance
    for rule in (multiplicative, additive):
        assert [one.candidate for one in rule(memories, nobody)] == np.argsort(-episodic).tolist()


def test_bad_columns_are_refused_by_name() -> None:
    memories, ancestors = case(2)
    columns = {
        "vectors": memories.vectors,
        "similarity": memories.similarity,
        "recency": memories.recency,
        "importance": memories.importance,
    }
    with pytest.raises(InvalidInputError, match="recency"):
        Candidates(**{**columns, "recency": memories.recency[1:]})
    for value in (1.5, -0.1, np.nan):
        wrong = memories.importance.copy()
        wrong[0] = value
        with pytest.raises(InvalidInputError, match="importance"):
            Candidates(**{**columns, "importance": wrong})
    with pytest.raises(InvalidInputError, match="depth"):
        Ancestors(
            vectors=ancestors.vectors,
            depths=np.zeros(4, np.int64),
            weights=ancestors.weights,
            times=ancestors.times,
        )
    with pytest.raises(InvalidVectorError):
        multiplicative(memories, case(2, dim=7)[1])
    for bad in ({"causal_boost": -1.0}, {"threshold": 2.0}, {"depth_weight": "deep"}):
        with pytest.raises(InvalidInputError):
            Blend(**bad)
