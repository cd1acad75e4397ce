"""Decay: who loses reward for a failure, how much, and how it is undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cvx
from cvx.errors import InvalidInputError
from cvx.learn.decay import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    DecayCase,
    DecayLedger,
    DecayPolicy,
    GatedDecay,
    ProportionalDecay,
    context_aware_decay,
)
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Episode, Filter

POLICIES = [
    BlindDecay(1.0),
    BlindDecay(),
    ContextAwareDecay(),
    ProportionalDecay(),
    BayesianDecay(),
    GatedDecay(ContextAwareDecay(), max_phase_gap=0.2, same_region=True),
]
families = st.sampled_from([None, "clean", "cool"])
cases = st.builds(
    DecayCase,
    expert_task_type=families,
    game_task_type=families,
    expert_action=st.sampled_from([None, "take", "put"]),
    agent_actions=st.frozensets(st.sampled_from(["take", "put"])),
    followed=st.none() | st.booleans(),
    region_quality=st.floats(0, 1),
    action_success=st.floats(0, 1),
    helped=st.integers(0, 50),
    uses=st.integers(0, 50),
    expert_place=st.none() | st.floats(0, 1),
    game_place=st.none() | st.floats(0, 1),
    same_region=st.none() | st.booleans(),
)


class Rewards(dict[int, float | None]):
    """Rewards by node, lowered and restored as a ledger says."""

    def lose(
        self, ledger: DecayLedger, game: int, cases: dict[int, DecayCase], policy: DecayPolicy
    ) -> list[tuple[int, int, float, float]]:
        changes = ledger.changes(game, cases, policy, self.__getitem__)
        self.update({node: after for _, node, _, after in changes})
        ledger.note(game, cases, changes)
        return changes

    def reset(self, ledger: DecayLedger, nodes: list[int] | None = None) -> dict[int, float]:
        restored = ledger.undecayed(nodes)
        self.update(restored)
        ledger.forget(restored)
        return restored


GOOD, BAD = [1.0, 0.0], [0.0, 1.0]


def one_failed_game(
    *, expert_family: str | None, at: list[float], reward: float | None, agent_action: str
) -> tuple[TemporalIndex, int, float | None]:
    """An expert in a region where everything wins (GOOD) or fails (BAD), after a failed game."""
    index = TemporalIndex(dim=2)
    # Regions of level 0 are the nodes there were when they were drawn, for a while.
    index.bulk_insert([99] * 10, range(10), [GOOD, BAD] * 5)
    index.refresh_regions()
    mdp = RegionMDP(index, level=0, score="mean")
    index.insert(1, 1, GOOD, action="take mug 1", task_type="cool")
    index.insert(2, 1, BAD, action="take mug 1", task_type="cool")
    mdp.learn_from_episodes(
        index, [Episode(entity_id=1, reward=1.0), Episode(entity_id=2, reward=0.0)]
    )
    expert = index.insert(
        7, 2, at, action="take mug 1", task_type=expert_family, reward=reward, tags=["kitchen"]
    )
    game = {"task_type": "cool", "history": [{"action": agent_action}, {"action": "look"}]}
    return index, expert, cvx.context_aware_decay(expert, game, index, mdp)


@pytest.mark.requirement("V14")
@pytest.mark.parametrize("reward", [1.0, 0.5])
@pytest.mark.parametrize(
    ("scenario", "expert_family", "agent_action", "at", "change"),
    [
        ("another family of goals", "clean", "take mug 1", BAD, 0.0),
        ("no family of goals", None, "take mug 1", BAD, 0.0),
        ("not followed", "cool", "open box 1", BAD, 0.0),
        ("a region of successes", "cool", "take mug 1", GOOD, -0.05),
        ("a region of failures", "cool", "take mug 1", BAD, -0.30),
    ],
)
def test_the_rows_of_the_scenario_table_as_shares_of_any_reward(
    scenario: str,
    expert_family: str | None,
    agent_action: str,
    at: list[float],
    change: float,
    reward: float,
) -> None:
    index, expert, new = one_failed_game(
        expert_family=expert_family, at=at, reward=reward, agent_action=agent_action
    )
    assert index.reward(expert) == pytest.approx(reward * (1.0 + change)), scenario
    assert new == (None if change == 0.0 else pytest.approx(reward * (1.0 + change)))


@pytest.mark.requirement("V14")
def test_the_action_and_the_family_of_an_expert_are_read_from_a_loaded_index(
    tmp_path: Path,
) -> None:
    index = TemporalIndex(dim=2)
    index.bulk_insert(
        [1, 1, 2],
        [0, 1, 0],
        [GOOD, BAD, GOOD],
        rewards=[0.8] * 3,
        actions=["go to sink 1", "take mug 1", "sing"],
        task_types=["clean", "clean", None],
        tags=[["kitchen"], [], []],
    )
    index.save(tmp_path / "a.cvx")
    again = TemporalIndex.load(tmp_path / "a.cvx")
    mdp = again.transition_model()
    game = {"task_type": "clean", "history": [{"action": "take mug 1"}, {"action": "sing"}]}
    lowered = [context_aware_decay(node, game, again, mdp) for node in range(3)]
    assert [new is None for new in lowered] == [True, False, True]
    assert again.tags(0) == {"kitchen", "task:clean"}
    only_clean = Filter(tags=["task:clean"])
    assert sorted(again.search(GOOD, where=only_clean)[0].tolist()) == [0, 1]


@pytest.mark.requirement("V14")
def test_an_expert_without_a_vector_decays_as_in_a_region_of_which_nothing_is_known() -> None:
    index = TemporalIndex(dim=2)
    expert = index.insert(1, 0, None, action="sing", task_type="cool", reward=1.0)
    game = {"task_type": "cool", "history": [{"action": "sing"}]}
    assert context_aware_decay(expert, game, index, RegionMDP(index)) == pytest.approx(0.825)


@pytest.mark.parametrize(
    "game",
    [
        {"history": [{"action": "take"}]},
        {"task_type": "cool"},
        {"task_type": "cool", "history": ["take"]},
        {"task_type": "cool", "history": [{"did": "take"}]},
        "cool",
    ],
)
def test_a_game_that_does_not_say_what_was_done_is_refused_by_name(game: Any) -> None:
    index = TemporalIndex(dim=2)
    expert = index.insert(1, 0, GOOD, action="take", task_type="cool", reward=1.0)
    with pytest.raises(InvalidInputError, match="failed_game is"):
        context_aware_decay(expert, game, index, RegionMDP(index))
    assert index.reward(expert) == 1.0


@pytest.mark.requirement("V14")
def test_the_same_four_rows_by_the_policy_alone() -> None:
    policy = ContextAwareDecay()
    followed = {"expert_action": "take", "agent_actions": frozenset({"take"})}
    rows = [
        DecayCase("clean", "cool", region_quality=0.0, **followed),  # type: ignore[arg-type]
        DecayCase("cool", "cool", "take", frozenset({"open"}), region_quality=0.0),
        DecayCase("cool", "cool", region_quality=1.0, **followed),  # type: ignore[arg-type]
        DecayCase("cool", "cool", region_quality=0.0, **followed),  # type: ignore[arg-type]
    ]
    assert [policy.factor(row) for row in rows] == pytest.approx([1.0, 1.0, 0.95, 0.70])
    assert [BlindDecay().factor(row) for row in rows] == [0.85] * 4


@pytest.mark.requirement("V14")
def test_a_memory_without_reward_has_none_to_lose() -> None:
    index, expert, new = one_failed_game(
        expert_family="cool", at=BAD, reward=None, agent_action="take mug 1"
    )
    assert (index.reward(expert), new) == (None, None)
    rewards = Rewards({9: None})
    assert rewards.lose(DecayLedger(), 0, {9: DecayCase(followed=True)}, BlindDecay()) == []


@pytest.mark.requirement("V14")
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@given(case=cases)
def test_a_factor_lies_between_0_and_1(policy: DecayPolicy, case: DecayCase) -> None:
    assert 0.0 <= policy.factor(case) <= 1.0


@pytest.mark.requirement("V14")
@pytest.mark.parametrize("policy", POLICIES[2:], ids=lambda policy: type(policy).__name__)
@given(case=cases)
def test_only_followed_advice_of_the_same_family_loses(
    policy: DecayPolicy, case: DecayCase
) -> None:
    if policy.factor(case) < 1.0:
        assert case.expert_task_type == case.game_task_type
        assert case.was_followed


@pytest.mark.requirement("V15")
def test_decay_grows_with_the_chance_of_failure() -> None:
    policy = ProportionalDecay(rate=0.3)
    factors = [policy.factor(DecayCase(followed=True, action_success=p)) for p in (0.0, 0.5, 1.0)]
    assert factors == pytest.approx([0.7, 0.85, 1.0])


@pytest.mark.requirement("V15")
def test_a_belief_that_rests_on_many_uses_is_barely_moved() -> None:
    policy = BayesianDecay(strength=2.0)
    fresh = policy.factor(DecayCase(followed=True))
    proven = policy.factor(DecayCase(followed=True, helped=48, uses=48))
    assert fresh == pytest.approx(2 / 3)
    assert proven == pytest.approx(50 / 51)


@pytest.mark.requirement("V15")
@given(st.integers(0, 30), st.integers(0, 30), st.floats(0.1, 10))
def test_the_bayesian_factor_is_new_belief_over_old(helped: int, more: int, s: float) -> None:
    uses = helped + more
    old, new = (helped + s * 0.5) / (uses + s), (helped + s * 0.5) / (uses + 1 + s)
    case = DecayCase(followed=True, helped=helped, uses=uses)
    assert BayesianDecay(s).factor(case) == pytest.approx(new / old)


@pytest.mark.requirement("V15")
def test_gates_let_through_only_what_happened_in_the_same_surroundings() -> None:
    gated = GatedDecay(BlindDecay(0.5), max_phase_gap=0.25, same_region=True)
    assert gated.factor(DecayCase(expert_place=0.1, game_place=0.2, same_region=True)) == 0.5
    assert gated.factor(DecayCase(expert_place=0.1, game_place=0.9, same_region=True)) == 1.0
    assert gated.factor(DecayCase(expert_place=0.1, game_place=0.2, same_region=False)) == 1.0
    assert gated.factor(DecayCase()) == 0.5


@pytest.mark.requirement("V15")
def test_a_game_costs_a_memory_once_and_the_next_game_again() -> None:
    rewards = Rewards({1: 1.0})
    ledger = DecayLedger()
    case = {1: DecayCase(followed=True)}
    assert rewards.lose(ledger, 7, case, BlindDecay(0.5)) == [(7, 1, 1.0, 0.5)]
    assert rewards.lose(ledger, 7, case, BlindDecay(0.5)) == []
    assert rewards[1] == 0.5
    rewards.lose(ledger, 8, case, BlindDecay(0.5))
    assert rewards[1] == 0.25


@pytest.mark.requirement("V17")
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.floats(0, 1)), max_size=20))
def test_reset_restores_every_reward_whatever_came_between(
    games: list[tuple[int, int, float]],
) -> None:
    before: dict[int, float | None] = {0: 1.0, 1: 0.3, 2: 0.0, 3: None}
    rewards = Rewards(before)
    ledger = DecayLedger()
    for game, node, rate in games:
        rewards.lose(ledger, game, {node: DecayCase()}, BlindDecay(rate))
    rewards.reset(ledger)
    assert rewards == before
    assert rewards.reset(ledger) == {}


@pytest.mark.requirement("V17")
def test_reset_may_be_for_some_only() -> None:
    rewards = Rewards({1: 1.0, 2: 0.8})
    ledger = DecayLedger()
    rewards.lose(ledger, 0, {1: DecayCase(), 2: DecayCase()}, BlindDecay(0.5))
    assert rewards.reset(ledger, [1, 99]) == {1: 1.0}
    assert rewards == {1: 1.0, 2: 0.4}


def test_a_node_that_is_named_twice_is_reset_once() -> None:
    rewards = Rewards({1: 1.0, 2: 0.8})
    ledger = DecayLedger()
    rewards.lose(ledger, 0, {1: DecayCase(), 2: DecayCase()}, BlindDecay(0.5))
    assert rewards.reset(ledger, [1, 1]) == {1: 1.0}
    assert rewards == {1: 1.0, 2: 0.4}


def test_a_policy_out_of_bounds_changes_nothing() -> None:
    class Reward:
        def factor(self, case: DecayCase) -> float:
            return 1.5 if case.followed else 0.5

    rewards = Rewards({1: 1.0, 2: 1.0})
    with pytest.raises(InvalidInputError, match=r"factor 1\.5"):
        rewards.lose(DecayLedger(), 0, {1: DecayCase(), 2: DecayCase(followed=True)}, Reward())
    assert rewards == {1: 1.0, 2: 1.0}


@pytest.mark.parametrize(
    "make",
    [
        lambda: BlindDecay(1.5),
        lambda: ContextAwareDecay(0.9, 0.2),
        lambda: ProportionalDecay(-0.1),
        lambda: BayesianDecay(0.0),
        lambda: GatedDecay(BlindDecay(), max_phase_gap=2.0),
    ],
)
def test_a_parameter_out_of_bounds_is_a_typed_error(make: object) -> None:
    with pytest.raises(InvalidInputError):
        make()  # type: ignore[operator]


@pytest.mark.requirement("V15")
def test_each_gate_stops_what_it_is_for() -> None:
    gated = GatedDecay(ContextAwareDecay(), max_phase_gap=0.25, same_region=True)
    blamed = DecayCase(followed=True, region_quality=0.0)
    cases = [
        replace(blamed, expert_place=0.1, game_place=0.9, same_region=True),
        replace(blamed, expert_place=0.1, game_place=0.2, same_region=False),
        blamed,
    ]
    assert [gated.factor(case) for case in cases] == [1.0, 1.0, 0.7]


@pytest.mark.requirement("V15", "V17")
def test_every_game_that_fails_costs_a_loop_what_the_policy_says() -> None:
    loop = ActiveMemory(TemporalIndex(32), decay=BlindDecay(0.5))
    loop.add_demonstration("clean a mug", [("a kitchen", "take mug 1")], "clean")
    for game in range(3):
        run = loop.begin("clean a cup", "clean")
        decision = loop.recall(Cue(step="a kitchen"))
        loop.act(decision, "take mug 1" if game else "sing")
        loop.close(run, 0.0)
    assert loop.index.reward(0) == 0.125
    assert loop.reset_decay() == {0: 1.0}


@pytest.mark.requirement("V15", "V16")
@pytest.mark.parametrize("policy", [ProportionalDecay(), BayesianDecay()], ids=["P", "Bayes"])
def test_a_loop_decays_by_what_it_knew_before_the_game(policy: DecayPolicy) -> None:
    loop = ActiveMemory(TemporalIndex(32), decay=policy)
    loop.add_demonstration("clean a mug", [("a kitchen", "take mug 1")], "clean")
    assert loop.mdp is not None
    assert loop.usage is not None
    expected = 1.0
    for game in range(4):
        region = loop.mdp.region_of(0)
        assert region is not None
        chance, used = loop.mdp.success(region, "take"), loop.usage.count(("node", 0))
        assert chance is not None
        blamed = DecayCase(
            "clean", "clean", followed=True, action_success=chance, uses=used.followed
        )
        expected *= 1.0 if game == 1 else policy.factor(blamed)
        run = loop.begin("clean a cup", "clean")
        decision = loop.recall(Cue(step="a kitchen"), Filter(entities=[0]))
        loop.act(decision, "take mug 1", decision.hits[0])
        loop.close(run, float(game == 1))
        assert loop.index.reward(0) == pytest.approx(expected)
    assert expected < 0.8
