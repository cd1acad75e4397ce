from __future__ import annotations

import numpy as np
import pytest

from cvx.errors import InvalidInputError
from cvx.evaluation import (
    Answer,
    Label,
    baselines,
    measure,
    recalling,
    resolved,
    table,
)
from cvx.evaluation.metrics import Report
from cvx.memory import Memory
from tests.evaluation.generated_talk import generated_talk


def label(*gold: int, category: str = "") -> Label:
    return Label(query="q", gold=frozenset(gold), category=category)


def measured(answers: list[Answer], labels: list[Label]) -> Report:
    given = iter(answers)
    gold = [frozenset(int(event) for event in one.gold) for one in labels]
    return measure("fixed", lambda _label, _k: next(given), labels, gold, at=(1, 2))


def test_means_are_over_the_questions_that_a_metric_is_about() -> None:
    labels = [label(1), label(1, 2, category="list"), label(), label(3)]
    answers = [
        Answer((1, 5), 4, 0.9),
        Answer((5, 2), 2, 0.8),
        Answer((), 0, 0.2),
        Answer((), 0, 0.6),
    ]
    found = measured(answers, labels)
    mean = {name: value.mean for name, value in found.metrics.items()}
    assert mean["recall@1"] == pytest.approx(1 / 3)
    assert mean["recall@2"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert mean["mrr"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert mean["empty"] == pytest.approx(1 / 3)
    assert mean["turned away"] == 1.0
    assert mean["tokens"] == pytest.approx(1.5)
    assert found.categories["list"]["recall@2"].mean == 0.5
    assert found.calibration["brier"] == pytest.approx(np.mean([0.01, 0.04, 0.04, 0.16]))


def test_a_ranker_without_probabilities_has_no_calibration() -> None:
    assert measured([Answer((1,))], [label(1)]).calibration == {}


def test_no_questions_measure_nothing() -> None:
    with pytest.raises(InvalidInputError, match="0 labels"):
        measured([], [])


def test_a_table_has_a_line_for_each_ranker_and_category() -> None:
    found = measured([Answer((1,)), Answer((2,))], [label(1, category="a"), label(1)])
    lines = table([found, found], ["recall@1", "turned away"]).splitlines()
    assert [line.split()[0] for line in lines] == ["recall@1", "fixed", "a", "fixed", "a"]
    assert "50.0 [0-100]" in lines[1]
    assert lines[1].endswith("-")


def test_every_baseline_and_the_memory_answer_what_stands_in_one_turn(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=4)
    gold = resolved(memory, labels)
    for name, ranker in {**baselines(memory), "memory": recalling(memory)}.items():
        found = measure(name, ranker, labels, gold, at=(len(memory),))
        assert found.metrics[f"recall@{len(memory)}"].mean > 0.9, name
        assert all(len(set(a.ranked)) == len(a.ranked) for a in found.answers), name


def test_a_baseline_keeps_to_the_namespace_and_the_speaker(memory: Memory) -> None:
    memory.add("a red canoe", namespace="other")
    mine = memory.add("a red canoe", entity="1").id
    memory.add("a red canoe once more", entity="2")
    asked = Label(query="red canoe", gold=frozenset({mine}), speaker=1)
    for name, ranker in {**baselines(memory), "memory": recalling(memory)}.items():
        assert ranker(asked, 5).ranked == (mine,), name


def test_a_namespace_that_holds_nothing_is_answered_by_nothing(memory: Memory) -> None:
    memory.add("the kettle is blue")
    asked = Label(query="which colour is the kettle?", gold=frozenset(), namespace="nobody")
    for ranker in (*baselines(memory).values(), recalling(memory)):
        assert ranker(asked, 5).ranked == ()


def test_the_memory_beats_its_ingredients_on_talk(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=24)
    gold = resolved(memory, labels)
    reached = {
        name: measure(name, ranker, labels, gold, at=(3,)).metrics["recall@3"].mean
        for name, ranker in {**baselines(memory), "memory": recalling(memory)}.items()
    }
    assert reached["memory"] == max(reached.values())
    assert reached["memory"] > reached["dense"] + 0.1
