"""What an answer of the region model rests on, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta as scipy_beta  # type: ignore[import-untyped]

from cvx.errors import InvalidInputError, UnknownError
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.counts import AskerCounts, ReaderCounts, Reading
from cvx.learn.region_mdp.trajectories import FAILURE, SUCCESS, UNKNOWN
from cvx.statistics import Beta, Dirichlet
from tests.learn.ruler import LENGTH, Ruler
from tests.learn.test_mdp_answers import CLEAN, HEAT, OPEN, TAKE, model_of


def kitchen() -> RegionMDP:
    """Washing in unit 3 wins, heating there loses; unit 7 lies in the same ten, 55 far away."""
    ruler, families = Ruler(), {}
    for _ in range(4):
        families[ruler.play([3], [CLEAN], 1.0)] = "wash"
        families[ruler.play([3], [HEAT], 0.0)] = "warm"
    ruler.play([55], [OPEN], None)
    return model_of(ruler, families)


@pytest.mark.requirement("V3", "X20")
@pytest.mark.parametrize("region", [LENGTH + 5, -7, 10**9])
@pytest.mark.parametrize(
    "ask",
    [
        lambda model, region: model.best_action(region),
        lambda model, region: model.success(region, "take"),
        lambda model, region: model.region_quality(region),
        lambda model, region: model.estimate(region),
        lambda model, region: model.transitions(region, "take"),
        lambda model, region: model.strategy_for(region),
    ],
)
def test_what_is_no_region_is_an_error(
    ask: Callable[[RegionMDP, int], object], region: int
) -> None:
    model = kitchen()
    with pytest.raises(UnknownError, match=f"{region} is no region of level 1"):
        ask(model, region)
    assert not model.knows(region)


@pytest.mark.requirement("V3")
def test_a_region_never_visited_says_that_its_answer_is_borrowed() -> None:
    model = kitchen()
    near, far = model.estimate(7, "clean"), model.estimate(90, "clean")
    assert (near.trials, near.wins, near.basis) == (0, 0, ("around", None, 4))
    assert (far.trials, far.wins, far.basis) == (0, 0, ("anywhere", None, 4))
    own = model.estimate(3, "clean")
    assert (own.trials, own.wins, own.basis) == (4, 4, ("region", None, 4))
    # Borrowed belief is worth the prior and no more.
    assert sum(near.posterior) == pytest.approx(model.prior_strength)
    assert sum(own.posterior) == pytest.approx(model.prior_strength + 4)
    assert model.best_action(7).basis.place == "around"
    assert model.best_action(90).basis.place == "anywhere"
    assert model.best_action(3).basis == ("region", None, 8)


@pytest.mark.requirement("V3")
def test_a_model_without_any_evidence_answers_its_prior_and_says_so() -> None:
    model = model_of(Ruler())
    found = model.estimate(3, "take", "wash")
    assert found.posterior == Beta(1.0, 1.0)
    assert found.basis == ("nowhere", None, 0)
    assert model.best_action(3).basis.place == "nowhere"
    assert model.strategy_for(3).basis.place == "nowhere"


@pytest.mark.requirement("X20")
def test_a_family_never_seen_is_answered_by_all_and_says_so() -> None:
    model = kitchen()
    assert model.best_action(3, "wash").basis == ("region", "wash", 4)
    strange = model.best_action(3, "never heard of")
    assert strange == model.best_action(3)
    assert strange.basis == ("region", None, 8)
    estimate = model.estimate(3, "clean", "never heard of")
    assert (estimate.trials, estimate.basis.task_type) == (0, None)
    assert model.strategy_for(3, "never heard of") == ("clean",)
    assert model.strategy_for(3, "never heard of").basis == ("anywhere", None, 4)
    assert model.strategy_for(3, "wash").basis == ("region", "wash", 4)


@pytest.mark.requirement("V3")
def test_an_episode_without_outcome_is_known_by_where_it_led_alone() -> None:
    model = kitchen()
    assert [action for action, _ in model.best_action(55)] == ["open"]
    assert model.estimate(55, "open").trials == 0
    assert model.transition_probability(55, "open", UNKNOWN) == 1.0


@pytest.mark.requirement("V3")
@given(st.floats(0.1, 500), st.floats(0.1, 500), st.floats(0.01, 0.99))
def test_a_belief_is_a_beta_distribution(alpha: float, beta: float, share: float) -> None:
    belief, twin = Beta(alpha, beta), scipy_beta(alpha, beta)
    assert belief.mean == pytest.approx(twin.mean())
    assert belief.interval(share) == pytest.approx(twin.interval(share), abs=1e-9)
    low, high = belief.interval(share)
    assert 0.0 <= low <= high <= 1.0


def test_draws_of_a_belief_are_seeded_and_fall_where_it_expects_them() -> None:
    belief = Beta(8.0, 2.0)
    drawn = [belief.sample(np.random.default_rng(seed)) for seed in range(400)]
    assert np.mean(drawn) == pytest.approx(0.8, abs=0.02)
    assert belief.sample(np.random.default_rng(1)) == drawn[1]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_an_interval_that_holds_nothing_or_all_is_refused(share: float) -> None:
    with pytest.raises(InvalidInputError, match="share"):
        Beta(1.0, 1.0).interval(share)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30),
    st.integers(0, 3),
    st.sampled_from([0.5, 2.0, 7.0]),
)
def test_a_belief_has_the_weight_of_its_own_trials(
    trials: list[tuple[int, bool]], asked: int, strength: float
) -> None:
    part = ReaderCounts(Reading(strength, 0.5, str))
    for depth, won in trials:
        for at in range(depth + 1):
            part.add((at, 0, None), "go", SUCCESS if won else FAILURE, float(won), 1.0)
    counts = AskerCounts(strength, [part])
    belief = counts.posterior([((at, 0, None), "go") for at in range(asked + 1)])
    tried, wins, rewards = counts.totals(((asked, 0, None), "go"))
    assert tried == sum(depth >= asked for depth, _ in trials)
    assert wins == rewards == sum(won for depth, won in trials if depth >= asked)
    assert sum(belief) == pytest.approx(tried + strength)


@pytest.mark.requirement("V1", "V3")
def test_where_an_action_leads_is_believed_by_counts_and_the_prior() -> None:
    ruler = Ruler()
    ruler.play([0, 1], [TAKE, CLEAN], 1.0)
    ruler.play([0, 2], [TAKE, CLEAN], 0.0)
    ruler.play([0], [TAKE], 1.0)
    ruler.play([0], [TAKE], None)
    model = model_of(ruler)
    belief = model.transitions(0, "take")
    chance = model.success(0, "take")
    assert chance is not None
    assert belief.alphas == pytest.approx(
        {1: 1.0, 2: 1.0, SUCCESS: 1.0 + 2.0 * chance, FAILURE: 2.0 * (1.0 - chance)}
    )
    assert belief.mean(1) == pytest.approx(1 / 5)
    assert belief.mean(9) == 0.0
    never = model.transitions(5, "heat")
    assert set(never.alphas) == {SUCCESS, FAILURE}
    assert sum(never.alphas.values()) == pytest.approx(model.prior_strength)


def test_draws_of_where_an_action_leads_are_chances() -> None:
    belief = Dirichlet({4: 3.0, 9: 1.0})
    rng = np.random.default_rng(0)
    drawn = [belief.sample(rng) for _ in range(300)]
    assert all(sum(chances.values()) == pytest.approx(1.0) for chances in drawn)
    assert np.mean([chances[4] for chances in drawn]) == pytest.approx(0.75, abs=0.03)
