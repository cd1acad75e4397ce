"""What an advisor expects where texts do not come again, and when it tries what is unknown."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cvx.learn.advisor import Advisor, Observation
from cvx.learn.advisor.task_model import worth_trying
from experiments.worlds.untuned_worlds import Tidy


def test_a_hope_counts_where_it_outweighs_what_it_costs() -> None:
    mean, hope = np.array([0.3, 0.3, 0.3, 0.9]), np.array([1.0, 1.0, 0.5, 1.0])
    # Beside a sure success nothing is gained, however often the state comes.
    assert worth_trying(mean, hope, 1.0, 1000).tolist() == mean.tolist()
    # Beside .8 the second is worth .2 more, and costs .5: after the second visit.
    assert worth_trying(mean, hope, 0.8, 1).tolist() == [0.3, 0.3, 0.3, 1.0]
    assert worth_trying(mean, hope, 0.8, 2).tolist() == [1.0, 1.0, 0.3, 1.0]
    assert worth_trying(mean, hope, 0.0, 0).tolist() == hope.tolist()


@pytest.mark.requirement("B11")
def test_where_a_win_is_known_no_other_action_is_tried() -> None:
    advisor, rng = Advisor(seed=1), random.Random(1)
    known: set[tuple[str, object]] = set()
    left = 0
    for number in range(150):
        degrees = rng.randrange(5, 25)
        text = Observation(f"It is {degrees} degrees.")
        ways = ["heat", "wait", "cool"]
        advisor.begin(str(number), task="house")
        done = advisor.choose(str(number), advisor.options(str(number), text, ways)).action
        right = ways[(degrees > 11) + (degrees > 17)]
        left += (str(text.text), right) in known and done != right
        if done == right:
            known.add((str(text.text), right))
        advisor.step(str(number), text, done)
        advisor.end(str(number), float(done == right))
    assert left <= 3


@pytest.mark.requirement("B11")
def test_a_goal_is_reached_though_goals_hardly_come_again_and_most_episodes_are_cut_off() -> None:
    # Expectations must not be fitted to the best of themselves.
    world, advisor, won = Tidy(), Advisor(seed=101), []
    text, info = world.reset(seed=101)
    for number in range(200):
        name, over, late, paid = str(number), False, False, 0.0
        advisor.begin(name, goal=info["goal"], task="tidy")
        while not (over or late):
            seen = Observation(text)
            chosen = advisor.choose(name, advisor.options(name, seen, info["admissible"]))
            text, paid, over, late, info = world.step(str(chosen.action))
            advisor.step(name, seen, chosen.action)
        won.append(paid)
        advisor.end(name, paid, observation=Observation(text), truncated=late)
        text, info = world.reset()
    assert sum(won[100:]) >= 25


@pytest.mark.requirement("B11")
def test_what_is_learned_from_texts_that_do_not_come_again_grows_with_the_episodes() -> None:
    # Words that matter, each with an action of its own, among others that do not.
    rng = random.Random(1)
    words = ["".join(rng.choices("bdfgklmnprstaeiou", k=6)) for _ in range(150)]
    ways = ["north", "south", "west"]
    advisor, won = Advisor(seed=1), []
    for number in range(900):
        at = rng.randrange(len(words))
        text = Observation(f"{words[at]} number {rng.randrange(10**6)}")
        advisor.begin(str(number), task="sort")
        done = advisor.choose(str(number), advisor.options(str(number), text, ways)).action
        advisor.step(str(number), text, done)
        won.append(done == ways[at % 3])
        advisor.end(str(number), float(won[-1]))
    assert sum(won[-100:]) >= 80
