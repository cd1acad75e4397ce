"""The page shows one game step by step, as it was played by advice."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("statsmodels")

from experiments.harness.arms import arm_of
from experiments.harness.play_arm import play_arm, watched
from experiments.harness.steps import watch
from experiments.tests.harness.hat_domain import small
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent


def test_each_command_and_each_advice_is_told_with_its_chance_and_its_episodes() -> None:
    arm = arm_of("full")
    loop = arm.loop_on(arm.open(None, 0))
    agent = arm.player(loop, 0)
    assert isinstance(agent, Agent)
    assert loop is not None
    assert loop.choices is not None
    agent.learn(demonstrations())
    with loop.paused():
        steps = watch(agent, loop.choices, HatGame("hang a hat on the peg", seed=10))
    done = [step for step in steps if step.what.startswith("> ")]
    asked = [step for step in steps if step.what.startswith("Advice on")]
    assert steps[0].what == "The goal: hang a hat on the peg"
    assert done[-1].what.startswith("> hang hat")
    assert done[-1].came.endswith("Reward 1. The end.")
    assert asked[0].what == "Advice on 'plans', for 'hang'"
    assert asked[0].came.startswith("grab {0.0}, hang {0.0} {1.0}: ")
    assert "1 trials here; latest episodes" in asked[0].came
    assert any("'find grab', for 'grab'" in step.what for step in asked)
    assert loop.choices.told is None


def test_the_game_of_the_page_is_one_that_was_measured_and_teaches_nothing(tmp_path: Path) -> None:
    setup = small(protocol="transfer", arms=("full",), measured=1, store=tmp_path)
    games = list(play_arm(setup, "full", 0))
    steps = watched(setup)
    assert any(step.what.startswith("> ") for step in steps)
    assert steps == watched(setup)
    assert list(play_arm(setup, "full", 0)) == games
    assert watched(small(arms=("none",), store=tmp_path)) == []
