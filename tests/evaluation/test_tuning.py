from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.evaluation import Label, resolved, split, tables, tune
from cvx.evaluation.tuning import Table, calibrated_floor, evaluate, evidence, foreign_cues
from cvx.memory import Memory
from cvx.recall.floor import Answerable
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


@given(st.lists(st.sampled_from("abcdef"), min_size=2).filter(lambda g: len(set(g)) > 1),
       st.integers(0, 3))  # fmt: skip
def test_a_split_gives_every_group_to_one_part(groups: list[str], seed: int) -> None:
    labels = [Label(query="q", gold=frozenset({1}), group=group) for group in groups]
    train, rest = split(labels, seed=seed)
    assert sorted(train + rest) == sorted(set(groups))
    assert train
    assert rest
    assert split(labels, seed=seed) == (train, rest)


def test_a_split_that_leaves_nothing_to_measure_is_refused() -> None:
    labels = [Label(query="q", gold=frozenset({1}), group=group) for group in "ab"]
    for train in (["a", "b"], [], ["c"]):
        with pytest.raises(InvalidInputError):
            split(labels, train)


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


def test_a_floor_turns_foreign_questions_away_and_answers_its_own(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=24)
    train, rest = split(labels)
    mine = [label for label in labels if label.group in train]
    floor = calibrated_floor(memory, default_pipeline(), mine)
    pipeline = default_pipeline(answerable=floor)
    asked = [label.query for label in labels if label.group in rest]
    answered = [bool(memory.recall(query, pipeline=pipeline)) for query in asked]
    foreign = [bool(memory.recall(cue, pipeline=pipeline)) for cue in foreign_cues(100)]
    assert np.mean(answered) > 0.9
    assert np.mean(foreign) < 0.1
    assert evidence(memory, default_pipeline(), mine).shape == (len(mine), 4)


def test_foreign_questions_differ_between_the_halves_and_not_between_runs() -> None:
    one, other = foreign_cues(150, half="calibrate"), foreign_cues(150, half="measure")
    assert not set(one) & set(other)
    assert len(set(one)) == len(set(other)) == 150
    assert foreign_cues(150) == other
    assert foreign_cues(150, seed=1) != other


@pytest.mark.requirement("R6")
def test_an_evaluation_measures_what_it_did_not_fit_and_changes_nothing(memory: Memory) -> None:
    labels = generated_talk(memory, sessions=12)
    before = memory.admin.stats()["seq"]
    found = evaluate(memory, labels, tune=True, floor=True, at=(3, 5))
    names = [one.name for one in found.measured]
    assert names[-3:] == ["this memory", "tuned", "with a floor"]
    assert found.tuned is not None
    assert not set(found.trained) & set(found.tuned.measured)
    kept = [label for label in labels if label.group not in found.trained]
    assert {one.metrics["recall@3"].n for one in found.measured} == {len(kept)}
    assert found.measured[-1].calibration
    assert memory.admin.stats()["seq"] == before
    assert set(found.as_json()) == {"measured", "fitted to", "weights", "floor"}


@pytest.mark.requirement("R6")
def test_an_evaluation_of_a_memory_with_a_preset_tunes_the_formula_of_the_preset() -> None:
    memory = Memory(embedder=LexicalEmbedder(), preset="retrieval-augmented")
    labels = generated_talk(memory, sessions=8)
    fitted = evaluate(memory, labels, tune=True).tuned
    assert fitted is not None
    assert set(fitted.weights) == {"similarity", "recency", "salience"}
    # Of the size that the floor of scores of the preset is for.
    assert sum(map(abs, fitted.weights.values())) == pytest.approx(1.0, abs=1e-3)
    memory.learning.recall_with(fitted.weights)
    assert memory.learning.weights == fitted.weights
    with pytest.raises(InvalidInputError, match="floor of scores"):
        evaluate(memory, labels, floor=True)
    with pytest.raises(InvalidInputError, match="preset 'retrieval-augmented'"):
        memory.learning.recall_with(answerable=Answerable((1.0,) * 4, -1.0, 0.5))
