from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (  # type: ignore[import-untyped]
    label_ranking_average_precision_score,
    ndcg_score,
)

from cvx.errors import InvalidInputError
from cvx.evaluation.metrics import ndcg_at, recall_at, reciprocal_rank

RANKED = st.permutations(range(12))
GOLD = st.sets(st.integers(0, 11), min_size=1, max_size=8)


@given(RANKED, GOLD, st.integers(1, 12))
def test_ndcg_is_that_of_scikit_learn(ranked: list[int], gold: set[int], k: int) -> None:
    relevance = [[float(item in gold) for item in ranked]]
    places = [[-float(place) for place in range(len(ranked))]]
    assert ndcg_at(ranked, gold, k) == pytest.approx(ndcg_score(relevance, places, k=k))


@given(RANKED, st.integers(0, 11))
def test_with_one_answer_the_reciprocal_rank_is_average_precision(
    ranked: list[int], answer: int
) -> None:
    relevance = [[item == answer for item in ranked]]
    places = [[-float(place) for place in range(len(ranked))]]
    expected = label_ranking_average_precision_score(relevance, places)
    assert reciprocal_rank(ranked, {answer}) == pytest.approx(expected)


@given(RANKED, GOLD, st.integers(1, 12))
def test_recall_counts_the_answers_that_were_found(
    ranked: list[int], gold: set[int], k: int
) -> None:
    found = [item for place, item in enumerate(ranked) if place < k and item in gold]
    assert recall_at(ranked, gold, k) == pytest.approx(len(found) / len(gold))
    assert recall_at(ranked, gold, len(ranked)) == 1.0


@given(RANKED, GOLD, st.integers(1, 11), st.integers(0, 11))
def test_an_answer_moved_up_never_costs(
    ranked: list[int], gold: set[int], k: int, place: int
) -> None:
    better = sorted(ranked[: place + 1], key=lambda item: item not in gold) + ranked[place + 1 :]
    for metric in (ndcg_at, recall_at):
        assert metric(better, gold, k) >= metric(ranked, gold, k) - 1e-12
    assert reciprocal_rank(better, gold) >= reciprocal_rank(ranked, gold)


@pytest.mark.parametrize("metric", [recall_at, ndcg_at])
def test_questions_without_an_answer_have_no_ranking_to_measure(metric: object) -> None:
    with pytest.raises(InvalidInputError, match="gold is empty"):
        metric([1, 2], set(), 5)  # type: ignore[operator]
