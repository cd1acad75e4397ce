"""The figures count every game once, and pair what belongs together."""

from __future__ import annotations

import pytest

pytest.importorskip("statsmodels")

from experiments.harness.figures import periods, scored, summary
from experiments.harness.report import rate
from experiments.harness.setup import conditions
from experiments.tests.harness.hat_domain import played, small


def test_the_summary_counts_every_game_once_and_pairs_by_game() -> None:
    setup = small(protocol="stream", seeds=2, games_per_round=2, measured=0)
    games = [played("full", s, p) for s in range(2) for p in range(4)]
    games += [played("none", s, p, won=p == 0, steps=50) for s in range(2) for p in range(4)]
    found = summary(setup, games)
    none = found["arms"]["none"]
    assert [r["success"]["mean"] for r in none["rounds"]] == [0.5, 0.0]
    assert (none["all"]["games"], none["all"]["distinct"]) == (8, 4)
    assert found["arms"]["full"]["all"]["ms_per_decision"] == pytest.approx(0.5)
    assert found["differences"]["none"]["all"]["mean"] == 0.75
    assert found["differences"]["none"]["late"]["mean"] == 1.0
    assert found["differences"]["none"]["steps"]["mean"] == -40.0
    for word in ("games of hats", "demonstrations", "30 steps", "agent", "stream"):
        assert word in conditions(setup)


@pytest.mark.requirement("V21")
def test_only_measured_games_are_judged_where_the_protocol_measures() -> None:
    setup = small(rounds=1, games_per_round=2, measured=2)
    games = [played(place=p, round=0, measured=True, won=False) for p in (0, 1)]
    games += [played(place=p, round=0, won=False, game=f"own {p}") for p in (2, 3)]
    games += [played(place=p, round=1, measured=True, game=f"game {p - 4}") for p in (4, 5)]
    full = summary(setup, games)["arms"]["full"]
    assert [row["success"]["mean"] for row in full["rounds"]] == [0.0, 1.0]
    assert full["area"] == 0.5
    assert full["gain"]["mean"] == 1.0
    assert full["practice"] == [{"round": 0, "success": 0.0}]
    assert full["seeds"] == {"0": {"early": 0.0, "late": 1.0}}
    assert full["steps_saved"] is None, "no game was won both times"


def test_late_is_the_last_third_while_learning_and_the_last_point_when_measured() -> None:
    assert periods(small(protocol="repeat", rounds=10, measured=0)) == ([0, 1, 2], [7, 8, 9])
    assert periods(small(protocol="stream", rounds=2, measured=0)) == ([0], [1])
    assert periods(small(rounds=10, measured_after=(0, 5, 10))) == ([0], [10])


def test_the_area_of_a_curve_is_compared_game_by_game() -> None:
    setup = small(protocol="repeat", rounds=3, games_per_round=2, measured=0)
    games = [played("full", 0, p, game=f"game {p % 2}") for p in range(6)]
    games += [played("none", 0, p, game=f"game {p % 2}", won=p >= 4) for p in range(6)]
    found = summary(setup, games)
    assert found["arms"]["none"]["area"] == pytest.approx(0.25)
    assert found["differences"]["none"]["area"]["mean"] == pytest.approx(0.75)


@pytest.mark.requirement("V21")
def test_contamination_is_the_share_of_successes_by_round() -> None:
    setup = small(protocol="stream", games_per_round=2, measured=0, arms=("full", "e7c"))
    games = []
    for arm, advising in (("full", 0), ("e7c", 6)):
        for place in range(4):
            failures = 6 if place >= 2 else 0
            games.append(
                played(
                    arm, place=place, failures_held=failures,
                    failures_advising=advising if failures else 0,
                )
            )  # fmt: skip
    arms = summary(setup, games)["arms"]
    for arm, advice in (("full", 1.0), ("e7c", 0.5)):
        first, second = arms[arm]["held"]
        assert (first["share_of_all"], first["share_of_advice"]) == (1.0, 1.0)
        assert (second["share_of_all"], second["share_of_advice"]) == (0.5, advice)


def test_all_comparisons_of_a_table_are_corrected_together() -> None:
    setup = small(protocol="stream", seeds=2, rounds=3, arms=("full", "none", "frozen"), measured=0)
    games = [played("full", s, p) for s in range(2) for p in range(6)]
    for arm in ("none", "frozen"):
        games += [played(arm, s, p, won=p % 3 > 0) for s in range(2) for p in range(6)]
    for one in summary(setup, games)["differences"].values():
        for kind in ("late", "area"):
            assert one[kind]["p_corrected"] >= min(1.0, 2 * one[kind]["p"])


def test_a_score_is_shown_where_games_can_be_won_in_part() -> None:
    setup = small(protocol="stream", rounds=1, games_per_round=2, measured=0, arms=("full",))
    whole = summary(setup, [played(place=p, round=0) for p in range(2)])
    part = summary(
        setup, [played(place=p, round=0, won=p > 0, score=(0.5, 1.0)[p]) for p in range(2)]
    )
    assert not scored(whole)
    assert scored(part)
    assert part["arms"]["full"]["late"]["score"] == 0.75


def test_a_memory_of_failures_alone_holds_no_success_and_an_empty_one_has_no_share() -> None:
    setup = small(protocol="stream", rounds=1, games_per_round=1, measured=0, arms=("full", "none"))
    games = [
        played("full", round=0, wins_held=0, failures_held=2),
        played("none", round=0, wins_held=0),
    ]
    arms = summary(setup, games)["arms"]
    failed, empty = arms["full"]["held"][0], arms["none"]["held"][0]
    assert (failed["share_of_all"], failed["share_of_advice"]) == (0.0, None)
    assert (empty["share_of_all"], empty["share_of_advice"]) == (None, None)


def test_what_has_no_game_has_no_rate() -> None:
    setup = small(rounds=1, games_per_round=2, measured=2)
    games = [played(place=p, round=0, measured=True) for p in (0, 1)]
    full = summary(setup, games)["arms"]["full"]
    assert [row["games"] for row in full["rounds"]] == [2, 0]
    assert full["rounds"][0]["success"]["mean"] == 1.0
    assert full["rounds"][1]["success"] is None
    assert rate(full["rounds"][1]["success"]) == "-"
    assert full["area"] is None
    assert full["seeds"] == {"0": {"early": 1.0, "late": None}}
