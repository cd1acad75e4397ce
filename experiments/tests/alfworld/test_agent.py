"""The agent wins games of ALFWorld by what six demonstrations left in its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.alfworld.demonstrations import demonstrate
from experiments.alfworld.engine import AlfworldGame
from experiments.harness.arms import arm_of


@pytest.mark.slow
@pytest.mark.requirement("V16")
def test_demonstrated_games_of_alfworld_are_won_and_not_without_memory(
    games: list[Path], cache: Path
) -> None:
    shown = [demonstrate(game, cache=cache) for game in games[:6]]
    agent, without = (
        arm.player(arm.loop_on(arm.open(None, 0)), 0) for arm in map(arm_of, ("full", "none"))
    )
    agent.learn([(steps[0].observation.goal, steps) for steps in shown])
    won = lost = 0
    for path in games[6:]:
        with AlfworldGame(path, max_steps=50, cache=cache) as game:
            won += agent.play(game).won
            lost += not without.play(game).won
    assert won >= 4
    assert lost >= 5
