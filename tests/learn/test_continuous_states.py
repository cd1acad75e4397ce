"""Advice on observations that are numbers: the nearest points, what actions pay, standing still."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cvx.learn.advisor import Advisor, Observation
from cvx.learn.advisor.continuous_states import ActionRewards, _nearest
from cvx.learn.transition_counts import Floats


def test_the_nearest_points_are_those_of_a_naive_search() -> None:
    rng = np.random.default_rng(2)
    points, asked = rng.normal(size=(50, 3)), rng.normal(size=(300, 3))
    off, which = _nearest(points, asked, 4)
    naive = np.linalg.norm(asked[:, None] - points[None], axis=2)
    assert np.array_equal(which, np.argsort(naive, axis=1)[:, :4])
    assert off == pytest.approx(np.sort(naive, axis=1)[:, :4])


def test_what_an_action_pays_is_the_mean_of_what_it_paid_nearby() -> None:
    rng = np.random.default_rng(3)
    places: Floats = rng.uniform(-2, 2, size=(80, 2))
    rest = np.where(places[:, 0] > 0, 1.0, -1.0)
    rewards = ActionRewards({0: (places, rest), 1: (places, -rest)}, 0.5)
    assert rewards.counts
    asked = np.array([[1.0, 0.5], [-1.0, 0.2], [9.0, 9.0]])
    mean, unsure = rewards.of(0, asked)
    width, prior = rewards._width, max(rewards._noise / rewards._differ, 0.05)
    for at, place in enumerate(asked):
        near = [np.exp(-0.5 * np.sum((place - one) ** 2) / width**2) for one in places]
        assert mean[at] == pytest.approx(np.dot(near, rest) / (sum(near) + prior))
    assert mean[0] > 0.5 > -0.5 > mean[1]
    assert rewards.of(1, asked)[0] == pytest.approx(-mean)
    # Nobody was ever there.
    assert abs(mean[2]) < 1e-6
    assert unsure[2] > 3 * unsure[0]


def test_noise_is_not_taken_for_what_an_action_pays() -> None:
    rng = np.random.default_rng(4)
    paid = {a: (rng.uniform(-2, 2, size=(200, 2)), rng.normal(size=200)) for a in (0, 1)}
    assert not ActionRewards(paid, 0.5).counts


class Sign:
    """One number is shown; the right answer is its sign. Nothing is seen after the answer."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def play(self, advisor: Advisor, episode: str) -> float:
        number = self.random.uniform(-1, 1)
        shown = Observation(None, np.array([number], dtype=np.float32))
        advisor.begin(episode, goal="sign", task="sign")
        options = advisor.options(episode, shown, ["minus", "plus"])
        action = advisor.choose(episode, options).action
        advisor.step(episode, shown, action)
        won = float((action == "plus") == (number > 0))
        advisor.end(episode, won)
        return won


@pytest.mark.requirement("B11", "B19")
@pytest.mark.parametrize("seed", range(3))
def test_the_right_action_is_learned_where_it_hangs_on_numbers_alone(seed: int) -> None:
    advisor, world = Advisor(seed=seed), Sign(seed)
    won = [world.play(advisor, str(number)) for number in range(150)]
    assert sum(won[50:]) >= 85
    clear = Observation(None, np.array([0.8], dtype=np.float32))
    advisor.begin("asked", goal="sign", task="sign")
    best, other = advisor.options("asked", clear, ["minus", "plus"])
    assert (best.action, best.low > other.high) == ("plus", True)
    assert best.low < best.value < best.high


def walk(advisor: Advisor, number: int, rng: random.Random, step: float, least: float) -> str:
    """Walk at random in a corridor from ``least`` to 1, and return on what advice rests."""
    episode = str(number)
    place = rng.uniform(-1, 1) if step < 1 else float(rng.randrange(-1, 2))
    advisor.begin(episode, goal="walk", task="walk")
    basis = ""
    for _ in range(8):
        seen = Observation(None, np.array([place, 0.0], dtype=np.float32))
        options = advisor.options(episode, seen, [0, 1, 2])
        basis = max(options, key=lambda option: option.trials).basis
        # It leans on the wall.
        action = 0 if rng.random() < 0.8 else rng.randrange(3)
        place = min(1.0, max(least, place + (action - 1) * step))
        advisor.step(episode, seen, action, -abs(place))
    last = Observation(None, np.array([place, 0.0], dtype=np.float32))
    advisor.end(episode, observation=last, truncated=True)
    return basis


def test_numbers_that_stand_still_at_a_wall_are_no_states() -> None:
    advisor, rng = Advisor(seed=0), random.Random(1)
    bases = [walk(advisor, at, rng, 0.3, rng.uniform(-1.0, -0.9)) for at in range(70)]
    places = advisor._tasks["walk"].repeats
    assert len(places) < 0.7 * places.total()
    assert {*bases[10:]} == {"near"}


def test_numbers_that_come_again_are_states() -> None:
    advisor, rng = Advisor(seed=0), random.Random(1)
    bases = [walk(advisor, at, rng, 1.0, -1.0) for at in range(30)]
    assert {*bases[10:]} == {"state"}
