"""Judging other weights by what was logged under these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cvx.errors import InvalidInputError
from cvx.scoring.off_policy import LoggedChoice, Method, Policy, off_policy_value, plackett_luce

BEHAVIOUR = plackett_luce([0.5, 0.0, 0.0])
OTHER = plackett_luce([0.0, 2.0, 0.0])
METHODS: tuple[Method, ...] = ("ips", "snips", "dr")
Chance = Callable[[np.ndarray], np.ndarray]


def logistic(rows: np.ndarray) -> np.ndarray:
    """The truth of a world in which the second feature is what helps."""
    return np.asarray(1 / (1 + np.exp(-(1.5 * rows[:, 1] - 0.5))))


def bent(rows: np.ndarray) -> np.ndarray:
    """The truth of a world that no logistic model of these features describes."""
    return np.asarray((np.sin(3 * rows[:, 1]) > 0).astype(float))


def world(
    n: int, seed: int, truth: Chance, *, per_group: int = 2
) -> tuple[list[LoggedChoice], float]:
    """A log under BEHAVIOUR, and what OTHER would have had on the very same candidates."""
    rng = np.random.default_rng(seed)
    log, worth = [], 0.0
    for at in range(n):
        features = rng.normal(size=(6, 3))
        p = BEHAVIOUR(features)
        chosen = int(rng.choice(6, p=p))
        reward = float(rng.random() < truth(features)[chosen])
        log.append(LoggedChoice(features, chosen, float(p[chosen]), reward, at // per_group))
        worth += float(OTHER(features) @ truth(features)) / n
    return log, worth


@pytest.mark.requirement("B5")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("truth", [logistic, bent], ids=["model right", "model wrong"])
def test_the_intervals_hold_what_the_other_weights_would_have_had(
    method: Method, truth: Chance
) -> None:
    held = 0
    for seed in range(12):
        log, worth = world(400, seed, truth)
        found = off_policy_value(log, OTHER, method=method, resamples=400)
        held += found.low <= worth <= found.high
    # Of 12 intervals of 95 %, fewer than 9 hold the truth twice in 10,000 times.
    assert held >= 9


@pytest.mark.requirement("B5")
def test_a_right_model_makes_up_for_wrong_propensities_and_weights_alone_do_not() -> None:
    log, worth = world(4000, 1, logistic)
    wrong = [LoggedChoice(c.features, c.chosen, 0.5, c.reward, c.group) for c in log]
    robust = off_policy_value(wrong, OTHER, method="dr")
    weighted = off_policy_value(wrong, OTHER, method="ips")
    assert robust.low <= worth <= robust.high
    assert not weighted.low <= worth <= weighted.high


@pytest.mark.requirement("B5")
def test_doubly_robust_intervals_are_narrower_than_weighted_ones() -> None:
    log, _ = world(2000, 2, logistic)
    widths = {}
    for method in METHODS:
        found = off_policy_value(log, OTHER, method=method)
        widths[method] = found.high - found.low
    assert widths["dr"] < widths["ips"]


@pytest.mark.requirement("B5")
def test_what_a_group_would_have_earned_is_foretold_from_the_other_groups_alone() -> None:
    def choice(reward: float, group: int) -> LoggedChoice:
        return LoggedChoice(np.ones((2, 1)), 0, 0.5, reward, group)

    # Known from itself, the first group would be expected to fail, and the second to succeed.
    log = [*[choice(0.0, group=0)] * 3, choice(1.0, group=1)]
    foretold = off_policy_value(log, lambda _: np.array([0.0, 1.0]), method="dr")
    assert foretold.value == pytest.approx((3 * 1.0 + 0.0) / 4)
    # Each is corrected by twice what its own reward is above what was foretold.
    corrected = off_policy_value(log, lambda _: np.array([1.0, 0.0]), method="dr")
    assert corrected.value == pytest.approx((3 * (1.0 - 2.0) + (0.0 + 2.0)) / 4)


def test_the_logging_policy_itself_is_worth_its_mean_reward() -> None:
    log, _ = world(500, 3, logistic)
    mean = np.mean([choice.reward for choice in log])
    for method in ("ips", "snips"):
        found = off_policy_value(log, BEHAVIOUR, method=method)
        assert found.value == pytest.approx(mean)
        assert found.effective == pytest.approx(500)


def test_choices_of_one_episode_count_as_one() -> None:
    alone, _ = world(400, 4, logistic, per_group=1)
    repeated = [
        LoggedChoice(c.features, c.chosen, c.propensity, c.reward, c.group)
        for c in alone
        for _ in range(4)
    ]
    one, four = (off_policy_value(log, OTHER, method="ips") for log in (alone, repeated))
    assert four.value == pytest.approx(one.value)
    assert four.high - four.low == pytest.approx(one.high - one.low, rel=1e-9)


def test_the_same_seed_gives_the_same_interval() -> None:
    log, _ = world(200, 5, logistic)
    assert off_policy_value(log, OTHER, seed=7) == off_policy_value(log, OTHER, seed=7)
    assert off_policy_value(log, OTHER, seed=7) != off_policy_value(log, OTHER, seed=8)


def test_a_log_without_failures_expects_none() -> None:
    log = [LoggedChoice(np.eye(2), 0, 0.5, 1.0, group) for group in range(20)]
    assert off_policy_value(log, plackett_luce([0.0, 0.0])).value == pytest.approx(1.0)


def test_a_policy_that_the_log_never_followed_has_no_effective_choices() -> None:
    log = [LoggedChoice(np.eye(2), 0, 0.5, 1.0, group) for group in range(20)]

    def never(features: np.ndarray) -> np.ndarray:
        return np.array([0.0, 1.0])

    found = off_policy_value(log, never, method="snips")
    assert found.effective == 0.0
    assert np.isnan(found.value)


def test_a_low_temperature_chooses_the_best() -> None:
    policy: Policy = plackett_luce([1.0], temperature=0.01)
    assert policy(np.array([[0.0], [1.0], [0.9]])).argmax() == 1
    assert policy(np.array([[0.0], [1.0], [0.9]])).max() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("propensity", [0.0, -0.1, 1.1, float("nan")])
def test_a_propensity_that_is_no_chance_is_refused(propensity: float) -> None:
    with pytest.raises(InvalidInputError, match="propensity"):
        LoggedChoice(np.eye(2), 0, propensity, 1.0, 0)


def test_what_cannot_be_judged_is_refused() -> None:
    good = LoggedChoice(np.eye(2), 0, 0.5, 1.0, 0)
    with pytest.raises(InvalidInputError, match="at least two"):
        off_policy_value([good], OTHER)
    with pytest.raises(InvalidInputError, match="3 weights for 2 features"):
        off_policy_value([good, replace(good, group=1)], OTHER)
    with pytest.raises(InvalidInputError, match="candidate 2"):
        LoggedChoice(np.eye(2), 2, 0.5, 1.0, 0)
    with pytest.raises(InvalidInputError, match="finite"):
        LoggedChoice(np.full((1, 1), np.nan), 0, 0.5, 1.0, 0)
    with pytest.raises(InvalidInputError, match="temperature"):
        plackett_luce([1.0], temperature=0.0)
    with pytest.raises(InvalidInputError, match="method"):
        off_policy_value([good], OTHER, method="magic")  # type: ignore[arg-type]
    two = [LoggedChoice(np.eye(2), 0, 0.5, 3.0, group) for group in range(2)]
    with pytest.raises(InvalidInputError, match="outside"):
        off_policy_value(two, plackett_luce([0.0, 0.0]))
