"""Predicting how tasks end: the protocol of the tau-bench table, on tasks made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]

from benches.learning.pairs import pair_auc, pooled_auc
from benches.learning.tasks import Tasks, complexity, known_words
from benches.learning.tau_bench import (
    base_rate,
    from_other_trials,
    from_similar,
    from_words,
    judged,
    main,
    one_left_out,
)

HARD = ("refund the ticket of my cousin", "refund two tickets and the bags of my cousin")
EASY = ("change the seat on my flight", "change the meal on my flight to London")


def tasks(n: int = 24, seed: int = 0) -> Tasks:
    """Tasks of two kinds: refunds fail three times in four, changes succeed as often."""
    rng = np.random.default_rng(seed)
    texts = [f"{(HARD if task % 2 else EASY)[task // 2 % 2]} {task}" for task in range(n)]
    chance = np.where(np.arange(n) % 2, 0.25, 0.75)
    return Tasks.of(texts, (rng.random((n, 4)) < chance[:, None]).astype(float))


def test_pooled_auc_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.integers(0, 2, (9, 3)).astype(float)
    chances = rng.integers(0, 5, (9, 3)) / 5
    found = pooled_auc(outcomes, chances)
    assert found.value == pytest.approx(roc_auc_score(outcomes.ravel(), chances.ravel()))
    assert found.low < found.value < found.high


def test_pairs_favour_no_base_rate_where_one_left_out_does() -> None:
    some = tasks()
    alone = one_left_out(some, base_rate)
    assert pooled_auc(some.outcomes, alone).value < 0.4
    paired = pair_auc(some.outcomes, lambda known, pair: base_rate(some, known, pair))
    assert (paired.value, paired.low, paired.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("predict", [from_words, from_similar])
def test_what_other_tasks_tell_is_found_and_what_they_do_not_is_not(predict: object) -> None:
    assert callable(predict)
    some = tasks()
    told = pair_auc(some.outcomes, lambda known, pair: predict(some, known, pair))
    assert told.low > 0.55
    mixed = some.shuffled(seed=1)
    nothing = pair_auc(mixed.outcomes, lambda known, pair: predict(mixed, known, pair))
    assert nothing.low < 0.5 < nothing.high


def test_no_prediction_sees_the_outcome_that_it_is_of() -> None:
    some = tasks()
    for predict in (from_words, from_similar):
        before = predict(some, range(1, 24), [0])
        other = some.outcomes.copy()
        other[0] = 1.0 - other[0]
        np.testing.assert_array_equal(
            predict(Tasks.of(some.texts, other), range(1, 24), [0]), before
        )
    same = from_other_trials(some)
    changed = some.outcomes.copy()
    changed[5, 2] = 1.0 - changed[5, 2]
    assert from_other_trials(Tasks.of(some.texts, changed))[5, 2] == same[5, 2]


def test_other_trials_of_a_task_give_its_posterior() -> None:
    some = tasks()
    wins = some.outcomes.sum(axis=1, keepdims=True) - some.outcomes
    np.testing.assert_allclose(from_other_trials(some), (wins + 0.5) / 4.0, atol=1e-5)
    assert judged(some, from_other_trials(some)).groups == 24


def test_words_are_those_that_several_known_tasks_use() -> None:
    texts = ["refund it now"] * 5 + ["never seen elsewhere"]
    assert known_words(texts, range(5)).tolist() == [[1.0, 1.0]] * 5 + [[0.0, 0.0]]


def test_complexity_counts_words_sentences_conditions_numbers_denials_and_more() -> None:
    text = "Cancel it, if not booked. Then book 2 seats, unless above 300."
    counts = np.expm1(complexity(text))
    np.testing.assert_allclose(counts, [10, 2, 2, 2, 1, 1])


def test_without_the_data_it_says_what_it_skips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path)]) == 0
    assert "skipped" in capsys.readouterr().out
