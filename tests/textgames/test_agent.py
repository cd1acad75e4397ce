"""The agent plays by what its memory returns, in a world of words that nobody told it of."""

from __future__ import annotations

import pytest

from cvx.experiment.arms import arm_of
from cvx.experiment.memories import FrozenMemory
from cvx.plans import use_key
from cvx.plans.lessons import SUBGOAL
from cvx.plans.pursuit import Pursuit
from cvx.textgames.agent import Agent
from cvx.textgames.controls import ShuffledMemory
from cvx.types import Cue, Filter
from tests.textgames.hats import HatGame, demonstrations


def _agent(arm: str = "full", seed: int = 0, *, taught: bool = True) -> Agent:
    one = arm_of(arm)
    player = one.player(one.loop_on(one.open(None, seed)), seed)
    assert isinstance(player, Agent)
    if taught:
        player.learn(demonstrations())
    return player


def test_without_memory_commands_are_drawn_at_random() -> None:
    games = [HatGame("hang a red hat on the peg", seed=s, dyed=True) for s in range(20)]
    agent = _agent("none", taught=False)
    assert sum(agent.play(game).won for game in games) <= 2
    assert len(agent.memory.episodes) == 0


@pytest.mark.requirement("V16")
def test_two_demonstrations_teach_a_world_of_other_words() -> None:
    agent = _agent()
    plain = [agent.play(HatGame("hang a hat on the peg", seed=s)) for s in range(10, 18)]
    dyed = [
        agent.play(HatGame("hang a red hat on the peg", seed=s, dyed=True)) for s in range(20, 28)
    ]
    assert all(result.won for result in (*plain, *dyed))
    assert max(result.steps for result in plain) <= 14


@pytest.mark.requirement("V16", "V17")
def test_a_failed_plan_is_not_tried_first_again() -> None:
    agent = _agent()
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert all(result.won for result in results)
    assert results[0].attempts == 2, "an unknown word: the shorter plan is tried, in vain"
    assert [result.attempts for result in results[1:]] == [1, 1, 1]
    failed = [e for e in agent.memory.episodes if e.reward == 0.0]
    assert len(failed) == 1
    nodes = {step.node for step in failed[0].steps}
    advice = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), 100).hits
    assert advice
    assert nodes.isdisjoint(hit.node for hit in advice)
    asked = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), outcome="failure").hits
    assert nodes >= {hit.node for hit in asked} > set()


def test_a_frozen_memory_repeats_its_mistake() -> None:
    agent = _agent("frozen")
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert [result.attempts for result in results] == [2, 2, 2, 2]
    assert isinstance(agent.memory, FrozenMemory)
    assert len(agent.memory.episodes) == 2


def test_the_same_seed_plays_the_same_games_the_same_way() -> None:
    def play() -> list[tuple[object, ...]]:
        agent = _agent(seed=5)
        return [agent.play(HatGame("hang a hat on the peg", seed=s))[:4] for s in range(6)]

    assert play() == play()


def test_shuffled_memory_hangs_every_plan_on_a_wrong_goal() -> None:
    right, wrong = _agent("full"), _agent("shuffled")
    assert isinstance(wrong.memory, ShuffledMemory)
    for a, b in zip(right.memory.episodes, wrong.memory.episodes, strict=True):
        assert a.actions == b.actions
        assert a.goal != b.goal
        assert a.task_type != b.task_type
    result = wrong.play(HatGame("hang a red hat on the peg", seed=3, dyed=True))
    assert result.steps > 0
    assert wrong.memory.episodes[-1].goal == "hang a hat on the peg"


def test_use_is_counted_by_goal_and_plan() -> None:
    agent = _agent()
    agent.play(HatGame("hang a hat on the peg", seed=3))
    assert agent.memory.usage is not None
    key = ("plan", "hang a {0} on the {1}", "grab {0.0}, hang {0.0} {1.0}")
    assert agent.memory.usage.count(key).helped == 1
    hits = agent.memory.recall(Cue(goal="hang a hat on the peg"), Filter(tags=["goal"])).hits
    assert key in {use_key(hit, "hang a {0} on the {1}") for hit in hits}


PLAN_KEY = ("plan", "hang a {0} on the {1}", "grab {0.0}, hang {0.0} {1.0}")


def _cut_off_after(steps: int) -> float:
    """Return the success that is expected of a plan after three games that ran out of steps."""
    agent = _agent()
    for seed in (10, 11, 12):
        game = HatGame("hang a hat on the peg", seed=seed, max_steps=steps)
        game.hats = dict.fromkeys(game.hats, "nowhere")
        assert not agent.play(game).won
        lost = agent.memory.episodes[-1]
        assert (lost.goal, lost.reward) == ("hang a hat on the peg", 0.0)
    assert agent.memory.usage is not None
    return agent.memory.usage[PLAN_KEY]


def test_a_plan_is_blamed_for_a_lost_game_as_far_as_it_had_the_time() -> None:
    short, longer = _cut_off_after(2), _cut_off_after(8)
    assert short == 0.5, "no plan was ever through after two commands"
    assert longer < 0.4 < short


def test_what_is_known_to_work_is_hardly_blamed_for_a_lost_game() -> None:
    agent = _agent()
    assert agent.memory.usage is not None
    for seed in range(3):
        assert agent.play(HatGame("hang a hat on the peg", seed=seed)).won
    before = agent.memory.usage[PLAN_KEY]
    game = HatGame("hang a hat on the peg", seed=10, max_steps=8)
    game.hats = dict.fromkeys(game.hats, "nowhere")
    assert not agent.play(game).won
    assert 0.8 * before < agent.memory.usage[PLAN_KEY] < before


def test_a_reopened_memory_knows_how_long_plans_take() -> None:
    agent = _agent()
    agent.play(HatGame("hang a hat on the peg", seed=3))
    agent.play(HatGame("hang a hat on the peg", seed=10, max_steps=2))
    again = Agent(agent.memory).plans.durations
    told = [agent.plans.durations.done_by(time, PLAN_KEY[1:]) for time in range(30)]
    assert [again.done_by(time, PLAN_KEY[1:]) for time in range(30)] == told
    assert told[0] == 0 < told[-1]


def test_what_brought_the_reward_is_part_of_the_plan_also_where_it_was_explored() -> None:
    agent = _agent()
    game = HatGame("hang a hat on the peg", seed=3)
    seen = game.reset()
    pursuit = Pursuit(agent.plans, seen.goal, patience=10)
    hat, nook = next(iter(game.hats.items()))
    for command in (
        f"walk to {nook}",
        f"grab {hat} from {nook}",
        "walk to peg 1",
        f"hang {hat} on peg 1",
    ):
        before = seen.admissible_commands
        attempt = pursuit.attempt(["hat", "peg"], [seen.text])
        agent.plans.explored(attempt, agent.plans.consult(attempt, seen.text), command)
        seen, reward, over = game.step(command)
        pursuit.went(command, reward, seen, before, over=over)
    won = agent.memory.episodes[-1]
    assert won.reward == 1.0
    assert [step.action for step in won.steps if SUBGOAL in step.tags] == ["hang {0.0} on {1.0}"]
