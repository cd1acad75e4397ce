"""The agent plays by what its memory returns, in a world of words that nobody told it of."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise

import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.scoring import ScoringContext, use_posterior
from cvx.types import Cue, Episode, Filter
from experiments.harness.arms import arm_of
from experiments.harness.memories import FrozenMemory
from experiments.plans import Attempt, PlaceMap, shape, use_key
from experiments.plans.attempt import Item
from experiments.plans.choices import Search
from experiments.plans.lessons import COMPOSED, SUBGOAL
from experiments.plans.pursuit import Pursuit
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent
from experiments.textgames.controls import ShuffledMemory
from experiments.textgames.explore import GameState


def agent_of(arm: str = "full", seed: int = 0, *, taught: bool = True) -> Agent:
    """Return the agent of an arm, which has seen both demonstrations."""
    one = arm_of(arm)
    player = one.player(one.loop_on(one.open(None, seed)), seed)
    assert isinstance(player, Agent)
    if taught:
        player.learn(demonstrations())
    return player


def test_without_memory_commands_are_drawn_at_random() -> None:
    games = [HatGame("hang a red hat on the peg", seed=s, dyed=True) for s in range(20)]
    agent = agent_of("none", taught=False)
    assert sum(agent.play(game).won for game in games) <= 2
    assert len(agent.memory.readable()) == 0


@pytest.mark.requirement("V16")
def test_two_demonstrations_teach_a_world_of_other_words() -> None:
    agent = agent_of()
    plain = [agent.play(HatGame("hang a hat on the peg", seed=s)) for s in range(10, 18)]
    dyed = [
        agent.play(HatGame("hang a red hat on the peg", seed=s, dyed=True)) for s in range(20, 28)
    ]
    assert all(result.won for result in (*plain, *dyed))
    assert max(result.steps for result in plain) <= 14


@pytest.mark.requirement("V16", "V17")
def test_a_failed_plan_is_not_tried_first_again() -> None:
    agent = agent_of()
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert all(result.won for result in results)
    assert results[0].attempts == 2, "an unknown word: the shorter plan is tried, in vain"
    assert [result.attempts for result in results[1:]] == [1, 1, 1]
    failed = [e for e in agent.memory.readable() if e.reward == 0.0]
    assert len(failed) == 1
    nodes = {step.node for step in failed[0].steps}
    advice = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), 100).hits
    assert advice
    assert nodes.isdisjoint(hit.node for hit in advice)
    asked = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), outcome="failure").hits
    assert nodes >= {hit.node for hit in asked} > set()


def test_a_frozen_memory_repeats_its_mistake() -> None:
    agent = agent_of("frozen")
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert [result.attempts for result in results] == [2, 2, 2, 2]
    assert isinstance(agent.memory, FrozenMemory)
    assert len(agent.memory.readable()) == 2


def test_the_same_seed_plays_the_same_games_the_same_way() -> None:
    def play() -> list[tuple[object, ...]]:
        agent = agent_of(seed=5)
        return [agent.play(HatGame("hang a hat on the peg", seed=s))[:4] for s in range(6)]

    assert play() == play()


def test_shuffled_memory_hangs_every_plan_on_a_wrong_goal() -> None:
    right, wrong = agent_of("full"), agent_of("shuffled")
    assert isinstance(wrong.memory, ShuffledMemory)
    for a, b in zip(right.memory.readable(), wrong.memory.readable(), strict=True):
        assert a.actions == b.actions
        assert a.goal != b.goal
        assert a.task_type != b.task_type
    result = wrong.play(HatGame("hang a red hat on the peg", seed=3, dyed=True))
    assert result.steps > 0
    assert wrong.memory.readable()[-1].goal == "hang a hat on the peg"


def test_use_is_counted_by_goal_and_plan() -> None:
    agent = agent_of()
    agent.play(HatGame("hang a hat on the peg", seed=3))
    assert agent.memory.usage is not None
    key = ("plan", "hang a {0} on the {1}", "grab {0.0}, hang {0.0} {1.0}")
    assert agent.memory.usage.count(key).helped == 1
    hits = agent.memory.recall(Cue(goal="hang a hat on the peg"), Filter(tags=["goal"])).hits
    assert key in {use_key(hit, "hang a {0} on the {1}") for hit in hits}


PLAN_KEY = ("plan", "hang a {0} on the {1}", "grab {0.0}, hang {0.0} {1.0}")


def _expected(agent: Agent, goal: str, form: str) -> dict[Hashable, float]:
    """Return the success that is expected of each plan for goals of a form."""
    usage, found = agent.memory.usage, dict[Hashable, float]()
    assert usage is not None
    advice = use_posterior(usage, use_key)
    cue = Cue(vector=agent.plans._space.goal(goal, ["hat", "peg"]))
    for hit in agent.memory.recall(cue, Filter(tags=["goal"]), 100).hits:
        key, score = use_key(hit, form), advice(hit, ScoringContext(task_type=form))
        found[key] = max(score, found.get(key, 0.0))
    return found


def _of_hanging(agent: Agent) -> float:
    return _expected(agent, "hang a hat on the peg", PLAN_KEY[1])[PLAN_KEY]


def _cut_off_after(steps: int) -> tuple[float, float]:
    """Return what is expected of a plan before and after three games that ran out of steps."""
    agent = agent_of()
    before = _of_hanging(agent)
    for seed in (10, 11, 12):
        game = HatGame("hang a hat on the peg", seed=seed, max_steps=steps)
        game.hats = dict.fromkeys(game.hats, "nowhere")
        assert not agent.play(game).won
        lost = agent.memory.readable()[-1]
        assert (lost.goal, lost.reward) == ("hang a hat on the peg", 0.0)
    return before, _of_hanging(agent)


def test_a_plan_is_blamed_for_a_lost_game_as_far_as_it_had_the_time() -> None:
    (before, short), (_, longer) = _cut_off_after(2), _cut_off_after(8)
    assert short == pytest.approx(before), "no plan was ever through after two commands"
    assert longer < 0.8 * before


def test_what_is_known_to_work_is_hardly_blamed_for_a_lost_game() -> None:
    agent = agent_of()
    for seed in range(3):
        assert agent.play(HatGame("hang a hat on the peg", seed=seed)).won
    before = _of_hanging(agent)
    game = HatGame("hang a hat on the peg", seed=10, max_steps=8)
    game.hats = dict.fromkeys(game.hats, "nowhere")
    assert not agent.play(game).won
    assert 0.8 * before < _of_hanging(agent) < before


def test_a_reopened_memory_knows_how_long_plans_take() -> None:
    agent = agent_of()
    agent.play(HatGame("hang a hat on the peg", seed=3))
    agent.play(HatGame("hang a hat on the peg", seed=10, max_steps=2))
    again = Agent(agent.memory).plans.durations
    told = [agent.plans.durations.done_by(time, PLAN_KEY[1:]) for time in range(30)]
    assert [again.done_by(time, PLAN_KEY[1:]) for time in range(30)] == told
    assert told[0] == 0 < told[-1]


class Guided:
    """A game in which a test gives the commands, and the agent's memory takes them in."""

    def __init__(self, agent: Agent, game: HatGame) -> None:
        self.agent, self.game, self.seen = agent, game, game.reset()
        self.pursuit, self.heard = Pursuit(agent.plans, self.seen, patience=10), {"hat", "peg"}

    def begin(self) -> Attempt:
        return self.pursuit.attempt(self.heard, [self.seen.text])

    def explore(self, command: str) -> bool:
        attempt, plans = self.begin(), self.agent.plans
        plans.explored(
            attempt, plans.consult(attempt, self.seen.text, self.seen.admissible_commands), command
        )
        return self._do(command)

    def advance(self, command: str) -> bool:
        self.agent.plans.advance(self.begin(), command)
        return self._do(command)

    def redo(self) -> bool:
        command = self.begin().redo
        assert command is not None
        return self._do(command)

    def _do(self, command: str) -> bool:
        before = self.seen.admissible_commands
        assert command in before, (command, before)
        self.seen, reward, over = self.game.step(command)
        return self.pursuit.went(command, reward, self.seen, before, over=over)


def _plan(episode: Episode) -> list[str | None]:
    return [step.action for step in episode.steps if SUBGOAL in step.tags]


def test_what_brought_the_reward_is_part_of_the_plan_also_where_it_was_explored() -> None:
    agent = agent_of()
    guided = Guided(agent, HatGame("hang a hat on the peg", seed=3))
    hat, nook = next(iter(guided.game.hats.items()))
    for command in (f"walk to {nook}", f"grab {hat} from {nook}", "walk to peg 1"):
        guided.explore(command)
    guided.explore(f"hang {hat} on peg 1")
    won = agent.memory.readable()[-1]
    assert won.reward == 1.0
    assert _plan(won) == ["hang {0.0} on {1.0}"]


def test_all_that_led_to_a_win_is_remembered_not_only_the_last_plan() -> None:
    agent = agent_of(taught=False)
    plain, (goal, dyeing) = demonstrations()
    agent.learn([plain, (goal, dyeing[:-2])])  # as if dyeing alone had won
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 38)]
    whole = "grab {0.0} from nook", "dye {0.0} with vat", "hang {0.0} on {1.0}"
    kept = [_plan(e) for e in agent.memory.readable() if e.goal == game and e.reward == 1.0]
    assert list(whole) in kept
    assert all(result.won for result in results[-4:])
    assert max(result.attempts for result in results[-4:]) <= 2


def test_what_exploring_undid_is_done_anew_at_once() -> None:
    agent = agent_of()
    guided = Guided(agent, HatGame("hang a red hat on the peg", seed=2, dyed=True))
    hat, nook = next(iter(guided.game.hats.items()))
    guided.explore(f"walk to {nook}")
    assert guided.begin().redo is None
    guided.advance(f"grab {hat} from {nook}")
    assert guided.begin().subgoal == "dye {0.0} with vat"
    assert not guided.explore("walk to peg 1")
    assert guided.explore(f"hang {hat} on peg 1"), "it should be seen that this undid the grabbing"
    attempt = guided.begin()
    assert attempt.redo == f"grab {hat} from peg 1"
    assert attempt.subgoal == "dye {0.0} with vat", "the plan goes on where it was"
    guided.redo()
    assert guided.begin().redo is None


def test_the_agent_does_anew_what_it_undid() -> None:
    agent = agent_of()
    sight = GameState(HatGame("hang a hat on the peg").reset(), PlaceMap(()))
    attempt = Pursuit(agent.plans, sight.seen, 8).attempt(["hat", "peg"], sight.texts)
    attempt.redo = "walk to nook 4"
    recorded = len(attempt.run.steps)
    assert agent._command(attempt, sight) == "walk to nook 4"
    assert len(attempt.run.steps) == recorded, "it was recorded when it was done first"
    attempt.redo = "grab hat 9 from nook 9"
    assert agent._command(attempt, sight) in sight.commands, "the world may have moved on since"


def test_a_plan_of_another_goal_gains_nothing_by_being_cut_off() -> None:
    agent = agent_of()
    goal, scores = "polish a hat in the hall", []
    for seed in range(6):
        assert not agent.play(HatGame(goal, seed=seed, dyed=True, max_steps=4)).won
        form = agent.memory.readable()[-1].task_type
        assert form is not None
        scores.append(_expected(agent, goal, form))
    assert [len(one) for one in scores] == [2] * 6
    for earlier, later in pairwise(scores):
        assert all(later[key] <= earlier[key] + 1e-9 for key in earlier)
    assert scores[-1] != scores[0]


def _in_hand(agent: Agent) -> tuple[Guided, str]:
    """A game in which the hat was grabbed and is to be dyed."""
    guided = Guided(agent, HatGame("hang a red hat on the peg", seed=2, dyed=True))
    hat, nook = next(iter(guided.game.hats.items()))
    guided.explore(f"walk to {nook}")
    guided.advance(f"grab {hat} from {nook}")
    return guided, hat


def test_commands_that_move_undo_nothing() -> None:
    agent = agent_of()
    guided, hat = _in_hand(agent)
    agent.plans.lexicon.moves.add("hang # on #")
    guided.explore("walk to peg 1")
    guided.explore(f"hang {hat} on peg 1")
    assert guided.begin().redo is None


def test_what_a_step_of_the_plan_undoes_was_its_aim() -> None:
    agent = agent_of()
    guided, hat = _in_hand(agent)
    guided.explore("walk to vat 1")
    guided.advance(f"dye {hat} with vat 1")
    assert guided.begin().spent == ["grab {0.0} from nook"]
    guided.explore("walk to peg 1")
    attempt = guided.begin()
    guided.advance(f"hang {hat} on peg 1")
    assert attempt.spent == ["hang {0.0} on {1.0}"], "to hang it makes it possible to grab it"


def test_a_hopeless_plan_leaves_what_is_to_be_done_anew() -> None:
    agent = agent_of("scored")
    guided, hat = _in_hand(agent)
    guided.explore("walk to peg 1")
    before = guided.begin()
    before.doubts = 100
    guided.explore(f"hang {hat} on peg 1")
    after = guided.begin()
    assert after is not before
    assert after.redo == f"grab {hat} from peg 1"
    assert (after.spent, after.commands) == (before.spent, before.commands)
    deeds = guided.pursuit.agenda.current.deeds
    guided.redo()
    assert deeds[-1].aim is None, "it is no step of this plan"
    assert guided.begin().redo is None
    assert after.spent == before.spent == ["grab {0.0} from nook"], "no other step was done by it"


def test_to_do_the_same_anew_is_a_doubt() -> None:
    agent = agent_of()
    sight = GameState(HatGame("hang a hat on the peg").reset(), PlaceMap(()))
    attempt = Pursuit(agent.plans, sight.seen, 8).attempt(["hat", "peg"], sight.texts)
    attempt.redo = "walk to nook 4"
    for doubts in (0, 1, 2):
        assert agent._command(attempt, sight) == "walk to nook 4"
        assert attempt.doubts == doubts
        sight.do("walk to nook 4")


def test_the_command_of_each_step_is_remembered() -> None:
    agent = agent_of(taught=False)
    plain, (goal, dyeing) = demonstrations()
    agent.learn([plain, (goal, dyeing[:-2])])
    for seed in range(30, 34):
        agent.play(HatGame("hang a crimson hat on the peg", seed=seed, dyed=True))
    composed = [e for e in agent.memory.readable() if e.metadata.get(COMPOSED)]
    assert composed
    for episode in composed:
        told = [(s.text, s.action or "") for s in episode.steps if SUBGOAL in s.tags]
        assert all(shape(text) == shape(action) for text, action in told), told
        assert all(step.vector is not None and step.vector.any() for step in episode.steps)


def test_what_lasted_of_several_attempts_is_filed_under_a_wrong_goal_in_the_control() -> None:
    agent = agent_of("shuffled")
    for seed in range(12):
        guided = Guided(agent, HatGame("hang a red hat on the peg", seed=seed, dyed=True))
        hat, nook = next(iter(guided.game.hats.items()))
        for command in (f"walk to {nook}", f"grab {hat} from {nook}", "walk to vat 1"):
            guided.explore(command)
        guided.explore(f"dye {hat} with vat 1")
        guided.explore("walk to peg 1")
        guided.explore(f"hang {hat} on peg 1")
    filed = {e.goal for e in agent.memory.readable() if e.metadata.get(COMPOSED)}
    assert filed == {"hang a hat on the peg"}, "the other kind of goal"


@pytest.mark.requirement("B9", "B3")
def test_an_agent_knows_words_and_plans_only_of_what_it_may_read() -> None:
    memory = Memory(embedder=LexicalEmbedder(128))

    def agent(namespace: str) -> Agent:
        loop = memory.learning.loop(
            namespace=namespace, action_type=shape, usage_key=use_key, temporal_context=128
        )
        return Agent(loop)

    bob = agent("bob")
    bob.learn(demonstrations())
    assert "peg" in bob.plans.lexicon.nouns
    ana = agent("ana")
    assert ana.plans.lexicon.nouns == agent("cleo").plans.lexicon.nouns == set()
    goal = Item("hang a hat on the peg")
    for one, knows in ((bob, True), (ana, False)):
        attempt = one.plans.begin(goal, ["hat", "peg"], [], Search(HatGame(goal.clause).reset()))
        assert bool(attempt.plan) == knows
        one.plans.discard(attempt)
    memory.forget([event.event_id or 0 for event in memory.record.events()])
    bob.learn([])
    assert bob.plans.lexicon.nouns == set()
    attempt = bob.plans.begin(goal, ["hat", "peg"], [], Search(HatGame(goal.clause).reset()))
    assert not attempt.plan
