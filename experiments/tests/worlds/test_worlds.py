"""The small worlds: what is best in them, and that everybody who plays can play."""

from __future__ import annotations

import random

import numpy as np
import pytest

from experiments.worlds.arms import ARMS
from experiments.worlds.course import ALL, calibration, figures, play


@pytest.mark.parametrize("name", ALL)
def test_a_world_is_the_same_for_the_same_seed_and_refuses_other_commands(name: str) -> None:
    told = []
    for _ in range(2):
        world, rng = ALL[name][0](), random.Random(1)
        seen = []
        for episode in range(5):
            text, info = world.reset(seed=3 if not episode else None)
            over = False
            while not over:
                command = rng.choice(info["admissible"])
                text, reward, ended, truncated, info = world.step(command)
                seen.append((text, reward, info["goal"]))
                over = ended or truncated
        told.append(seen)
    assert told[0] == told[1]
    with pytest.raises(ValueError, match="cannot be done here"):
        world.step("sing")


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_plays_the_same_for_the_same_seed(arm: str) -> None:
    first, again = (play("tea", arm, 5, episodes=6) for _ in range(2))
    assert first.regret == again.regret
    assert len(first.regret) == 6


@pytest.mark.requirement("B11", "B19")
def test_the_memory_learns_the_chain_that_random_play_never_wins() -> None:
    learned, luck = play("chain", "cvx", 3, episodes=20), play("chain", "random", 3, episodes=20)
    assert sum(learned.regret) <= 6 < 15 <= sum(luck.regret)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("world", ["shop", "clerk"])
def test_what_is_named_is_found_where_nothing_comes_twice(world: str) -> None:
    # In clerk most of what is tried pays in the end: a failure must not count as nearly as good.
    assert sum(play(world, "cvx", 3, episodes=90).regret[60:]) <= 4


@pytest.mark.requirement("B11")
def test_goals_that_differ_teach_each_other_without_a_task() -> None:
    """Of forty goals hardly one comes again before all is known that matters."""
    shared, apart = (play("fetch", arm, 3, 120).regret for arm in ("cvx", "goals apart"))
    assert sum(shared[80:]) <= 12
    assert sum(apart[80:]) >= 24


@pytest.mark.parametrize("world", ["tea", "errands", "caravan", "market"])
def test_the_learner_alone_does_what_the_memory_does(world: str) -> None:
    assert play(world, "learner", 2, 30).regret == play(world, "cvx", 2, 30).regret


@pytest.mark.parametrize(
    ("arm", "world"),
    [
        ("no planning", "chain"),
        ("no process", "shelf"),
        ("equal words", "shelf"),
        ("no names", "shop"),
        ("no gate", "changing errands"),
        ("context-aware decay", "changing errands"),
        ("blind decay", "caravan"),
        ("blame near", "changing errands"),
        ("no draws", "caravan"),
        ("goals apart", "errands"),
        ("shuffled", "shelf"),
        ("no others", "workshop"),
        ("near only", "shelf"),
        ("regions only", "shelf"),
        ("and edges", "shelf"),
    ],
)
def test_a_part_that_is_taken_out_or_added_counts(arm: str, world: str) -> None:
    episodes = {"changing errands": 250, "caravan": 200}.get(world, 90)
    base = {"and edges": "and near", "no others": "goals apart"}.get(arm, "learner")
    one, other = (play(world, name, 1, episodes) for name in (arm, base))
    # Edges change what is expected of an action before they change what is done.
    assert (one.regret, one.told) != (other.regret, other.told)


def test_figures_pair_each_arm_with_the_learner() -> None:
    played = [play("errands", arm, seed, 20) for arm in ("learner", "random") for seed in (1, 2)]
    rows = {row["arm"]: row for row in figures(played)}
    assert "more" not in rows["learner"]
    difference = rows["random"]["regret"] - rows["learner"]["regret"]
    assert rows["random"]["more"] == pytest.approx(difference)


def test_calibration_of_what_is_always_right_is_perfect() -> None:
    assert calibration([(1.0, 1.0), (0.0, 0.0)]) == (0.0, 0.0)
    assert calibration([(1.0, 0.0)] * 4) == (1.0, 1.0)
    assert np.isnan(calibration([])[0])
