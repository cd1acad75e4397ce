from __future__ import annotations

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.evaluation import Label, cross_validated, resolved, tables, tune
from cvx.evaluation.tuning import Table
from cvx.memory import Memory
from cvx.recall.presets import default_pipeline
from cvx.recall.ranking_signals import COLUMNS
from tests.evaluation.generated_talk import generated_talk


def made_up(questions: int, telling: str, seed: int) -> tuple[list[Table], list[Label]]:
    """Return tables in which one column alone tells the answer."""
    rng = np.random.default_rng(seed)
    found, labels = [], []
    for number in range(questions):
        columns = rng.random((20, len(COLUMNS)))
        answer = int(rng.integers(20))
        columns[answer, COLUMNS.index(telling)] += 1.0
        found.append(Table(columns, np.arange(20), frozenset({answer})))
        labels.append(Label(query="q", gold=frozenset({answer}), group=f"g{number % 4}"))
    return found, labels


@pytest.mark.requirement("R6")
@pytest.mark.parametrize("telling", ["speaker", "residual"])
def test_the_column_that_tells_gets_the_largest_weight(telling: str) -> None:
    fitted = tune(*made_up(80, telling, 0), ["g0", "g1"])
    assert max(fitted, key=lambda name: fitted[name]) == telling


def test_what_is_measured_is_not_fitted_to() -> None:
    found, labels = made_up(80, "speaker", 0)
    other = [
        table._replace(columns=table.columns[::-1]) if label.group in ("g2", "g3") else table
        for table, label in zip(found, labels, strict=True)
    ]
    train = ["g0", "g1"]
    assert tune(found, labels, train) == tune(other, labels, train)


def test_no_answer_among_the_candidates_fits_nothing() -> None:
    found, labels = made_up(4, "speaker", 0)
    empty = [table._replace(gold=frozenset({99})) for table in found]
    with pytest.raises(InvalidInputError, match="label more"):
        tune(empty, labels, ["g0"])


def test_tables_hold_every_column_of_every_candidate(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=2)
    found = tables(memory, default_pipeline(), labels, resolved(memory, labels))
    for label, one in zip(labels, found, strict=True):
        assert one.columns.shape == (len(one.events), len(COLUMNS))
        assert np.isfinite(one.columns).all()
        assert one.gold == label.gold


@pytest.mark.requirement("R6")
def test_a_tuning_measures_every_question_by_weights_of_others_and_changes_nothing(
    memory: Memory,
) -> None:
    labels = generated_talk(memory, sessions=12)
    before = memory.admin.stats()["seq"]
    found = cross_validated(memory, labels, resolved(memory, labels), 3, at=(3, 5))
    for report in (found.before, found.after):
        assert report.metrics["recall@3"].n == len(labels)
    assert memory.admin.stats()["seq"] == before
    other = Memory(embedder=LexicalEmbedder())
    again = generated_talk(other, sessions=12)
    assert other.learning.tune(again, 3).weights == found.weights


@pytest.mark.parametrize("folds", [1, 5])
def test_parts_that_questions_do_not_fill_are_refused(memory: Memory, folds: int) -> None:
    labels = generated_talk(memory, sessions=8)
    gold = resolved(memory, labels)
    with pytest.raises(InvalidInputError, match="folds is"):
        cross_validated(memory, labels, gold, folds)
    with pytest.raises(InvalidInputError, match="at least 2 groups"):
        cross_validated(memory, labels[:1], gold[:1], folds)


@pytest.mark.requirement("R6")
def test_tuning_a_memory_with_a_preset_fits_the_formula_of_the_preset() -> None:
    memory = Memory(embedder=LexicalEmbedder(), preset="retrieval-augmented")
    fitted = memory.learning.tune(generated_talk(memory, sessions=8), 2)
    assert set(fitted.weights) == {"similarity", "recency", "salience"}
    # Of the size that the floor of scores of the preset is for.
    assert sum(map(abs, fitted.weights.values())) == pytest.approx(1.0, abs=1e-3)
    fitted.apply()
    assert memory.learning.weights == fitted.weights
