"""Looking ahead in a region model: values, the likeliest way to win, drawing actions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.learn.planner import Planner
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import SUCCESS, UNKNOWN
from cvx.temporal_index import TemporalIndex
from tests.learn.test_mdp import random_index

Episode = tuple[Sequence[int], Sequence[str | None], float | None]


def model_of(episodes: Sequence[Episode]) -> RegionMDP:
    """A model that has seen these episodes, each (regions, kinds of action, reward)."""
    ix = TemporalIndex(6)
    ix.bulk_insert(range(6), range(6), np.eye(6))
    ix.refresh_regions()
    known = RegionMDP(ix, level=0).to_dict()
    traces = []
    for number, (regions, actions, reward) in enumerate(episodes):
        nodes = [100 * number + place for place in range(len(regions))]
        columns = {"nodes": nodes, "actions": actions, "regions": regions}
        rewards = [reward] * len(regions)
        traces.append({"task_type": None, "rewards": rewards, **columns})
    return RegionMDP.from_dict(ix, {**known, "traces": traces})


def values_by_policies(mdp: RegionMDP, prior: float) -> dict[int, float]:
    """The naive twin: solve the linear equations of every policy, keep the best of each region."""
    moves = mdp.moves()
    regions = sorted({r for r, _ in moves} | {t for c in moves.values() for t in c if t >= 0})
    actions = {r: sorted(a for q, a in moves if q == r) for r in regions}
    best = dict.fromkeys(regions, 0.0)
    choices: list[list[str | None]] = [[*actions[r]] or [None] for r in regions]
    for policy in itertools.product(*choices):
        a, b = np.eye(len(regions)), np.zeros(len(regions))
        for row, (region, action) in enumerate(zip(regions, policy, strict=True)):
            if action is None:
                b[row] = mdp.region_quality(region)
                continue
            counts = {t: n for t, n in moves[(region, action)].items() if t != UNKNOWN}
            total = sum(counts.values()) + prior
            chance = mdp.success(region, action)
            assert chance is not None
            b[row] = (counts.get(SUCCESS, 0) + prior * chance) / total
            for there, n in counts.items():
                if there >= 0:
                    a[row, regions.index(there)] -= n / total
        for region, value in zip(regions, np.linalg.solve(a, b), strict=True):
            best[region] = max(best[region], float(value))
    return best


@pytest.mark.requirement("V4", "B7")
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 2), min_size=1, max_size=5),
            st.lists(st.sampled_from(["go_to", "take", None]), min_size=5, max_size=5),
            st.sampled_from([0.0, 1.0, None]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0.5, 2.0]),
)
@settings(max_examples=60)
def test_values_are_those_of_the_best_policy(
    episodes: list[tuple[list[int], list[str | None], float | None]], prior: float
) -> None:
    mdp = model_of([(w, a[: len(w)], r) for w, a, r in episodes])
    planner = Planner(mdp, prior_strength=prior)
    for region, value in values_by_policies(mdp, prior).items():
        assert planner.value(region) == pytest.approx(value, abs=1e-6)


@pytest.mark.requirement("V4", "B7")
def test_the_way_to_success_multiplies_what_was_counted() -> None:
    won: Episode = ([0, 1, 2], ["go_to", "take", "put"], 1.0)
    lost: Episode = ([0, 1], ["go_to", "go_to"], 0.0)
    planner = Planner(model_of([won, won, lost]))
    way = planner.way_to_success(0)
    assert way is not None
    assert [action for _, action in way.steps] == ["go_to", "take", "put"]
    # Counted 3, 2 and 2 times without exception; the prior is worth two moves elsewhere.
    assert way.probability == pytest.approx(3 / 5 * 2 / 4 * 2 / 4)


def paths_by_trying(mdp: RegionMDP, start: int, prior: float) -> float:
    """The naive twin: the most probable of all ways without a repeated region."""
    moves, best = mdp.moves(), 0.0

    def follow(here: int, chance: float, seen: frozenset[int]) -> None:
        nonlocal best
        for (region, _), counts in moves.items():
            if region != here:
                continue
            total = sum(n for t, n in counts.items() if t != UNKNOWN) + prior
            for there, n in counts.items():
                if there == SUCCESS:
                    best = max(best, chance * n / total)
                elif there >= 0 and there not in seen:
                    follow(there, chance * n / total, seen | {there})

    follow(start, 1.0, frozenset([start]))
    return best


@pytest.mark.requirement("B7")
@pytest.mark.parametrize("seed", range(8))
def test_no_other_way_is_more_probable(seed: int) -> None:
    ix, episodes = random_index(seed, n=8)
    mdp = RegionMDP(ix)
    mdp.learn_from_episodes(ix, episodes)
    planner = Planner(mdp)
    for region in sorted({r for r, _ in mdp.moves()}):
        way = planner.way_to_success(region)
        expected = paths_by_trying(mdp, region, planner.prior_strength)
        assert (0.0 if way is None else way.probability) == pytest.approx(expected)


def test_without_any_success_there_is_no_way() -> None:
    planner = Planner(model_of([([0, 1], ["go_to", "take"], 0.0)]))
    assert planner.way_to_success(0) is None
    assert planner.way_to_success(2) is None


@pytest.mark.requirement("B7")
def test_sampling_explores_what_is_uncertain_and_leaves_what_is_known_to_be_bad() -> None:
    good: Episode = ([0], ["take"], 1.0)
    bad: Episode = ([0], ["go_to"], 0.0)
    planner = Planner(model_of([*[good] * 3, *[bad] * 3]))
    rng = np.random.default_rng(0)
    start = 0
    few = [planner.sample_action(start, rng) for _ in range(400)].count("go_to")
    planner = Planner(model_of([*[good] * 60, *[bad] * 60]))
    many = [planner.sample_action(0, rng) for _ in range(400)].count("go_to")
    assert many < few < 200
    assert many == 0


@pytest.mark.requirement("B7")
def test_the_same_seed_samples_the_same_actions() -> None:
    planner = Planner(model_of([([0], ["take"], 1.0), ([0], ["go_to"], 1.0)]))
    start = 0
    one, two = np.random.default_rng(4), np.random.default_rng(4)
    drawn = [planner.sample_action(start, one) for _ in range(20)]
    assert drawn == [planner.sample_action(start, two) for _ in range(20)]
    assert set(drawn) == {"take", "go_to"}


def test_a_family_of_goals_plans_by_its_own_moves() -> None:
    ix, episodes = random_index(3)
    mdp = RegionMDP(ix)
    mdp.learn_from_episodes(ix, episodes)
    families = {e.task_type for e in episodes if e.task_type is not None}
    for family in sorted(families):
        whole, own = mdp.moves(), mdp.moves(family)
        assert all(own[pair] <= whole[pair] for pair in own)
        planner = Planner(mdp, family)
        for region, _ in own:
            assert {a for a, _ in planner.action_values(region)} == {
                a for r, a in own if r == region
            }


def test_values_stay_chances_on_a_region_that_is_seldom_left() -> None:
    planner = Planner(model_of([([0] * 200, ["go_to"] * 200, 1.0)]))
    value = planner.value(0)
    assert 0.0 <= value <= 1.0
    assert not math.isnan(value)


def test_a_region_nobody_visited_has_its_quality_and_no_action() -> None:
    mdp = model_of([([0], ["take"], 1.0)])
    planner = Planner(mdp)
    assert planner.value(5) == mdp.region_quality(5)
    assert planner.action_values(5) == []
    assert planner.sample_action(5, np.random.default_rng(0)) is None
    assert planner.way_to_success(5) is None


def test_what_is_no_region_is_refused() -> None:
    planner = Planner(model_of([([0], ["take"], 1.0)]))
    with pytest.raises(UnknownError, match="10000"):
        planner.value(10_000)
    with pytest.raises(UnknownError, match="10000"):
        planner.action_values(10_000)
    with pytest.raises(UnknownError, match="10000"):
        planner.sample_action(10_000, np.random.default_rng(0))
    with pytest.raises(UnknownError, match="10000"):
        planner.way_to_success(10_000)


def test_a_model_that_knows_nothing_plans_nothing() -> None:
    planner = Planner(model_of([]))
    assert planner.action_values(0) == []
    assert planner.way_to_success(0) is None


@pytest.mark.parametrize("strength", [0.0, -1.0, float("nan")])
def test_a_prior_worth_nothing_is_refused(strength: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0"):
        Planner(RegionMDP(TemporalIndex(6)), prior_strength=strength)
