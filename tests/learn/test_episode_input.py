"""What cannot be written down is refused at the step, so that an episode can always be closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cvx
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.learn.loop import ActiveMemory


def _running() -> tuple[ActiveMemory, Any]:
    memory = ActiveMemory(cvx.TemporalIndex(16))
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
    with pytest.raises(InvalidInputError, match=named):
        memory.step(run, step.pop("text"), vector=np.ones(16, np.float32), **step)
    memory.step(run, "you hold the mug", "heat mug")
    assert memory.close(run, 1.0).actions == ("heat mug",)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"goal": 3}, "goal"),
        ({"task_type": 3}, "task_type"),
        ({"kind": "foo"}, "kind"),
        ({"namespace": 3}, "namespace"),
        ({"source": None}, "source"),
        ({"trust": 1.5}, "trust"),
        ({"trust": "high"}, "trust"),
        ({"visibility": "secret"}, "visibility"),
        ({"metadata": {"x": {1}}}, "metadata"),
    ],
)
def test_an_episode_that_cannot_be_kept_does_not_begin(given: dict[str, Any], named: str) -> None:
    memory, _ = _running()
    with pytest.raises(InvalidInputError, match=named):
        memory.begin(**given)


@pytest.mark.parametrize("entity", [-1, 2**63, 1.5, "ana", True])
def test_an_episode_of_no_entity_does_not_begin(entity: Any) -> None:
    memory, _ = _running()
    with pytest.raises(InvalidInputError, match=f"entity_id is {entity!r}"):
        memory.begin(entity_id=entity)


@pytest.mark.parametrize("entity", [2**62, 2**63 - 2, 2**63 - 1])
def test_the_largest_entities_leave_numbers_for_episodes_without_one(entity: int) -> None:
    memory, _ = _running()
    for given in (entity, None, None):
        run = memory.begin(entity_id=given)
        memory.step(run, "you hold the mug", vector=np.ones(16, np.float32))
        memory.close(run, 1.0)
    again = ActiveMemory(memory.index, record=memory.record)
    again.close(again.begin(), 1.0)
    entities = [episode.entity_id for episode in again.record.episodes()]
    assert entities[0] == entity
    assert len(set(entities)) == len(entities)


def test_an_entity_that_leaves_no_number_is_said_so() -> None:
    memory, _ = _running()
    memory.close(memory.begin(entity_id=2**62 - 1), 1.0)
    with pytest.raises(InvalidInputError, match="give entity_id"):
        memory.begin()


@pytest.mark.parametrize("reward", [None, "win", 1.5, float("nan")])
def test_an_outcome_that_is_no_reward_leaves_the_episode_open(reward: Any) -> None:
    memory, run = _running()
    with pytest.raises(InvalidInputError, match="reward is"):
        memory.close(run, reward)
    assert memory.close(run, 0.0).reward == 0.0


@pytest.mark.parametrize("cue", [None, "you hold the mug"])
def test_a_cue_is_a_cue(cue: Any) -> None:
    memory, run = _running()
    with pytest.raises(InvalidInputError, match=r"give a cvx\.Cue"):
        memory.recall(cue)
    with pytest.raises(InvalidInputError, match=r"give a cvx\.Filter"):
        memory.recall(cvx.Cue(text="mug"), run)


@pytest.mark.parametrize("bound", [-0.1, 1.0, float("nan")])
def test_a_success_that_no_reward_can_reach_is_refused(bound: float) -> None:
    with pytest.raises(InvalidInputError, match="success_above"):
        ActiveMemory(cvx.TemporalIndex(16), success_above=bound)


@pytest.mark.parametrize(
    "part", ["goal", "step", "text", "questions", "task_type", "timestamp", "place"]
)
@pytest.mark.parametrize("value", [3.5, [None], object()])
def test_a_cue_with_a_part_of_another_type_is_refused(part: str, value: Any) -> None:
    memory, _ = _running()
    with pytest.raises(InvalidInputError, match=f"cue.{part} is"):
        memory.recall(cvx.Cue(**{"text": "a mug", part: value}))


def test_a_step_without_words_is_no_cue_either() -> None:
    memory, _ = _running()
    with pytest.raises(InvalidInputError, match=r"cue\.step is None: give a str"):
        memory.recall(cvx.Cue(step=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"action": ""}, "action is ''"),
        ({"action": 5}, "action is 5"),
        ({"followed": [7]}, r"followed is \[7\]: give hits"),
        ({"followed": 7}, "followed is 7: give hits"),
        ({"decision": None}, "decision is None: give a decision"),
    ],
)
def test_an_act_that_cannot_be_kept_is_refused_and_the_decision_is_still_open(
    given: dict[str, Any], named: str
) -> None:
    memory, run = _running()
    decision = memory.recall(cvx.Cue(step="a mug", vector=np.ones(16, np.float32)))
    with pytest.raises(InvalidInputError, match=named):
        memory.act(**{"decision": decision, "action": "heat mug", **given})
    memory.act(decision, "heat mug")
    assert memory.close(run, 1.0).actions == ("heat mug",)


@pytest.mark.parametrize("run", [99, None, "episode"])
def test_what_is_no_episode_can_be_neither_recorded_nor_closed(run: Any) -> None:
    memory, _ = _running()
    for call in (
        lambda: memory.step(run, "a mug"),
        lambda: memory.close(run, 1.0),
        lambda: memory.discard(run),
        lambda: memory.recorder.outcome(run, 1.0),
    ):
        with pytest.raises(InvalidInputError, match=r"run is .*: give an episode that begin"):
            call()


@pytest.mark.parametrize(
    ("steps", "reward", "error"),
    [
        (["ab"], 1.0, InvalidInputError),
        ([("a mug", "heat mug"), ("a mug",)], 1.0, InvalidInputError),
        ([("a mug", "heat mug"), ("a mug", 5)], 1.0, InvalidInputError),
        ([("a mug", "heat mug", np.ones(3))], 1.0, InvalidVectorError),
        ([("a mug", "heat mug")], 2.0, InvalidInputError),
    ],
)
def test_a_demonstration_that_is_refused_leaves_no_episode_open(
    steps: list[Any], reward: float, error: type[Exception]
) -> None:
    memory, run = _running()
    with pytest.raises(error):
        memory.add_demonstration("heat the mug", steps, reward=reward)
    assert [*memory._open.values()] == [run]
    assert len(memory.index) == 0
    memory.step(run, "you hold the mug", "heat mug")
    assert memory.close(run, 1.0).actions == ("heat mug",)
