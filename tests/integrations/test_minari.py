"""Episodes of a memory become data sets that Minari itself loads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import minari  # type: ignore[import-untyped]
import numpy as np
import pytest

from cvx.errors import InvalidInputError, NamespaceError
from cvx.integrations.gymnasium import MemoryAgent
from cvx.integrations.minari import export
from cvx.memory import Memory


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def played(steps: list[tuple[Any, Any, float]], **end: Any) -> Memory:
    """A memory of one episode that ended, and one that was broken off."""
    memory = Memory(embedder="lexical")
    with memory.episode("find the hat", task="hats") as episode:
        for observation, action, reward in steps:
            episode.act(action, observation=observation, reward=reward)
        episode.end(**end)
    with memory.episode("find the hat", task="hats") as episode:
        episode.act(steps[0][1], observation=steps[0][0])
        episode.discard()
    return memory


def loaded(name: str) -> Any:
    (episode,) = minari.load_dataset(name).iterate_episodes()
    return episode


def test_texts_and_an_outcome() -> None:
    memory = played([("a hall", "right", 0.0), ("a nook", "grab é", 0.0)], outcome=1.0)
    export(memory, "hats/texts-v0", author="the cvx authors")
    episode = loaded("hats/texts-v0")
    assert [*episode.observations] == ["a hall", "a nook", "a nook"]
    assert [*episode.actions] == ["right", "grab é"]
    assert [*episode.rewards] == [0.0, 1.0]
    assert [*episode.terminations] == [False, True]
    assert [*episode.infos["event"]] == [1, 2, -1]
    (about,) = minari.load_dataset("hats/texts-v0").storage.get_episode_metadata([0])
    assert (about["goal"], about["task"]) == ("find the hat", "hats")


def test_vectors_and_a_truncated_sum_of_rewards() -> None:
    steps = [([0.5, 1.0], 2, 3.0), ([0.25, -1.0], 4, -1.0)]
    export(played(steps, observation=[0.0, 0.0], truncated=True), "hats/vectors-v0")
    episode = loaded("hats/vectors-v0")
    assert episode.observations.tolist() == [[0.5, 1.0], [0.25, -1.0], [0.0, 0.0]]
    assert episode.actions.tolist() == [2, 4]
    assert episode.rewards.tolist() == [3.0, -1.0]
    assert episode.terminations.tolist() == [False, False]
    assert episode.truncations.tolist() == [False, True]
    space = minari.load_dataset("hats/vectors-v0").action_space
    assert space == gymnasium.spaces.Discrete(3, start=2)


def test_exact_states_actions_of_several_numbers_and_actions_by_name() -> None:
    memory = played([((3, 4), (0.5, 1.0), 1.0)], observation=(3, 5))
    export(memory, "hats/states-v0")
    episode = loaded("hats/states-v0")
    assert episode.observations.tolist() == [[3, 4], [3, 5]]
    assert episode.actions.tolist() == [[0.5, 1.0]]
    named = played([(7, "left", 0.0), (8, "right", 1.0)])
    export(named, "hats/named-v0", actions=["right", "left"])
    assert loaded("hats/named-v0").actions.tolist() == [1, 0]


def test_what_an_agent_of_gymnasium_played_is_exported_with_its_environment() -> None:
    memory = Memory(embedder="lexical")
    env = gymnasium.make("CartPole-v1", max_episode_steps=10)
    agent = MemoryAgent(memory, goal="balance")
    returns = [agent.play(env, seed=seed) for seed in range(3)]
    export(memory, "cartpole/memory-v0", env=env, action_space=env.action_space)
    dataset = minari.load_dataset("cartpole/memory-v0")
    assert [episode.rewards.sum() for episode in dataset] == returns
    assert dataset.env_spec is not None
    assert all(np.isfinite(one.observations).all() for one in dataset)


def test_what_cannot_be_one_data_set_is_refused() -> None:
    memory = played([("a hall", "right", 0.0)], outcome=1.0)
    with memory.episode("count", task="numbers") as episode:
        episode.act(1, observation=[0.5])
        episode.end(1.0)
    with pytest.raises(InvalidInputError, match=r"observations are of several kinds.*task="):
        export(memory, "hats/mixed-v0")
    export(memory, "hats/one-v0", task="numbers")
    with pytest.raises(InvalidInputError, match="an action is 'right'"):
        export(memory, "hats/two-v0", task="hats", actions=["left"])
    with pytest.raises(InvalidInputError, match="task is 'shoes'"):
        export(memory, "hats/three-v0", task="shoes")
    with pytest.raises(InvalidInputError, match="task is None"):
        export(Memory(embedder="lexical"), "hats/empty-v0")
    with pytest.raises(NamespaceError):
        export(memory.within("ana"), "hats/bound-v0")
