"""What cannot be written down is refused at the step, so that an episode can always be closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cvx
from cvx.errors import InvalidParameterError, RewardRangeError


def _running() -> tuple[cvx.ActiveMemory, Any]:
    memory = cvx.ActiveMemory(cvx.TemporalIndex(16))
    return memory, memory.begin("heat the mug", "heat")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"text": None}, "text"),
        ({"action": 5}, "action"),
        ({"tags": "abc"}, "tags"),
        ({"tags": [3]}, "tag"),
        ({"metadata": {"x": object()}}, "metadata"),
    ],
)
def test_a_step_that_cannot_be_kept_is_refused_and_the_episode_still_closes(
    given: dict[str, Any], named: str
) -> None:
    memory, run = _running()
    step = {"text": "you hold the mug", **given}
    with pytest.raises(InvalidParameterError, match=named):
        memory.step(run, step.pop("text"), vector=np.ones(16, np.float32), **step)
    memory.step(run, "you hold the mug", "heat mug")
    assert memory.close(run, 1.0).actions == ("heat mug",)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"goal": 3}, "goal"),
        ({"task_type": 3}, "task_type"),
        ({"kind": "foo"}, "kind"),
        ({"namespace": None}, "namespace"),
        ({"metadata": {"x": {1}}}, "metadata"),
    ],
)
def test_an_episode_that_cannot_be_kept_does_not_begin(given: dict[str, Any], named: str) -> None:
    memory, _ = _running()
    with pytest.raises(InvalidParameterError, match=named):
        memory.begin(**given)


@pytest.mark.parametrize("reward", [None, "win", 1.5, float("nan")])
def test_an_outcome_that_is_no_reward_leaves_the_episode_open(reward: Any) -> None:
    memory, run = _running()
    with pytest.raises(RewardRangeError, match="reward is"):
        memory.close(run, reward)
    assert memory.close(run, 0.0).reward == 0.0


@pytest.mark.parametrize("cue", [None, "you hold the mug"])
def test_a_cue_is_a_cue(cue: Any) -> None:
    memory, run = _running()
    with pytest.raises(InvalidParameterError, match=r"give a cvx\.Cue"):
        memory.recall(cue)
    with pytest.raises(InvalidParameterError, match=r"give a cvx\.Filter"):
        memory.recall(cvx.Cue(text="mug"), run)


@pytest.mark.parametrize("bound", [-0.1, 1.0, float("nan")])
def test_a_success_that_no_reward_can_reach_is_refused(bound: float) -> None:
    with pytest.raises(InvalidParameterError, match="success_above"):
        cvx.ActiveMemory(cvx.TemporalIndex(16), success_above=bound)
