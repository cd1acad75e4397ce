"""Demonstrations: winning ones only, reproducible, kept."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from experiments.alfworld.demonstrations import demonstrate
from experiments.alfworld.engine import AlfworldGame
from experiments.errors import DemonstrationError, GameError, GameNotFoundError
from experiments.plans import Played

if TYPE_CHECKING:
    from pathlib import Path


def _replay(path: Path, shown: list[Played], cache: Path) -> tuple[float, bool]:
    reward, done = 0.0, False
    with AlfworldGame(path, max_steps=len(shown), cache=cache) as game:
        seen = game.reset()
        for step in shown:
            assert not done
            assert step.observation == seen
            assert step.command in seen.admissible_commands
            seen, reward, done = game.step(step.command)
    return reward, done


def test_the_expert_wins_games_of_every_type_and_replays(games: list[Path], cache: Path) -> None:
    for path in games[:6]:
        shown = demonstrate(path, attempts=10, max_steps=100, cache=cache)
        assert _replay(path, shown, cache) == (1.0, True)


def test_demonstrations_are_the_same_in_every_process(games: list[Path], tmp_path: Path) -> None:
    script = (
        "import sys; from experiments.alfworld.demonstrations import demonstrate;"
        "print([demonstrate(g, cache=None, seed=4, attempts=10, max_steps=100)"
        " for g in sys.argv[1:]])"
    )
    chosen = [str(games[5])]
    told = {
        subprocess.run(
            [sys.executable, "-c", script, *chosen],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert "go to" in told.pop()


def test_the_callers_random_state_stays(games: list[Path], tmp_path: Path) -> None:
    random.seed(9)
    before = random.getstate()
    demonstrate(games[5], cache=tmp_path)
    assert random.getstate() == before


def test_what_was_shown_once_is_kept(games: list[Path], tmp_path: Path) -> None:
    game = shutil.copytree(games[1].parent, tmp_path / "game")
    first = demonstrate(game, cache=tmp_path / "cache")
    (kept,) = (tmp_path / "cache" / "demonstrations").iterdir()
    whole = kept.read_text()
    kept.write_text(whole.replace('"look"', '"read from the file"'))
    assert demonstrate(game, cache=tmp_path / "cache")[0].command == "read from the file"
    kept.write_text(whole[:-9])
    assert demonstrate(game, cache=tmp_path / "cache") == first, "damage costs time only"
    demonstrate(game, cache=tmp_path / "cache", seed=1)
    assert len(list(kept.parent.iterdir())) == 2, "other arguments, another entry"
    text = (game / "game.tw-pddl").read_text()
    (game / "game.tw-pddl").write_text(text.replace("desklamp.", "lamp."))
    changed = demonstrate(game, cache=tmp_path / "cache")
    assert changed[0].observation.goal == first[0].observation.goal.replace("desklamp", "lamp")


def test_losing_attempts_are_refused_and_remembered(games: list[Path], tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(
            DemonstrationError, match=r"expert did not win .* in 2 steps: raise max"
        ):
            demonstrate(games[0], max_steps=2, cache=tmp_path)


def test_a_game_without_its_trajectory_file_is_named(games: list[Path], tmp_path: Path) -> None:
    alone = tmp_path / "game.tw-pddl"
    shutil.copy(games[5], alone)
    with pytest.raises(GameError, match=r"cannot read .*traj_data.json"):
        demonstrate(alone, cache=None)
    with pytest.raises(GameNotFoundError, match="no game at"):
        demonstrate(tmp_path / "nowhere", cache=None)
