"""Scores: the seed's formula to the digit, and factors that add up."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.scoring import (
    DEFAULT_WEIGHTS,
    FEATURES,
    Scorer,
    ScoringContext,
    bayesian_score,
    beta_mean,
    recency_weight,
    usage_ratio,
)
from cvx.types import Hit

HIT = Hit(node=0, distance=0.2, score=0.8, similarity=0.8, entity_id=7, timestamp=90, reward=0.6)
unit = st.floats(0, 1)


@pytest.mark.requirement("V11")
def test_the_seed_formula_worked_out_by_hand() -> None:
    # 1.0*0.8 + 0.3*e^-1 + 0.5*0.6 + 0.2*1 + 0.4*0.25 = 0.8 + 0.110363832... + 0.3 + 0.2 + 0.1
    assert bayesian_score(0.8, 100, 0.6, True, 0.25) == pytest.approx(1.5103638323514327, abs=1e-15)
    # 2*0.5 + 1*e^-0.5 + 1*0 + 1*0 + 1*1 = 1 + 0.606530659... + 1
    assert bayesian_score(0.5, 50, 0.0, False, 1.0, weights=(2, 1, 1, 1, 1)) == pytest.approx(
        2.6065306597126336, abs=1e-15
    )


@pytest.mark.requirement("V11")
@given(unit, st.integers(0, 1000), unit, st.booleans(), unit, st.tuples(*[st.floats(-3, 3)] * 5))
def test_the_seed_formula_is_the_weighted_sum_of_its_parts(
    similarity: float,
    age: int,
    reward: float,
    region: bool,
    usage: float,
    w: tuple[float, float, float, float, float],
) -> None:
    expected = (
        w[0] * similarity
        + w[1] * math.exp(-0.01 * age)
        + w[2] * reward
        + w[3] * float(region)
        + w[4] * usage
    )
    assert bayesian_score(similarity, age, reward, region, usage, w) == expected


@pytest.mark.requirement("V11")
def test_an_unknown_reward_is_worth_as_much_as_a_middling_one() -> None:
    unknown = bayesian_score(0.5, 0, None, False, 0.0)
    assert unknown == bayesian_score(0.5, 0, 0.5, False, 0.0)
    assert bayesian_score(0.5, 0, 1.0, False, 0.0) > unknown > bayesian_score(0.5, 0, 0, False, 0.0)


@pytest.mark.requirement("V11")
def test_use_is_counted_as_the_seed_has_it_or_as_a_rate() -> None:
    assert usage_ratio(3, 1) == 0.75
    assert usage_ratio(0, 0) == 0.0
    assert beta_mean(3, 4, strength=1.0, mean=0.5) == 0.7
    assert beta_mean(0, 0, strength=0.3, mean=0.2) == pytest.approx(0.2)


@pytest.mark.requirement("V19")
def test_recency_falls_by_a_percent_a_unit_of_age() -> None:
    assert recency_weight(0) == 1.0
    assert recency_weight(100) == pytest.approx(math.exp(-1))
    assert recency_weight(10, rate=0.1) == pytest.approx(math.exp(-1))


@pytest.mark.requirement("V11")
def test_the_scorer_with_the_seed_weights_is_the_seed_formula() -> None:
    scorer = Scorer(
        {
            "similarity": 1.0,
            "recency": 0.3,
            "reward": 0.5,
            "region_match": 0.2,
            "usage_success": 0.4,
        }
    )
    context = ScoringContext(now=190, region=5, region_of=lambda _: 5, usage_of=lambda _: 0.25)
    expected = bayesian_score(math.exp(-0.2), 100, 0.6, True, 0.25)
    assert scorer.rank([HIT], context)[0].score == pytest.approx(expected)


@pytest.mark.requirement("V11")
def test_the_same_family_of_goals_scores_higher() -> None:
    context = ScoringContext(task_type="clean", task_of=lambda hit: ["heat", "clean"][hit.node])
    first, second = Scorer().rank([HIT, replace(HIT, node=1)], context)
    assert (first.node, second.node) == (1, 0)
    assert first.score - second.score == pytest.approx(DEFAULT_WEIGHTS["task_match"])


@pytest.mark.requirement("V6")
def test_a_continuation_that_succeeds_where_the_agent_is_scores_higher() -> None:
    context = ScoringContext(action_success=lambda hit: [0.2, 0.9][hit.node])
    ranked = Scorer().rank([HIT, replace(HIT, node=1)], context)
    assert [hit.node for hit in ranked] == [1, 0]


@pytest.mark.requirement("V11")
@given(
    st.lists(st.tuples(st.floats(0, 2), st.none() | unit, st.integers(0, 500)), max_size=8),
    st.sampled_from(["sum", "log-product"]),
    st.fixed_dictionaries({}, optional={name: st.floats(-2, 2) for name in FEATURES}),
)
def test_the_shares_add_up_to_the_score_and_the_best_comes_first(
    rows: list[tuple[float, float | None, int]], mode: str, weights: dict[str, float]
) -> None:
    hits = [
        Hit(n, d, 1 - d, 1 - d, n, t, reward=r, action="go") for n, (d, r, t) in enumerate(rows)
    ]
    ranked = Scorer(weights, mode=mode).rank(hits, ScoringContext(now=400, region=1))  # type: ignore[arg-type]
    assert sorted(h.node for h in ranked) == [h.node for h in hits]
    for hit in ranked:
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score, abs=1e-9)
        assert {f.name for f in hit.factors} == {n for n, w in weights.items() if w}
    assert [h.score for h in ranked] == sorted((h.score for h in ranked), reverse=True)


@pytest.mark.requirement("X14")
def test_ranking_changes_the_score_and_leaves_the_distance_alone() -> None:
    hit = Scorer().rank([HIT], ScoringContext())[0]
    assert (hit.distance, hit.similarity) == (HIT.distance, HIT.similarity)
    assert hit.score != hit.distance


@pytest.mark.requirement("X14")
@given(st.lists(st.floats(0, 2), min_size=2, max_size=8, unique=True))
def test_nearer_means_a_higher_score_when_all_else_is_equal(distances: list[float]) -> None:
    hits = [replace(HIT, node=n, distance=d) for n, d in enumerate(distances)]
    for mode in ("sum", "log-product"):
        ranked = Scorer({"similarity": 1.0}, mode=mode).rank(hits, ScoringContext())
        values = [hit.factors[0].value for hit in ranked]
        assert values == sorted(values, reverse=True)


def test_a_product_vetoes_where_a_sum_compensates() -> None:
    hits = [
        replace(HIT, node=0, distance=0.0, reward=0.0),
        replace(HIT, node=1, distance=1.0, reward=0.9),
    ]
    weights = {"similarity": 2.0, "reward": 1.0}
    assert Scorer(weights).rank(hits, ScoringContext())[0].node == 0
    assert Scorer(weights, mode="log-product").rank(hits, ScoringContext())[0].node == 1


def test_events_from_the_future_are_as_recent_as_those_of_now() -> None:
    scorer = Scorer({"recency": 1.0})
    assert scorer.rank([HIT], ScoringContext(now=0))[0].score == 1.0


def test_equal_scores_keep_the_order_of_nodes() -> None:
    hits = [replace(HIT, node=n) for n in (2, 0, 1)]
    assert [h.node for h in Scorer().rank(hits, ScoringContext())] == [0, 1, 2]


def test_a_feature_of_ones_own_takes_part() -> None:
    scorer = Scorer({"even": 2.0}, features={"even": lambda hit, _: float(hit.node % 2 == 0)})
    assert scorer.rank([HIT], ScoringContext())[0].score == 2.0


def test_a_weight_for_an_unknown_feature_names_those_that_exist() -> None:
    with pytest.raises(UnknownError, match=r"'similarty'.*similarity, recency, reward"):
        Scorer({"similarty": 1.0})


@pytest.mark.parametrize(
    ("weights", "kw", "error"),
    [
        ({"similarity": float("nan")}, {}, InvalidInputError),
        (None, {"mode": "product"}, InvalidInputError),
        (None, {"floor": 0.0}, InvalidInputError),
    ],
)
def test_bad_weights_and_modes_are_typed_errors(
    weights: dict[str, float] | None, kw: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Scorer(weights, **kw)  # type: ignore[arg-type]


def test_a_hit_keeps_all_but_what_the_score_made_when_it_is_ranked() -> None:
    its: dict[str, Any] = {one.name: f"its {one.name}" for one in fields(Hit)}
    given = Hit(**{**its, "path": ()})
    scorer = Scorer({"one": 1.0}, features={"one": lambda *_: 1.0})
    (ranked,) = scorer.rank([given], ScoringContext())
    changed = {one.name for one in fields(Hit) if getattr(given, one.name) != ranked[one.name]}
    # The chance that it is wanted went with the score.
    assert changed == {"score", "factors", "relevance"}
