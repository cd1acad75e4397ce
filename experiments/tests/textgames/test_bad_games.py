"""Games that break, say nothing or ask for the unknown leave no half-learned attempt."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.learn.loop import ActiveMemory
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Vector
from experiments.errors import GameError
from experiments.harness.arms import ARMS
from experiments.plans import Observation, PlanMemory, Search, shape, use_key
from experiments.plans.attempt import Item
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent


def _taught() -> Agent:
    arm = ARMS["full"]
    agent = arm.player(arm.loop_on(arm.open(None, 0)), 0)
    assert isinstance(agent, Agent)
    agent.learn(demonstrations())
    return agent


class Crashing(HatGame):
    """Raises at a step."""

    crash_at = 0

    def step(self, command: str) -> tuple[Observation, float, bool]:
        if self.steps + 1 == self.crash_at:
            raise ConnectionError("the engine died")
        return super().step(command)


class Mute(HatGame):
    """Tells nothing."""

    def _see(self, text: str) -> Observation:
        return dataclasses.replace(super()._see(text), text="")


class Stuck(HatGame):
    """Offers no command once something is held."""

    def _see(self, text: str) -> Observation:
        seen = super()._see(text)
        return dataclasses.replace(seen, admissible_commands=()) if self.held else seen


class Failing(LexicalEmbedder):
    """Gives vectors until it has no more to give."""

    left = 10**9

    def embed(self, texts: Sequence[str]) -> Vector:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("the embedder died")
        return super().embed(texts)


def test_an_embedder_that_dies_while_plans_are_taught_or_begun_leaves_no_episode_open() -> None:
    embedder = Failing(256)
    memory = ActiveMemory(TemporalIndex(256), embedder, action_type=shape, usage_key=use_key)
    plans = PlanMemory(memory)
    item = Item("hang a hat on the peg")
    seen = HatGame("hang a hat on the peg").reset()
    for work in (
        lambda: plans.teach(demonstrations()),
        lambda: plans.begin(item, ("hat", "peg"), [seen.text], Search(seen)),
    ):
        for left in range(100):
            embedder.left = left
            try:
                work()
                break
            except ConnectionError:
                embedder.left = 10**9
                assert memory.recall(Cue(text="hat")).episode_id is None
        assert left > 0, "it never failed"
        embedder.left = 10**9


@pytest.mark.parametrize("crash_at", [1, 2, 5])
def test_a_crash_in_the_middle_leaves_nothing_and_the_next_game_is_played(crash_at: int) -> None:
    agent, calm = _taught(), _taught()
    game = Crashing("hang a hat on the peg", seed=11)
    game.crash_at = crash_at
    before = len(agent.memory.index), len(agent.memory.readable()), agent.memory.record.decisions()
    with pytest.raises(ConnectionError, match="died"):
        agent.play(game)
    after = len(agent.memory.index), len(agent.memory.readable()), agent.memory.record.decisions()
    assert after == before
    calm.restore(agent.state())
    again = HatGame("hang a hat on the peg", seed=12)
    assert agent.play(again)[:4] == calm.play(again)[:4]


def test_a_game_that_offers_no_command_is_refused_and_leaves_nothing() -> None:
    agent = _taught()
    before = len(agent.memory.index), len(agent.memory.readable())
    with pytest.raises(GameError, match="admissible_commands"):
        agent.play(Stuck("hang a hat on the peg", seed=11))
    assert (len(agent.memory.index), len(agent.memory.readable())) == before


def test_a_game_that_tells_nothing_can_be_won() -> None:
    agent = _taught()
    assert sum(agent.play(Mute("hang a hat on the peg", seed=s)).won for s in range(4)) >= 3


@pytest.mark.parametrize("goal", ["", "...", "juggle seven flaming torches", "hang", "42"])
def test_a_goal_that_nobody_showed_is_played_to_its_end(goal: str) -> None:
    agent = _taught()
    result = agent.play(HatGame(goal, seed=11, max_steps=12))
    assert 0 < result.steps <= 12
    assert result.won == (result.score == 1.0)
    assert agent.play(HatGame("hang a hat on the peg", seed=12)).won


@pytest.mark.parametrize(("goal", "steps"), [("", 1), ("hang a hat on the peg", 0)])
def test_a_demonstration_without_a_goal_or_a_step_is_refused_and_nothing_is_learned(
    goal: str, steps: int
) -> None:
    memory = ActiveMemory(TemporalIndex(256), action_type=shape, usage_key=use_key)
    agent = Agent(memory)
    good = demonstrations()
    with pytest.raises(InvalidInputError, match=f"demonstration 2 has the goal {goal!r} and"):
        agent.learn([*good, (goal, good[0][1][:steps])])
    assert len(memory.readable()) == 0
    agent.learn(good)
    assert agent.play(HatGame("hang a hat on the peg", seed=1)).won
