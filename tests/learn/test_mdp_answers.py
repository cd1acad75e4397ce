"""What the region model answers, on a ruler whose regions are known by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.estimates import action_effect
from cvx.learn.region_mdp.trajectories import (
    FAILURE,
    SUCCESS,
    UNKNOWN,
    classify_action,
    default_level,
)
from cvx.types import Episode
from tests.learn.ruler import Ruler

TAKE, CLEAN, HEAT, OPEN = "take mug 1", "clean mug 1", "heat mug 1", "open box 1"


def model_of(ruler: Any, families: dict[int, str] | None = None, **kw: object) -> RegionMDP:
    model = RegionMDP(ruler, level=1, **kw)  # type: ignore[arg-type]
    entities = sorted({step.entity_id for _, step in ruler.nodes})
    model.learn_from_episodes(
        ruler,
        [Episode(entity_id=entity, task_type=(families or {}).get(entity)) for entity in entities],
    )
    return model


@pytest.mark.requirement("V1", "V3")
def test_reward_reaches_the_last_action() -> None:
    ruler = Ruler()
    ruler.play([0.5, 1.5], [TAKE, CLEAN], 1.0)
    model = model_of(ruler, score="mean")
    assert model.best_action(1) == [("clean", 1.0)]
    assert model.transition_probability(1, "clean", SUCCESS) == 1.0
    assert model.transition_probability(0, "take", 1) == 1.0


@pytest.mark.requirement("V1")
def test_transitions_are_counts_and_rewards_are_means() -> None:
    ruler = Ruler()
    ruler.play([0, 1], [TAKE, OPEN], 1.0)
    ruler.play([0, 2], [TAKE, OPEN], 0.25)
    ruler.play([0, 1], [TAKE, OPEN], 0.0)
    model = model_of(ruler, score="mean")
    assert model.transition_probability(0, "take", 1) == pytest.approx(2 / 3)
    assert model.transition_probability(0, "take", 2) == pytest.approx(1 / 3)
    action, mean = model.best_action(0)[0]
    assert action == "take"
    assert mean == pytest.approx(1.25 / 3)


@pytest.mark.requirement("V3")
@pytest.mark.parametrize(("reward", "end"), [(1.0, SUCCESS), (0.5, FAILURE), (None, UNKNOWN)])
def test_the_last_step_leads_to_the_outcome(reward: float | None, end: int) -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], reward)
    model = model_of(ruler)
    found = {s: model.transition_probability(0, "take", s) for s in (SUCCESS, FAILURE, UNKNOWN)}
    assert found == {s: float(s == end) for s in found}


@pytest.mark.requirement("V3")
def test_what_was_never_seen_has_probability_0() -> None:
    ruler = Ruler()
    ruler.play([0, 1], [TAKE, CLEAN], 1.0)
    model = model_of(ruler)
    assert model.transition_probability(0, "heat", 1) == 0.0
    assert model.transition_probability(5, "take", 1) == 0.0
    assert model.transition_probability(0, "take", 0) == 0.0


@pytest.mark.requirement("V3")
def test_success_is_a_reward_above_the_threshold_that_was_given() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 0.5)
    assert model_of(ruler).transition_probability(0, "take", FAILURE) == 1.0
    lenient = model_of(ruler, success_above=0.4)
    assert lenient.transition_probability(0, "take", SUCCESS) == 1.0
    assert lenient.success(0, "take") > model_of(ruler).success(0, "take")  # type: ignore[operator]


@pytest.mark.requirement("X22")
def test_the_chance_of_success_and_the_mean_reward_are_two_answers() -> None:
    ruler = Ruler()
    for action, rewards in ((CLEAN, (1.0, 0.5, 0.5)), (TAKE, (0.6, 0.6, 0.6))):
        for reward in rewards:
            ruler.play([0], [action], reward)
    mean, chance = model_of(ruler, score="mean"), model_of(ruler)
    assert [action for action, _ in mean.best_action(0)] == ["clean", "take"]
    assert dict(mean.best_action(0)) == pytest.approx({"clean": 2 / 3, "take": 0.6})
    assert mean.success(0, "clean") == pytest.approx(2 / 3)
    assert mean.region_quality(0) == pytest.approx(3.8 / 6)
    # Above one half is a success, one half is none: 1 of 3, and 3 of 3.
    assert [action for action, _ in chance.best_action(0)] == ["take", "clean"]
    for model in (mean, chance):
        found = [model.estimate(0, action) for action in ("clean", "take")]
        assert [(one.wins, one.trials) for one in found] == [(1, 3), (3, 3)]


@pytest.mark.requirement("X22")
@pytest.mark.parametrize(
    ("reward", "options", "won"),
    [
        (0.5, {}, False),
        (0.51, {}, True),
        (0.49, {}, False),
        (0.5, {"success_above": 0.4}, True),
        (0.4, {"success_above": 0.4}, False),
        (0.7, {"success_above": 0.8}, False),
    ],
)
def test_every_answer_means_the_same_by_success(
    reward: float, options: dict[str, Any], won: bool
) -> None:
    ruler = Ruler()
    ruler.play([0, 1], [TAKE, CLEAN], reward)
    ruler.play([0, 1], [TAKE, HEAT], 0.0)
    model = model_of(ruler, **options)
    assert model.estimate(1, "clean").wins == won
    assert model.strategy_for(0) == (("take", "clean") if won else ())
    assert model.strategy_for(77) == (("take", "clean") if won else ())
    assert model.region_sequences() == ([((0, 1), 1)] if won else [])
    assert model.moves()[1, "clean"] == {SUCCESS if won else FAILURE: 1}
    assert model.transition_probability(1, "clean", SUCCESS) == won
    assert (model.action_effect("clean").effect > 0) == won
    if not options:
        assert (action_effect(model.trajectories, "clean").effect > 0) == won
    again = RegionMDP.from_dict(ruler, json.loads(json.dumps(model.to_dict())))
    assert again.success_above == model.success_above
    assert again.estimate(1, "clean").wins == won


@pytest.mark.requirement("V3")
def test_an_estimate_is_the_documented_formula_worked_out_by_hand() -> None:
    ruler = Ruler()
    for x, action, reward in [(0, CLEAN, 1.0), (0, CLEAN, 1.0), (3, CLEAN, 0.0), (15, TAKE, 0.0)]:
        ruler.play([x], [action], reward)
    model = model_of(ruler, prior_strength=2.0)
    # Each trial counts once: in the smallest place that the question and it have in common.
    everything_else = (0 + 2 * 0.5) / (1 + 2)
    clean_here = (2 + 2 * ((0 + 2 * everything_else) / (1 + 2))) / (2 + 2)
    assert model.success(0, "clean") == pytest.approx(clean_here)
    # Nothing happened in unit 5: it borrows from its ten. Nothing in the twenties: from anywhere.
    clean = (2 + 2 * everything_else) / (3 + 2)
    assert model.success(5, "clean") == pytest.approx(clean)
    assert model.success(25, "clean") == pytest.approx(clean)
    assert model.region_quality(0) == pytest.approx(clean_here)


@pytest.mark.requirement("V3")
def test_one_success_beats_many_mostly_successful_tries_as_a_mean_only() -> None:
    ruler = Ruler()
    for reward in [1.0] * 27 + [0.0] * 3:
        ruler.play([0], [CLEAN], reward)
    for reward in [0.0] * 5:
        ruler.play([30], [TAKE], reward)
    ruler.play([0], [TAKE], 1.0)
    assert model_of(ruler, score="mean").best_action(0)[0] == ("take", 1.0)
    assert model_of(ruler).best_action(0)[0][0] == "clean"


@pytest.mark.requirement("V5", "X20")
def test_the_action_with_the_highest_chance_of_success_comes_first() -> None:
    ruler = Ruler()
    for _ in range(4):
        ruler.play([0, 1], [CLEAN, TAKE], 1.0)
        ruler.play([0, 2], [OPEN, TAKE], 0.0)
    ranked = model_of(ruler).best_action(0)
    assert [action for action, _ in ranked] == ["clean", "open"]
    assert 1 > ranked[0][1] > 0.7
    assert 0.3 > ranked[1][1] > 0


@pytest.mark.requirement("V5")
def test_successful_episodes_tell_which_regions_they_pass_through() -> None:
    ruler = Ruler()
    ruler.play([0, 0.5, 1, 2], [TAKE] * 4, 1.0)
    ruler.play([0, 1, 1.5, 2], [TAKE] * 4, 1.0)
    ruler.play([0, 7], [TAKE] * 2, 1.0)
    ruler.play([0, 9], [TAKE] * 2, 0.0)
    model = model_of(ruler, {0: "clean", 2: "clean"})
    assert model.region_sequences() == [((0, 1, 2), 2), ((0, 7), 1)]
    assert model.region_sequences(n=1) == [((0, 1, 2), 2)]
    assert model.region_sequences("clean") == [((0, 1, 2), 1), ((0, 7), 1)]
    assert model.region_sequences("heat") == []


def games_in_which_washing_helps() -> tuple[Any, dict[int, str]]:
    """Washing adds .3 to the chance of success; it is commoner where success is easy anyway."""
    rng = np.random.default_rng(0)
    ruler, families = Ruler(), {}
    for _ in range(400):
        hard = rng.random() < 0.5
        washes, opens = rng.random() < (0.2 if hard else 0.8), rng.random() < 0.5
        won = rng.random() < (0.1 if hard else 0.6) + 0.3 * washes
        actions = [TAKE, *[CLEAN] * washes, *[OPEN] * opens]
        entity = ruler.play([0, 1, 2][: len(actions)], actions, float(won))
        families[entity] = "hard" if hard else "easy"
    return ruler, families


@pytest.mark.requirement("V5")
def test_an_action_that_matters_has_an_effect_and_another_one_has_none() -> None:
    ruler, families = games_in_which_washing_helps()
    model = model_of(ruler, families)
    washing, opening = model.action_effect("clean"), model.action_effect("open")
    assert 0 < washing.low < 0.3 < washing.high
    assert opening.low < 0 < opening.high
    assert washing.with_action + washing.without_action == 400


@pytest.mark.requirement("V5")
def test_an_effect_is_measured_within_families_not_across_them() -> None:
    ruler, families = games_in_which_washing_helps()
    within = model_of(ruler, families).action_effect("clean").effect
    across = model_of(ruler).action_effect("clean").effect
    assert across > within + 0.1


@pytest.mark.requirement("V5")
def test_an_action_always_or_never_taken_says_nothing_about_its_effect() -> None:
    ruler = Ruler()
    for _ in range(3):
        ruler.play([0], [TAKE], 1.0)
    for action in ("take", "heat"):
        effect = model_of(ruler).action_effect(action)
        assert (effect.effect, effect.low, effect.high) == (0.0, -1.0, 1.0)


@pytest.mark.requirement("X20")
def test_each_family_of_goals_has_its_own_answers() -> None:
    ruler = Ruler()
    families = {}
    for family, won, lost in (("wash", CLEAN, HEAT), ("warm", HEAT, CLEAN)):
        for _ in range(4):
            families[ruler.play([0, 1], [TAKE, won], 1.0)] = family
            families[ruler.play([0, 1], [TAKE, lost], 0.0)] = family
    model = model_of(ruler, families)
    assert model.best_action(1, "wash")[0][0] == "clean"
    assert model.best_action(1, "warm")[0][0] == "heat"
    plain = dict(model.best_action(1))
    assert plain["clean"] == pytest.approx(plain["heat"])
    assert model.strategy_for(0, "wash") == ("take", "clean")
    assert model.strategy_for(0, "warm") == ("take", "heat")


@pytest.mark.requirement("X20")
def test_an_unknown_family_gets_the_answers_of_all() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 1.0)
    model = model_of(ruler, {0: "wash"})
    assert [action for action, _ in model.best_action(0, "never heard of")] == ["take"]
    assert model.strategy_for(0, "never heard of") == ("take",)


@pytest.mark.requirement("X20")
def test_a_region_in_which_episodes_win_is_better_than_one_in_which_they_lose() -> None:
    ruler = Ruler()
    families = {}
    for _ in range(10):
        families[ruler.play([0], [TAKE], 1.0)] = "wash"
        families[ruler.play([1], [TAKE], 0.0)] = "wash"
        families[ruler.play([1], [TAKE], 1.0)] = "warm"
    model = model_of(ruler, families)
    assert model.region_quality(0) > 0.9 > model.region_quality(1)
    assert model.region_quality(1, "wash") < 0.2
    assert model.region_quality(1, "warm") > 0.8
    mean = model_of(ruler, families, score="mean")
    assert [mean.region_quality(r) for r in (0, 1, 55)] == [1.0, 0.5, 0.5]
    assert mean.region_quality(1, "wash") == 0.0


@pytest.mark.requirement("V18")
def test_a_strategy_is_what_won_most_and_runs_of_one_kind_count_once() -> None:
    ruler = Ruler()
    for _ in range(3):
        ruler.play([0, 0, 1], [TAKE, TAKE, CLEAN], 1.0)
        ruler.play([0, 1], [TAKE, HEAT], 0.0)
    ruler.play([0, 1], [TAKE, HEAT], 1.0)
    model = model_of(ruler)
    assert model.strategy_for(0) == ("take", "clean")
    assert model.strategy_for(1) == ("clean",)


@pytest.mark.requirement("V18")
def test_a_strategy_for_a_region_never_seen_is_a_whole_episode() -> None:
    ruler = Ruler()
    ruler.play([0, 1], [TAKE, CLEAN], 1.0)
    assert model_of(ruler).strategy_for(77) == ("take", "clean")


@pytest.mark.requirement("V18")
def test_what_only_ever_lost_is_no_strategy() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 0.0)
    assert model_of(ruler).strategy_for(0) == ()


def test_a_region_never_seen_borrows_actions_unless_plain_means_are_asked_for() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 1.0)
    assert [action for action, _ in model_of(ruler).best_action(40)] == ["take"]
    assert model_of(ruler, score="mean").best_action(40) == []


def test_a_model_that_learned_nothing_says_nothing() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 1.0)
    model = RegionMDP(ruler, level=1)
    assert model.best_action(0) == []
    assert model.strategy_for(0) == ()
    assert model.region_quality(0) == 0.5
    assert model.region_sequences() == []


@pytest.mark.requirement("V1")
def test_regions_of_some_dozens_of_nodes_are_the_default() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 1.0)
    assert default_level(ruler) == 2
    for m, level in ((2, 2), (5, 2), (16, 1), (32, 1), (48, 1)):
        ruler.params = {"m": m}
        assert default_level(ruler) == level
    ruler.region_levels = (0,)
    assert default_level(ruler) == 0


def test_any_function_may_tell_kinds_of_action_apart() -> None:
    ruler = Ruler()
    ruler.play([0], [TAKE], 1.0)
    assert model_of(ruler, classify=str.upper).best_action(0)[0][0] == "TAKE MUG 1"


def test_steps_without_an_action_pass_on_where_they_lead() -> None:
    ruler = Ruler()
    entity = ruler.play([0, 1], [TAKE, CLEAN], 1.0)
    x, last = ruler.nodes[1]
    ruler.nodes[1] = (x, last._replace(action=None))
    model = model_of(ruler)
    assert entity == 0
    assert model.transition_probability(0, "take", 1) == 1.0
    assert [action for action, _ in model.best_action(1)] == ["take"]


@pytest.mark.requirement("V1")
@pytest.mark.parametrize(
    "kind", ["go_to", "take", "put", "clean", "heat", "cool", "use", "open", "close", "examine"]
)
def test_a_kind_of_action_is_of_its_own_kind(kind: str) -> None:
    assert classify_action(kind) == kind
