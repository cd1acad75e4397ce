"""A cooking game is played by commands, and pays in shares of its points."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.cooking.demonstrations import demonstrate
from experiments.cooking.engine import CookingGame
from experiments.errors import DemonstrationError, GameError, GameNotFoundError


def test_a_won_game_pays_one_in_all(game: Path) -> None:
    with CookingGame(game, max_steps=100) as engine:
        commands = [step.command for step in demonstrate(game, max_steps=100)]
        engine.reset()
        rewards, over = [], False
        for command in commands:
            _, reward, over = engine.step(command)
            rewards.append(reward)
        assert over
        assert engine.won
        assert sum(rewards) == pytest.approx(1.0)
        assert all(reward >= 0 for reward in rewards)
        assert sum(reward > 0 for reward in rewards) >= 3


def test_the_goal_is_the_games_own_and_tells_no_recipe(game: Path) -> None:
    with CookingGame(game, max_steps=5) as engine:
        seen = engine.reset()
        assert "cookbook" in seen.goal
        assert seen.text.startswith(seen.goal)
        assert "Ingredients" not in seen.text
        told, _, _ = engine.step("examine cookbook")
        assert "Ingredients" in told.text
        assert told.goal == seen.goal
        assert not told.text.rstrip().endswith(">")


def test_the_same_commands_tell_the_same(game: Path) -> None:
    def play() -> list[object]:
        with CookingGame(game, max_steps=4) as engine:
            seen = [engine.reset()]
            seen += [engine.step(seen[-1].admissible_commands[i])[0] for i in range(4)]
            return list(seen)

    assert play() == play()


def test_a_game_ends_at_its_limit_and_is_not_played_on(game: Path) -> None:
    with CookingGame(game, max_steps=1) as engine:
        with pytest.raises(GameError, match="reset"):
            engine.step("look")
        engine.reset()
        assert engine.step("look")[2] is True
        with pytest.raises(GameError, match="reset"):
            engine.step("look")
    with pytest.raises(GameError, match="closed"):
        engine.reset()


def test_bad_games_are_refused(tmp_path: Path, game: Path) -> None:
    with pytest.raises(GameNotFoundError):
        CookingGame(tmp_path / "none.z8", max_steps=5)
    broken = tmp_path / "broken.z8"
    whole = game.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (b"", b"no game", whole[:middle], flipped):
        broken.write_bytes(content)
        with pytest.raises(GameError, match="damaged"):
            CookingGame(broken, max_steps=5)


def test_a_limit_below_one_is_refused(game: Path) -> None:
    with pytest.raises(GameError, match="max_steps is 0"):
        CookingGame(game, max_steps=0)


def test_a_demonstration_wins_or_is_refused(game: Path) -> None:
    steps = demonstrate(game, max_steps=100)
    assert all(step.command in step.observation.admissible_commands for step in steps)
    with pytest.raises(DemonstrationError, match="2 steps"):
        demonstrate(game, max_steps=2)
