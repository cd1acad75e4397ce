"""What the loop expects of its decisions, what becomes of that, and what its weights compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from cvx.scoring import calibration
from cvx.scoring.off_policy import PlackettLuce
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Decision
from tests.cli.command import Cvx

DIM = 128
VIEWS = ("a kitchen", "a sink", "a shelf")


def play(am: ActiveMemory, game: int, reward: float) -> list[Decision]:
    run = am.begin(f"game {game}", "clean" if game % 2 else "heat")
    decisions = []
    for view in VIEWS:
        decision = am.recall(Cue(step=f"{view} {game}"))
        best = decision.hits[game % len(decision.hits)] if decision.hits else None
        action = best.action if best else f"go to {view}"
        decisions.append(am.act(decision, action, followed=[best] if best else []))
    am.close(run, reward)
    return decisions


def played(games: int = 12, **kw: object) -> tuple[ActiveMemory, list[list[Decision]]]:
    am = ActiveMemory(TemporalIndex(DIM), k=4, **kw)  # type: ignore[arg-type]
    return am, [play(am, game, float(game % 3 > 0)) for game in range(games)]


@pytest.mark.requirement("B6")
def test_every_decision_keeps_what_was_expected_of_it_before_it_was_known() -> None:
    am, games = played()
    assert all(one.predicted is None for one in games[0]), "nothing was known then"
    expected = [one.predicted for game in games[2:] for one in game]
    assert all(p is not None and 0.0 < p < 1.0 for p in expected)
    logged = {row["decision_id"]: row["record"].get("predicted") for row in am.record.decisions()}
    for game in games:
        for one in game:
            assert logged[one.decision_id] == one.predicted


@pytest.mark.requirement("B6", "V12")
def test_followed_advice_is_judged_by_the_learned_weights_and_anything_else_by_its_region() -> None:
    am, _ = played()
    assert am.weights is not None
    assert am.mdp is not None
    am.begin("game 12", "heat")
    told = am.recall(Cue(step="a kitchen 12"))
    values = [{factor.name: factor.value for factor in hit.factors} for hit in told.hits[:3:2]]
    each = am.weights.predict([[one[name] for name in am.weights.names] for one in values])
    assert abs(each[0] - each[1]) > 1e-4
    assert told.region is not None
    by_region = am.mdp.success(told.region, "go_to", "heat")
    assert by_region is not None
    assert abs(by_region - each.mean()) > 1e-3
    followed = am.act(told, "go to a sink", told.hits[:3:2])
    assert followed.predicted == pytest.approx(each.mean())
    # Nobody's advice was taken: what is left is where it is, and what is done.
    alone = am.act(am.recall(Cue(step="a kitchen 12")), "go to a sink", followed=[])
    assert alone.predicted == pytest.approx(by_region)


@pytest.mark.requirement("B6")
def test_stats_judge_the_predictions_by_what_happened() -> None:
    am, games = played()
    told = am.stats()["calibration"]
    known = [
        (one.predicted, float(number % 3 > 0), number)
        for number, game in enumerate(games)
        for one in game
        if one.predicted is not None
    ]
    p, y, group = (np.array(column) for column in zip(*known, strict=True))
    naive = calibration(p, y, group)
    assert told["n"] == len(known)
    assert told["groups"] == len(set(group.tolist()))
    assert told["brier"][0] == pytest.approx(naive.brier.value)
    assert told["ece"][0] == pytest.approx(naive.ece.value)


def test_a_loop_that_learned_nothing_has_no_prediction_to_judge() -> None:
    am = ActiveMemory(TemporalIndex(DIM), mdp=None, weights=None, scorer=None)
    play(am, 0, 1.0)
    assert am.stats() | {"calibration": None} == {
        "episodes": 1, "won": 1, "samples": None, "weights": None, "selection": None,
        "calibration": None,
    }  # fmt: skip
    assert am.stats()["calibration"] is None


@pytest.mark.requirement("B6")
def test_the_memory_and_the_command_tell_the_same(tmp_path: Path) -> None:
    cvx = Cvx(tmp_path / "store")
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder(dim=64)) as memory:
        assert memory.admin.stats()["calibration"] is None
        for game in range(6):
            play(memory.learning.active, game, float(game % 3 > 0))
        told = memory.admin.stats()["calibration"]
    assert told["n"] >= 12
    assert cvx("stats", "--json").json["calibration"] == json.loads(json.dumps(told))
    assert (
        f"{told['n']} of {told['groups']} episodes, Brier {told['brier'][0]:.3f}"
        in cvx("stats").out
    )


@pytest.mark.requirement("B6")
def test_a_row_of_the_record_that_is_no_json_spoils_no_count() -> None:
    am, _ = played(6)
    before = am.stats()["calibration"]["n"]
    with am.record.transaction() as write:
        write.connection.execute("UPDATE decisions SET record = '{' WHERE decision_id = 17")
    assert am.stats()["calibration"]["n"] == before - 1


@pytest.mark.requirement("V12", "B5")
def test_a_sampled_order_lets_weights_compare_with_what_was_not_recalled() -> None:
    fixed, _ = played()
    assert "says nothing of what was not retrieved" in fixed.stats()["selection"]

    am = ActiveMemory(TemporalIndex(DIM), k=4, order=PlackettLuce(seed=3))
    am.add_demonstration("game", [(view, f"go to {view}") for view in VIEWS], "clean")
    am.add_demonstration("game", [(view, f"look at {view}") for view in VIEWS], "heat")
    games = [play(am, game, float(game % 3 > 0)) for game in range(12)]
    for game in games:
        for one in game:
            assert one.propensities is not None
            assert len(one.propensities) == len(one.hits)
            assert all(0.0 < chance <= 1.0 for chance in one.propensities)
    assert am.weights is not None
    assert am.weights.selection.kind == "sampled"
    assert am.weights.selection.effective < am.weights.selection.samples
    assert [hit.score for hit in games[-1][0].hits] != sorted(
        (hit.score for hit in games[-1][0].hits), reverse=True
    )


@pytest.mark.requirement("V12")
def test_reopened_weights_learn_on_as_if_never_closed() -> None:
    am, _ = played(order=PlackettLuce(seed=3))
    again = ActiveMemory(am.index, record=am.record, k=4, order=PlackettLuce(seed=3))
    assert am.weights is not None
    assert again.weights is not None
    x, y, p = am.weights._samples
    np.testing.assert_array_equal(again.weights._samples.features, x)
    np.testing.assert_array_equal(again.weights._samples.labels, y)
    np.testing.assert_array_equal(again.weights._samples.propensities, p)
