"""ScienceWorld is played where it is installed, and says what is missing where it is not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cvx.errors import InvalidInputError
from experiments.errors import GameError, GameNotFoundError
from experiments.harness.setup import Setup
from experiments.scienceworld import engine
from experiments.scienceworld.__main__ import main
from experiments.scienceworld.engine import PARTS, ScienceWorldGame, simulator, variations
from experiments.scienceworld.material import ScienceWorld

TASK = "find-living-thing"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Let nothing be started that another test started."""
    engine._started.cache_clear()
    yield
    engine._started.cache_clear()


def test_a_missing_jar_is_told(tmp_path: Path) -> None:
    with pytest.raises(GameError, match="reinstall scienceworld"):
        simulator(tmp_path / "scienceworld.jar")


@pytest.mark.usefixtures("fresh")
def test_missing_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GameError, match="apt-get install default-jre-headless"):
        simulator()


@pytest.mark.usefixtures("fresh")
def test_a_missing_package_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "scienceworld.constants", None)
    assert main(["--arms", "full"]) == 2
    assert "pip install scienceworld" in capsys.readouterr().err


def test_a_domain_without_a_task_or_with_a_model_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="tasks is empty"):
        ScienceWorld(tasks=()).check(Setup(ScienceWorld(tasks=())))
    setup = Setup(ScienceWorld(), llm="http://localhost", model="m")
    with pytest.raises(InvalidInputError, match="leave --llm out"):
        ScienceWorld().check(setup)


needs_java = pytest.mark.skipif(
    shutil.which("java") is None,
    reason="ScienceWorld runs on Java: apt-get install default-jre-headless",
)


@needs_java
@pytest.mark.usefixtures("fresh")
def test_a_jar_that_is_none_is_told(tmp_path: Path) -> None:
    jar = tmp_path / "scienceworld.jar"
    jar.write_bytes(b"no archive")
    with pytest.raises(GameError, match="install it anew"):
        simulator(jar)


@needs_java
def test_where_it_asks_which_was_meant_the_first_is_taken() -> None:
    with ScienceWorldGame("find-plant", 0, max_steps=3, simplified="easy") as game:
        game.reset()
        game.step("teleport to hallway")
        seen, _, over = game.step("look at door")
        assert not over
        assert seen.text.startswith("A door to the "), "of six doors, one was looked at"
        assert not any(command.isdecimal() for command in seen.admissible_commands)
        assert {"reset task", "task"}.isdisjoint(seen.admissible_commands)


@needs_java
def test_commands_are_listed_anew_where_something_looks_different() -> None:
    with ScienceWorldGame("find-plant", 0, max_steps=4, simplified="easy") as game:
        game.reset()
        hall = game.step("teleport to hallway")[0].admissible_commands
        kitchen = game.step("teleport to kitchen")[0].admissible_commands
        assert "open fridge" in kitchen
        opened = game.step("open fridge")[0].admissible_commands
        assert "close fridge" in opened
        assert "open fridge" not in opened
        assert game.step("teleport to hallway")[0].admissible_commands is hall


@needs_java
def test_what_is_measured_does_not_hang_on_how_much_is_learned_from() -> None:
    domain = ScienceWorld(tasks=("lifespan-longest-lived",))
    few = Setup(domain, rounds=1, games_per_round=1, measured=3)
    many = Setup(domain, rounds=2, games_per_round=4, measured=3)
    one, other = domain.prepare(few, 0), domain.prepare(many, 0)
    assert one.unseen == other.unseen
    assert one.shown == other.shown
    test = {Path("lifespan-longest-lived") / str(n) for n in variations(domain.tasks[0], "test")}
    assert test.issuperset(one.unseen)
    assert test.isdisjoint(other.games)
    rewards = [step.reward for _, steps in one.demonstrations for step in steps]
    assert sum(rewards) == pytest.approx(1.0, abs=0.011)


@needs_java
def test_a_task_is_won_by_its_own_walkthrough_and_parts_share_no_variation() -> None:
    parts = [set(variations(TASK, part)) for part in PARTS]
    assert len(set.union(*parts)) == sum(map(len, parts))
    with ScienceWorldGame(TASK, min(parts[0]), max_steps=200) as game:
        commands = game.walkthrough()
        seen, rewards = game.reset(), []
        assert "living thing" in seen.goal
        assert seen.admissible_commands
        for command in commands:
            seen, reward, over = game.step(command)
            rewards.append(reward)
        assert game.won
        assert over
        assert sum(rewards) == pytest.approx(1.0)
        with pytest.raises(GameError, match="reset"):
            game.step("wait")
    with pytest.raises(GameNotFoundError, match="no variation"):
        ScienceWorldGame(TASK, 10**6, max_steps=5)
    with pytest.raises(GameNotFoundError, match="no task"):
        ScienceWorldGame("find a hat", 0, max_steps=5)
    with pytest.raises(GameError, match="step limit"):
        ScienceWorldGame(TASK, 0, max_steps=0)
