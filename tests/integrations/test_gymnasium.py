"""A wrapped environment is remembered episode by episode, and advised step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
import gymnasium.wrappers
from hypothesis import given
from hypothesis import strategies as st

from cvx import LexicalEmbedder, Memory
from cvx.errors import InvalidInputError
from cvx.index import RawIndex
from cvx.integrations.gymnasium import MemoryWrapper, Reading
from cvx.learn.loop import ActiveMemory

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

    def _told(self) -> str:
        return f"You are in room number {'abcdefgh'[self.place]} of a long corridor."

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == self.crash_at:
            raise RuntimeError("the engine died")
        self.place = min(max(self.place + (1 if action else -1), 0), self.rooms - 1)
        won = self.place == self.rooms - 1
        return self._told(), float(won), won, self.steps >= self.limit, {"place": self.place}


def _memory() -> ActiveMemory:
    return ActiveMemory(RawIndex(64, seed=1))


def _wrapped(memory: ActiveMemory, **kept: Any) -> MemoryWrapper:
    named = Reading(action=WAYS.__getitem__)
    return MemoryWrapper(Corridor(**kept), memory, goal="find the hat", reading=named)


def _play(env: MemoryWrapper, actions: list[int]) -> list[dict[str, Any]]:
    infos = [env.reset()[1]]
    for action in actions:
        *_, terminated, truncated, info = env.step(action)
        infos.append(info)
        if terminated or truncated:
            break
    return infos


def test_an_episode_is_recorded_with_its_actions_and_outcome() -> None:
    memory = _memory()
    env = _wrapped(memory)
    infos = _play(env, [1, 0, 1, 1, 1])
    (episode,) = memory.episodes
    assert episode.actions == ("right", "left", "right", "right", "right")
    assert episode.reward == 1.0
    assert episode.goal == "find the hat"
    assert infos[0]["memory"] == ""
    assert infos[-1]["decision"] is None
    assert [info["place"] for info in infos] == [0, 1, 0, 1, 2, 3]


def test_the_next_episode_is_advised_by_the_last() -> None:
    memory = _memory()
    env = _wrapped(memory)
    _play(env, [1, 1, 1])
    infos = _play(env, [1, 1, 1])
    assert "right -> right -> right" in infos[0]["memory"]
    assert infos[0]["decision"].hits[0].action == "right"
    assert {hit.action for info in infos[:-1] for hit in info["decision"].hits} == {"right"}


def test_an_agent_that_ignores_advice_follows_none_of_it() -> None:
    memory = _memory()
    env = _wrapped(memory, limit=4)
    _play(env, [1, 1, 1])
    _play(env, [0, 0, 0, 0])
    decisions = memory.record.decisions()
    assert decisions
    ignored = [d for d in decisions if d["action"] == "left"]
    assert len(ignored) == 4
    assert all(d["hits"] and not d["followed"] for d in ignored)
    assert [e.reward for e in memory.episodes] == [1.0, 0.0]
    assert _play(env, [1])[0]["decision"].hits[0].action == "right", "failures never advise"


@given(crash=st.integers(1, 3), before=st.integers(0, 2))
def test_a_crash_leaves_nothing_of_its_episode(crash: int, before: int) -> None:
    memory = _memory()
    corridor = Corridor()
    env = MemoryWrapper(corridor, memory, goal="find the hat")
    for _ in range(before):
        _play(env, [1, 1, 1])
    corridor.crash_at = crash
    with pytest.raises(RuntimeError, match="the engine died"):
        _play(env, [1, 1, 1])
    assert len(memory.episodes) == before
    assert len(memory.index) == 3 * before
    assert len(memory.record.decisions()) == 3 * before
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(1)
    corridor.crash_at = -1
    _play(env, [1, 1, 1])
    assert len(memory.episodes) == before + 1


def test_an_episode_that_is_broken_off_teaches_nothing() -> None:
    memory = _memory()
    env = _wrapped(memory)
    _play(env, [1, 1])
    _play(env, [1])
    env.close()
    assert len(memory.episodes) == 0
    assert len(memory.index) == 0


def test_a_truncated_episode_is_a_failure() -> None:
    memory = _memory()
    _play(_wrapped(memory, limit=2), [1, 0])
    (episode,) = memory.episodes
    assert episode.reward == 0.0


def test_the_wrapper_keeps_to_the_interface() -> None:
    # Its warnings are errors here.
    checked = gymnasium.wrappers.PassiveEnvChecker(_wrapped(_memory()))
    for _ in range(2):
        checked.reset(seed=3)
        over = False
        while not over:
            _, _, over, _, _ = checked.step(1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_arrays_need_a_reading_and_k_a_bound() -> None:
    class Numbers(Corridor):
        def _told(self) -> Any:
            return np.zeros(3)

    memory = _memory()
    with pytest.raises(InvalidInputError, match=r"Reading\(text="):
        MemoryWrapper(Numbers(), memory).reset()
    assert len(memory.episodes) == 0
    _, info = MemoryWrapper(Numbers(), memory, reading=Reading(text=repr)).reset()
    assert info["decision"].cue.step == repr(np.zeros(3))
    with pytest.raises(InvalidInputError, match="k is 0"):
        MemoryWrapper(Corridor(), memory, k=0)


def test_a_memory_that_is_no_loop_is_refused_and_its_loop_is_taken() -> None:
    store = Memory(LexicalEmbedder(64))
    with pytest.raises(InvalidInputError, match=r"type Memory: .* Memory\.loop\(\)"):
        MemoryWrapper(Corridor(), store)  # type: ignore[arg-type]
    MemoryWrapper(Corridor(), store.learning.loop()).reset()


class Wardrobe(gymnasium.Env[str, str]):
    """A text game: take the hat out of one drawer or the other, then hang it up."""

    observation_space = LETTERS
    action_space = LETTERS

    def _seen(self) -> tuple[str, dict[str, Any]]:
        commands = ["hang hat 1 on peg 1"] if self.held else ["open drawer 1", "open drawer 2"]
        if self.opened and not self.held:
            commands.append("take hat 1")
        return f"You hold {'a hat' if self.held else 'nothing'}.", {"commands": commands}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.opened = self.held = False
        return self._seen()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        won = action.startswith("hang")
        self.opened |= action == "open drawer 2"
        self.held |= action.startswith("take")
        text, info = self._seen()
        return text, float(won), won, False, info


def test_a_text_game_is_played_with_commands_as_actions() -> None:
    memory = _memory()
    plan = ("open drawer 2", "take hat 1", "hang hat 1 on peg 1")
    env = MemoryWrapper(Wardrobe(), memory, goal="hang a hat on the peg")
    for _ in range(2):
        _, info = env.reset()
        for command in plan:
            assert command in info["commands"]
            *_, info = env.step(command)
    first, second = memory.episodes
    assert first.actions == second.actions == plan
    assert first.reward == second.reward == 1.0
    assert memory.record.decisions()[-1]["followed"], "the second time it did as it was advised"


@pytest.mark.requirement("B9", "B3")
def test_what_an_environment_is_told_comes_from_what_its_agent_may_read() -> None:
    store = Memory(LexicalEmbedder(64))
    rooms = [f"You are in room number {letter}" for letter in "ab"]
    for command, whose in (
        ("swim", {"namespace": "bob"}),
        ("dig", {"namespace": "bob", "visibility": "public", "source": "web"}),
    ):
        told = [(text, command) for text in rooms]
        store.learning.active.add_demonstration("find the hat", told, **whose)  # type: ignore[arg-type]
    said = {
        name: _wrapped(store.learning.loop(namespace=name)).reset()[1]["memory"]
        for name in ("ana", "bob")
    }
    assert ("dig" in said["ana"], "swim" in said["ana"]) == (True, False)
    assert "swim" in said["bob"]
    store.admin.quarantine("web")
    assert _wrapped(store.learning.loop(namespace="ana")).reset()[1]["memory"] == ""
