"""The experiment plays cooking games with the agent that plays ALFWorld."""

from __future__ import annotations

from pathlib import Path

import pytest

from cvx.errors import InvalidInputError
from experiments.cooking.engine import CookingGame
from experiments.cooking.levels import LEVELS
from experiments.cooking.material import Cooking
from experiments.harness.arms import ARMS
from experiments.harness.setup import Setup

FEW = 3


def _setup(domain: Cooking, **changes: object) -> Setup:
    usual = {"seeds": 1, "rounds": 1, "games_per_round": FEW, "measured": FEW, "max_steps": 100}
    return Setup(domain=domain, **{**usual, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
def test_demonstrated_dishes_teach_to_cook_others_and_nothing_does_not(cache: Path) -> None:
    domain = Cooking(cache)
    material = domain.prepare(_setup(domain), 7)
    assert len(material.demonstrations) == len(material.shown) == len(LEVELS)
    few = Cooking(cache, 1).prepare(_setup(domain), 7)
    assert few.demonstrations == material.demonstrations[:1], "the simplest comes first"
    assert len(set(material.games) | set(material.unseen)) == 2 * FEW
    won, score = {}, {}
    for name in ("frozen", "none"):
        arm = ARMS[name]
        player = arm.player(arm.loop_on(arm.open(None, 7)), 7)
        if arm.shown:
            player.learn(material.demonstrations)
        results = []
        for path in material.unseen:
            with CookingGame(path, max_steps=100) as game:
                results.append(player.play(game))
        won[name] = sum(result.won for result in results)
        score[name] = sum(result.score for result in results)
        assert all(0.0 <= result.score <= 1.0 + 1e-9 for result in results)
    assert won["frozen"] > won["none"]
    assert score["frozen"] > score["none"]


def test_a_language_model_is_refused_before_a_game_is_made(tmp_path: Path) -> None:
    domain = Cooking(tmp_path)
    with pytest.raises(InvalidInputError, match="--llm"):
        domain.check(_setup(domain, llm="http://localhost:1", model="m"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [-1, len(LEVELS) + 1])
def test_levels_that_there_are_not_cannot_be_demonstrated(tmp_path: Path, number: int) -> None:
    domain = Cooking(tmp_path, number)
    with pytest.raises(InvalidInputError, match=f"give 0 to {len(LEVELS)}"):
        domain.check(_setup(domain))


def test_levels_differ_in_name_and_kind() -> None:
    assert len({level.name for level in LEVELS}) == len(LEVELS)
    assert {level.go for level in LEVELS} == {1, 6, 9}
