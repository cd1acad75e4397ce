from __future__ import annotations

import numpy as np
import pytest

from cvx.errors import InvalidInputError
from cvx.evaluation import Label, tables, tune
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
    assert max(fitted.weights, key=lambda name: fitted.weights[name]) == telling
    assert fitted.measured == ("g2", "g3")


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
    found = tables(memory, default_pipeline(), labels, [label.gold for label in labels])
    for label, one in zip(labels, found, strict=True):
        assert one.columns.shape == (len(one.events), len(COLUMNS))
        assert np.isfinite(one.columns).all()
        assert one.gold == label.gold


@pytest.mark.requirement("R6")
def test_tuning_measures_what_it_did_not_fit_and_changes_nothing(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=12)
    before = memory.admin.stats()["seq"]
    found = memory.learning.tune(labels, folds=4)
    assert {one.metrics["recall@5"].n for one in (found.before, found.after)} == {len(labels)}
    # The same folds, fitted to all questions of other groups.
    groups = sorted({str(label.group) for label in labels})
    assert len(groups) == 4
    gold = [label.gold for label in labels]
    every = tables(memory, memory.learning.pipeline, labels, gold)
    fitted = [tune(every, labels, [one for one in groups if one != out]) for out in groups]
    assert all(one.measured == (out,) for one, out in zip(fitted, groups, strict=True))
    assert memory.admin.stats()["seq"] == before
