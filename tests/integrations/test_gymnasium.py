"""A wrapped environment is remembered episode by episode, and advised step by step."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st

from cvx import LexicalEmbedder, Memory
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.integrations.gymnasium import (
    MemoryAgent,
    MemoryWrapper,
    VectorMemoryWrapper,
    hashable,
    readable,
)
from cvx.memory.advice import Advice

WAYS = ["left", "right"]
LETTERS = gymnasium.spaces.Text(200, charset="".join(map(chr, range(32, 127))))


class Corridor(gymnasium.Env[str, Any]):
    """Rooms in a row; the hat is in the last."""

    observation_space = LETTERS
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rooms: int = 4, *, crash_at: int = -1, limit: int = 20) -> None:
        self.rooms, self.crash_at, self.limit = rooms, crash_at, limit

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.place = self.steps = 0
        return self._told(), {"place": 0}

    def _told(self) -> Any:
        return f"You are in room number {'abcdefgh'[self.place]} of a long corridor."

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == self.crash_at:
            raise RuntimeError("the engine died")
        self.place = min(max(self.place + (1 if action else -1), 0), self.rooms - 1)
        won = self.place == self.rooms - 1
        return self._told(), float(won), won, self.steps >= self.limit, {"place": self.place}


class Doors:
    """A world of one's own: two doors, and the goal says behind which the hat is."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def reset(self) -> tuple[str, dict[str, Any]]:
        self.right = WAYS[self.random.integers(2)]
        goal = "fetch the red hat" if self.right == "left" else "fetch the blue scarf"
        return "Two doors.", {"goal": goal, "admissible": WAYS}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        return "Outside.", float(action == self.right), True, {}


def _memory() -> Memory:
    return Memory(embedder=LexicalEmbedder(64))


def _wrapped(memory: Memory, **kept: Any) -> MemoryWrapper:
    return MemoryWrapper(Corridor(**kept), memory, goal="find the hat", actions=WAYS)


def _play(env: MemoryWrapper, actions: Sequence[int]) -> list[dict[str, Any]]:
    infos = [env.reset()[1]]
    for action in actions:
        *_, terminated, truncated, info = env.step(action)
        infos.append(info)
        if terminated or truncated:
            break
    return infos


@pytest.mark.requirement("B19")
def test_an_episode_is_recorded_with_its_actions_and_outcome() -> None:
    memory = _memory()
    infos = _play(_wrapped(memory), [1, 0, 1, 1, 1])
    (episode,) = memory.record.episodes()
    assert episode.actions == ("right", "left", "right", "right", "right")
    assert episode.metadata["return"] == 1.0
    assert episode.goal == "find the hat"
    assert not infos[0]["advice"].known
    assert infos[-1]["advice"] is None
    assert [info["place"] for info in infos] == [0, 1, 0, 1, 2, 3]


@pytest.mark.requirement("B19")
def test_the_next_episode_is_advised_by_the_last() -> None:
    memory = _memory()
    env = _wrapped(memory)
    _play(env, [1, 1, 1])
    infos = _play(env, [1, 1, 1])
    assert [info["advice"].best.action for info in infos[:-1]] == ["right"] * 3
    assert "return 1: right -> right -> right" in str(infos[0]["advice"])


def test_an_agent_that_ignores_advice_follows_none_of_it() -> None:
    memory = _memory()
    env = _wrapped(memory, limit=4)
    _play(env, [1, 1, 1])
    _play(env, [0, 0, 0, 0])
    ignored = [d for d in memory.record.decisions() if d["action"] == "left"]
    assert len(ignored) == 4
    assert all(d["hits"] and not d["followed"] for d in ignored)
    assert _play(env, [1])[0]["advice"].best.action == "right"


@given(crash=st.integers(1, 3), before=st.integers(0, 2))
def test_a_crash_leaves_nothing_half_learned(crash: int, before: int) -> None:
    memory, twin = _memory(), _memory()
    corridor = Corridor()
    env = MemoryWrapper(corridor, memory, goal="find the hat", actions=WAYS)
    other = _wrapped(twin)
    for _ in range(before):
        _play(env, [1, 1, 1])
        _play(other, [1, 1, 1])
    corridor.crash_at = crash
    with pytest.raises(RuntimeError, match="the engine died"):
        _play(env, [1, 1, 1])
    assert len(memory.record.episodes()) == before
    assert len(memory.events()) == 3 * before
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(1)
    corridor.crash_at = -1
    assert env.reset()[1]["advice"] == other.reset()[1]["advice"]


def test_an_episode_that_is_broken_off_teaches_nothing() -> None:
    memory = _memory()
    env = _wrapped(memory)
    _play(env, [1, 1])
    _play(env, [1])
    env.close()
    assert memory.record.episodes() == []
    assert memory.events() == []


def test_a_truncated_episode_is_marked_as_such() -> None:
    memory = _memory()
    _play(_wrapped(memory, limit=2), [1, 0])
    (episode,) = memory.record.episodes()
    assert episode.metadata["truncated"]
    assert episode.metadata["return"] == 0.0
    assert episode.metadata["last"] == "You are in room number a of a long corridor."


@pytest.mark.requirement("B19")
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Box observation space:UserWarning")
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Corridor"])
def test_what_the_wrapper_makes_passes_the_checks_of_gymnasium(name: str) -> None:
    env: Any = Corridor() if name == "Corridor" else gymnasium.make(name).unwrapped
    # All other warnings are errors here.
    check_env(MemoryWrapper(env, _memory()), skip_render_check=True, skip_close_check=True)


@pytest.mark.requirement("B19")
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Box observation space:UserWarning")
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
def test_a_wrapped_environment_is_made_again_from_its_spec(name: str) -> None:
    memory = _memory()
    wrapped = MemoryWrapper(gymnasium.make(name), memory, task=name, k=2)
    check_env(wrapped, skip_render_check=True)
    assert wrapped.spec is not None
    again = gymnasium.make(wrapped.spec)
    assert isinstance(again, MemoryWrapper)
    assert again.recorder.memory is memory
    assert again.recorder.task == name
    _, info = again.reset(seed=0)
    assert isinstance(info["advice"], Advice)


def test_the_signature_of_the_wrapper_names_what_it_takes() -> None:
    names = [*inspect.signature(MemoryWrapper).parameters]
    assert names == ["env", "memory", "goal", "task", "actions", "history", "k", "learn"]


@pytest.mark.requirement("B19")
@pytest.mark.parametrize("name", ["CartPole-v1", "Blackjack-v1", "FrozenLake-v1"])
def test_vector_and_discrete_observations_are_recorded(name: str) -> None:
    memory = _memory()
    env = MemoryWrapper(gymnasium.make(name), memory, task=name)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            action = info["advice"].choose().action
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
    assert len(memory.record.episodes()) == 3
    _, info = env.reset(seed=0)
    assert info["advice"].unit == "return"
    assert any(option.trials for option in info["advice"])


@pytest.mark.requirement("B19")
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_each_slot_of_a_vector_environment_plays_its_own_episodes(mode: AutoresetMode) -> None:
    memory = _memory()
    envs = SyncVectorEnv([partial(Corridor, n) for n in (2, 3)], autoreset_mode=mode)
    env = MemoryWrapper(envs, memory, goal="find the hat", actions=WAYS)
    assert isinstance(env, VectorMemoryWrapper)
    _, info = env.reset(seed=1)
    assert [advice.known for advice in info["advice"]] == [False, False]
    for _ in range(6):
        *_, info = env.step(np.array([1, 1]))
    env.close()
    lengths = sorted(len(episode.steps) for episode in memory.record.episodes())
    assert lengths == ([1, 1, 1, 2, 2] if mode == AutoresetMode.NEXT_STEP else [1] * 6 + [2] * 3)
    assert all(set(episode.actions) == {"right"} for episode in memory.record.episodes())
    for episode in memory.record.episodes():
        assert episode.steps[0].text == "You are in room number a of a long corridor."
        assert episode.metadata["return"] == 1.0


def test_a_vector_environment_is_reset_slot_by_slot_where_it_does_not_by_itself() -> None:
    memory = _memory()
    envs = SyncVectorEnv(
        [partial(Corridor, n) for n in (2, 3)], autoreset_mode=AutoresetMode.DISABLED
    )
    env = MemoryWrapper(envs, memory, goal="find the hat", actions=WAYS)
    env.reset(seed=1)
    *_, info = env.step(np.array([1, 1]))
    assert [advice is None for advice in info["advice"]] == [True, False]
    _, info = env.reset(options={"reset_mask": np.array([True, False])})
    assert all(info["advice"])
    env.step(np.array([1, 1]))
    assert sorted(len(e.steps) for e in memory.record.episodes()) == [1, 1, 2]


@pytest.mark.requirement("B19")
def test_any_object_with_reset_and_step_will_do() -> None:
    memory = _memory()
    agent = MemoryAgent(memory)
    rewards = [agent.play(Doors(seed)) for seed in range(60)]
    assert sum(rewards[40:]) >= 18
    assert {episode.goal for episode in memory.record.episodes()} == {
        "fetch the red hat",
        "fetch the blue scarf",
    }


@pytest.mark.requirement("B19")
def test_an_agent_learns_by_advice_alone() -> None:
    agent = MemoryAgent(_memory(), goal="find the hat", actions=WAYS)
    env = Corridor(5)
    rewards = [agent.play(env, seed=n) for n in range(25)]
    assert rewards[10:] == [1.0] * 15
    assert env.steps <= 6


@pytest.mark.requirement("B19")
def test_what_is_measured_is_played_by_advice_and_not_recorded() -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    agent = MemoryAgent(memory)
    for _ in range(20):
        agent.play(Doors(), explore=True)
    before = memory.record.tail()
    assert agent.play(Doors(), explore=False, learn=False) == 1.0
    env = SyncVectorEnv([partial(Corridor, 3)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    for wrapped in (
        MemoryWrapper(Corridor(3), memory, learn=False),
        MemoryWrapper(env, memory, learn=False),
    ):
        wrapped.reset()
        for _ in range(2):
            wrapped.step(1 if isinstance(wrapped.unwrapped, Corridor) else [1, 1])
        wrapped.close()
    assert memory.record.tail() == before
    with pytest.raises(InvalidInputError, match="learn"):
        MemoryWrapper(Corridor(), memory, learn="no")  # type: ignore[arg-type]


def test_an_agent_goes_on_after_a_kill(tmp_path: Path) -> None:
    code = f"""
import os, signal
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.integrations.gymnasium import MemoryAgent
from tests.integrations.test_gymnasium import Doors
class Deadly(Doors):
    def step(self, action):
        os.kill(os.getpid(), signal.SIGKILL)
agent = MemoryAgent(Memory.open({str(tmp_path)!r}, embedder=LexicalEmbedder(64)))
for seed in range(5):
    agent.play(Doors(seed))
agent.play(Deadly(9))
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=root, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Memory.open(tmp_path) as memory:
        assert len(memory.record.episodes()) == 5
        rewards = [MemoryAgent(memory).play(Doors(seed)) for seed in range(40)]
        assert len(memory.record.episodes()) == 45
        assert sum(rewards[20:]) >= 18


def test_goal_task_and_actions_may_be_worked_out_from_what_is_seen() -> None:
    memory = _memory()
    env = MemoryWrapper(
        Corridor(),
        memory,
        goal=lambda _, info: f"leave place {info['place']}",
        task=lambda seen, _: "leave" if "corridor" in seen else None,
        actions=lambda _, info: [1] if info["place"] == 0 else None,
    )
    _, info = env.reset()
    assert [option.action for option in info["advice"]] == [1]
    *_, info = env.step(1)
    assert sorted(option.action for option in info["advice"]) == [0, 1]
    assert env.recorder.episode is not None
    assert (env.recorder.episode.goal, env.recorder.episode.task) == ("leave place 0", "leave")


def test_an_episode_keeps_the_goal_that_it_began_with() -> None:
    class Fickle(Corridor):
        def step(self, action: int) -> Any:
            *told, info = super().step(action)
            return *told, {**info, "goal": "something else"}

    memory = _memory()
    _play(MemoryWrapper(Fickle(), memory, goal=lambda _, info: f"from {info['place']}"), [1, 1, 1])
    assert [episode.goal for episode in memory.record.episodes()] == ["from 0"]


@pytest.mark.requirement("B19")
@pytest.mark.parametrize(("info", "seen"), [({"admissible": []}, None), ({}, np.nan)])
def test_what_goes_wrong_in_the_middle_breaks_the_episode_off(
    info: dict[str, Any], seen: float | None
) -> None:
    """Nothing can be done any more though the episode goes on; or what is seen is no number."""

    class Broken(Corridor):
        def step(self, action: int) -> Any:
            first, *told, _ = super().step(action)
            return first if seen is None else np.array([seen]), *told, info

    memory = _memory()
    env = MemoryWrapper(Broken(), memory)
    env.reset()
    with pytest.raises((InvalidInputError, InvalidVectorError)):
        env.step(1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(1)
    assert memory.record.episodes() == []
    assert memory.events() == []


def test_a_continuous_action_is_kept_as_a_tuple_and_played_as_an_array() -> None:
    class Throw(Corridor):
        action_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)  # type: ignore[assignment]

        def step(self, action: Any) -> Any:
            assert isinstance(action, np.ndarray)
            return self._told(), float(action.sum()), True, False, {}

    memory = _memory()
    env = MemoryWrapper(Throw(), memory)
    env.reset()
    env.step(np.array([0.5, 0.25], dtype=np.float32))
    assert memory.record.episodes()[0].steps[0].metadata["action"] == [0.5, 0.25]
    assert MemoryAgent(memory).play(Throw()) == 0.75
    with pytest.raises(InvalidInputError, match="give actions="):
        MemoryAgent(_memory()).play(Throw())


@pytest.mark.parametrize(
    ("observation", "read"),
    [
        (np.int64(7), (7,)),
        (np.array([[1, 2], [3, 4]]), (1, 2, 3, 4)),
        ({"b": np.array([0.5]), "a": 1}, [1.0, 0.5]),
        ((np.bool_(True), None, [2]), (1, 2)),
        ("text", "text"),
    ],
)
def test_observations_of_any_arrangement_are_read(observation: Any, read: Any) -> None:
    assert readable(observation) == read


def test_what_mixes_texts_and_numbers_is_an_exact_state() -> None:
    seen = [readable({"mission": text, "image": np.zeros(3, int)}) for text in ("a", "b", "a")]
    assert seen[0] == seen[2] != seen[1]
    assert all(isinstance(one, int) for one in seen[0])
    assert hashable({"b": [1], "a": np.int8(2)}) == (("a", 2), ("b", (1,)))


def test_what_cannot_be_read_is_refused_and_leaves_no_episode() -> None:
    class Odd(Corridor):
        seen: Any = object()

        def _told(self) -> Any:
            return self.seen

    memory = _memory()
    odd = Odd()
    env = MemoryWrapper(odd, memory)
    with pytest.raises(InvalidInputError, match="the observation"):
        env.reset()
    odd.seen = np.zeros(5000)
    with pytest.raises(InvalidInputError, match="5000 numbers"):
        env.reset()
    odd.seen = np.array([1.0, np.nan])
    with pytest.raises(InvalidVectorError):
        env.reset()
    odd.seen = np.array([1.0, 2.0])
    env.reset()
    env.step(1)
    odd.seen = np.array([1.0, 2.0, 3.0])
    with pytest.raises(InvalidVectorError, match="3 numbers"):
        env.step(1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(1)
    assert memory.record.episodes() == []
    assert memory.events() == []


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_breaks_the_episode_off(reward: float) -> None:
    class Rich(Corridor):
        def step(self, action: int) -> Any:
            seen, _, *rest = super().step(action)
            return seen, reward, *rest

    memory = _memory()
    env = MemoryWrapper(Rich(), memory)
    env.reset()
    with pytest.raises(InvalidInputError, match="reward"):
        env.step(1)
    assert memory.events() == []


def test_what_is_no_environment_or_memory_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="reset and step"):
        MemoryWrapper(object(), _memory())
    with pytest.raises(InvalidInputError, match="memory"):
        MemoryWrapper(Corridor(), "memory")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="memory"):
        MemoryAgent(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="k is 0"):
        MemoryWrapper(Corridor(), _memory(), k=0)
    with pytest.raises(InvalidInputError, match="history is -1"):
        MemoryAgent(_memory(), history=-1)
    with pytest.raises(InvalidInputError, match="a vector one"):
        MemoryAgent(_memory()).play(SyncVectorEnv([Corridor]))


@pytest.mark.requirement("B9", "B3")
def test_what_an_environment_is_told_comes_from_what_its_agent_may_read() -> None:
    store = _memory()
    ana, bob = store.within("ana"), store.within("bob")
    seen = "You are in room number a of a long corridor."
    for memory, action, about in (
        (bob, "swim", {}),
        (bob, "dig", {"visibility": "public", "source": "web"}),
    ):
        with memory.episode("find the hat", **about) as episode:  # type: ignore[arg-type]
            episode.act(action, reward=1.0, observation=seen)
            episode.end()

    def told(memory: Memory) -> set[Any]:
        env = MemoryWrapper(Corridor(), memory, goal="find the hat", actions=["swim", "dig", "go"])
        advice = env.reset()[1]["advice"]
        env.close()
        return {option.action for option in advice if option.trials}

    assert told(ana) == {"dig"}
    assert told(bob) == {"dig", "swim"}
    store.admin.quarantine(source="web")
    assert told(ana) == set()
