"""What the memories of the arms hold, and what they let advise."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("statsmodels")

from cvx.errors import InvalidInputError
from cvx.learn.decay import ContextAwareDecay
from cvx.types import Cue, Filter
from experiments.harness.arms import ARMS, GROUPS, arm_of, chosen
from experiments.harness.memories import Held, PausableMemory
from experiments.plans import PLAN
from experiments.plans.lessons import COMPOSED
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent

GOAL = "hang a crimson hat on the peg"


def play(arm: str, games: int = 3) -> tuple[Agent, PausableMemory]:
    """Play games of which the first holds a failed attempt."""
    one = arm_of(arm)
    loop = one.loop_on(one.open(None, 0))
    assert loop is not None
    agent = one.player(loop, 0)
    assert isinstance(agent, Agent)
    agent.learn(demonstrations())
    for seed in range(30, 30 + games):
        agent.play(HatGame(GOAL, seed=seed, dyed=True))
    return agent, loop


def advising(loop: PausableMemory) -> set[float | None]:
    hits = loop.recall(Cue(goal=GOAL), Filter(tags=[PLAN]), 100).hits
    return {hit.event.reward for hit in hits if hit.event is not None} | {h.reward for h in hits}


def plain(agent: Agent) -> dict[str, Any]:
    """All that an agent knows of words."""
    found = dict(vars(agent.plans.lexicon))
    return copy.deepcopy({**found, "goals": vars(found["goals"])})


@pytest.mark.requirement("X11")
@pytest.mark.parametrize("arm", ["full", "e7e", "e8"])
def test_failures_are_kept_and_do_not_advise(arm: str) -> None:
    _, loop = play(arm)
    held = loop.held()
    # Beside what was followed, what of it lasted is a plan of its own.
    lasted = [episode for episode in loop.readable() if COMPOSED in episode.metadata]
    assert held.wins == 2 + 3 + len(lasted)
    assert held.failures >= 1
    assert held.advising == 0
    assert 0.0 not in advising(loop)


@pytest.mark.requirement("X11")
@pytest.mark.parametrize("arm", ["e7d", "nearest", "wins"])
def test_memories_of_wins_do_not_even_keep_failures(arm: str) -> None:
    _, loop = play(arm)
    assert loop.held() == Held(wins=2 + 3)


@pytest.mark.requirement("V21")
def test_in_e7c_failures_advise_beside_successes() -> None:
    _, loop = play("e7c")
    held = loop.held()
    assert held.failures >= 1
    assert held.advising == held.failures
    assert 0.0 in advising(loop)
    asked = loop.recall(Cue(goal=GOAL), Filter(tags=[PLAN]), 100, outcome="failure").hits
    assert {hit.reward for hit in asked} == {0.0}


@pytest.mark.requirement("V21", "X12")
def test_decay_is_blind_in_e7d_and_spares_the_unfollowed_in_e7e() -> None:
    lowered = {}
    for arm in ("e7d", "e7e"):
        _, loop = play(arm, games=1)
        lowered[arm] = {node: after for _, node, _, after in loop.record.decays()}
    assert lowered["e7d"]
    assert {round(after, 4) for after in lowered["e7d"].values()} <= {0.85, 0.7225, 0.6141}
    assert len(lowered["e7e"]) < len(lowered["e7d"])
    assert isinstance(play("full", games=0)[1].decay, ContextAwareDecay)


@pytest.mark.requirement("V21")
def test_e8_scores_actions_by_region_and_e7e_does_not() -> None:
    cue = Cue(goal=GOAL)
    _, with_model = play("e8")
    assert with_model.recall(cue).action_scores
    factors = {factor.name for hit in with_model.recall(cue).hits for factor in hit.factors}
    assert "action_success" in factors
    _, without = play("e7e")
    assert without.mdp is not None
    assert without.recall(cue).action_scores == ()


@pytest.mark.parametrize("arm", ["full", "shuffled", "e7c", "nearest"])
def test_a_paused_memory_learns_nothing_and_goes_on_learning(arm: str) -> None:
    agent, loop = play(arm, games=1)
    held, links, usage = loop.held(), loop.record.links(), loop.record.usage()
    words, moments = plain(agent), len(loop.readable())
    with loop.paused():
        agent.play(HatGame(GOAL, seed=40, dyed=True))
    assert (loop.held(), loop.record.links(), loop.record.usage()) == (held, links, usage)
    assert (plain(agent), len(loop.readable())) == (words, moments)
    agent.play(HatGame(GOAL, seed=40, dyed=True))
    assert loop.held() != held


def test_frozen_memory_keeps_demonstrations_only() -> None:
    _, loop = play("frozen")
    assert loop.held() == Held(wins=2)


@pytest.mark.requirement("X13")
@pytest.mark.parametrize("arm", [name for name, arm in ARMS.items() if arm.loop and arm.plans])
def test_every_arm_plays_and_says_what_made_its_scores(arm: str) -> None:
    _, loop = play(arm, games=1)
    for hit in loop.recall(Cue(goal=GOAL)).hits:
        assert hit.score == pytest.approx(sum(factor.share for factor in hit.factors), abs=1e-6)


def test_an_arm_that_recalls_by_the_graph_finds_along_edges() -> None:
    _, loop = play("graph")
    hits = loop.recall(Cue(goal=GOAL), Filter(tags=[PLAN]), 20).hits
    assert any(hit.path for hit in hits)


def test_arms_are_chosen_by_name_and_by_group() -> None:
    assert chosen("none,full,none") == ("none", "full")
    assert set(GROUPS["protocols"]) >= {"full", "e7c", "e7d", "e7e", "e8", "shuffled", "none"}
    assert chosen("protocols,ablations") == tuple(
        dict.fromkeys([*GROUPS["protocols"], *GROUPS["ablations"]])
    )
    assert set(chosen("all")) == set(ARMS)
    with pytest.raises(InvalidInputError, match="ablations"):
        chosen("full,best")
