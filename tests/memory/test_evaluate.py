"""Measuring and tuning a memory's recall through ``memory.learning``."""

from pathlib import Path

import pytest

from cvx import Cue, LexicalEmbedder, Memory
from cvx.errors import InvalidInputError, NamespaceError, UnknownError
from tests.evaluation.generated_talk import generated_talk

pytestmark = pytest.mark.requirement("B20")


def two_facts() -> Memory:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("the spare key is under the green pot")
    memory.add("it rained all night")
    return memory


def test_a_report_says_what_share_of_the_answers_was_found() -> None:
    memory = two_facts()
    report = memory.learning.evaluate([("where is the key?", 1), (Cue("key?"), [2])], k=1)
    assert report.metrics["recall@1"].mean == 0.5
    assert report.metrics["mrr"].n == 2
    assert "recall@1" in str(report)
    found = memory.learning.evaluate([("where is the key?", memory.get(1))])
    assert set(found.metrics) >= {"recall@5", "recall@10", "recall@20", "ndcg@5", "empty"}


def test_evaluating_changes_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        memory.add("the spare key is under the green pot")
        memory.learning.evaluate([("where is the key?", 1)])
        # As new as any other text: it was not handed out.
        assert memory.add("the spare key is under the green pot").id == 2
        memory.erase(2)
        assert memory.frames.decisions().is_empty()
        assert not memory.record.query("SELECT * FROM usage")


def test_questions_that_are_none_are_refused_by_their_place() -> None:
    memory = two_facts()
    evaluate = memory.learning.evaluate
    for questions, said in (
        ([], "0 labels"),
        ("where?", r"questions is 'where\?'"),
        (["where?"], r"questions\[0\]"),
        ([("where?", 1), ("when?",)], r"questions\[1\]"),
        ([(7, 1)], "cue is 7"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            evaluate(questions)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="k is 0"):
        evaluate([("where?", 1)], k=0)
    with pytest.raises(InvalidInputError, match="weights name colour"):
        evaluate([("where?", 1)], weights={"colour": 1.0})
    with pytest.raises(UnknownError):
        evaluate([("where?", 99)])
    with pytest.raises(
        InvalidInputError, match=r"at least 2 groups of questions.*; there is 1: give more"
    ):
        memory.learning.tune([("where?", 1)])


def test_a_bound_memory_measures_what_it_sees_and_keeps_nothing() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    secret = memory.add("bo keeps a secret", namespace="bo")
    ana = memory.within("ana")
    own = ana.add("ana keeps bees")
    assert ana.learning.evaluate([("who keeps bees?", own)]).metrics["mrr"].mean == 1.0
    with pytest.raises(UnknownError):
        ana.learning.evaluate([("who has a secret?", secret)])
    tuning = ana.learning.tune([("who keeps bees?", own), ("who are bees kept by?", own)], 2)
    with pytest.raises(NamespaceError):
        tuning.apply()


def test_tuning_is_measured_on_what_it_was_not_fitted_to_and_kept_once_applied(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        labels = generated_talk(memory, sessions=8)
        shipped = memory.learning.weights
        tuning = memory.learning.tune(labels, folds=4)
        assert (
            tuning.before.metrics["recall@5"]
            == (memory.learning.evaluate(labels).metrics["recall@5"])
        )
        assert tuning.after.metrics["recall@5"].n == len(labels)
        assert memory.learning.weights == shipped
        assert str(tuning).count("\n") > 1
        tuning.apply()
        total = sum(weight for weight in tuning.weights.values() if weight > 0)
        expected = {name: one / total for name, one in tuning.weights.items()}
        assert memory.learning.weights == pytest.approx(expected)
    with Memory.open(tmp_path) as again:
        assert again.learning.weights == pytest.approx(expected)


def test_the_relevance_of_what_was_recalled_is_held_against_feedback() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    assert memory.learning.calibration("recall") is None
    key = memory.add("the spare key is under the green pot")
    lock = memory.add("the spare key was lost in spring")
    shown = memory.recall("where is the spare key?")
    assert {hit.id for hit in shown} == {key.id, lock.id}
    memory.feedback(shown, helped=[key])
    memory.feedback(memory.context("where is the key?"), helped=[])
    memory.recall("nobody says whether this key helped")
    found = memory.learning.calibration("recall")
    assert found is not None
    assert (found.n, found.groups, found.base_rate) == (4, 2, 0.25)
    assert memory.learning.calibration() is None
    with pytest.raises(InvalidInputError, match="give 'advice' or 'recall'"):
        memory.learning.calibration("weather")
