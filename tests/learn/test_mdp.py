"""The region model on a real index: counts, learning step by step, epochs, JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, StaleRegionsError
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import FAILURE, SUCCESS, classify_action
from cvx.statistics import backed_off
from cvx.temporal_index import TemporalIndex
from cvx.types import Episode, Event

DIM = 6
VERBS = ("go to sink 1", "take mug 1", "clean mug 1", "put mug 1 in shelf 1")


@dataclass(frozen=True)
class Entity:
    """The least that an episode must be."""

    entity_id: int


def places(n: int) -> np.ndarray:
    return np.eye(DIM, dtype=np.float32)[:n]


def index_of(
    episodes: Sequence[tuple[Sequence[int], Sequence[str | None], float | None]],
) -> TemporalIndex:
    """Episodes as (places, actions, reward); the nodes of a place share its vector."""
    ix = TemporalIndex(DIM, seed=1)
    for entity, (where, actions, reward) in enumerate(episodes):
        ix.bulk_insert(
            [entity] * len(where),
            list(range(len(where))),
            np.eye(DIM, dtype=np.float32)[list(where)],
            rewards=[reward] * len(where),
            actions=list(actions),
        )
    ix.refresh_regions()
    return ix


def random_index(seed: int, n: int = 30) -> tuple[TemporalIndex, list[Episode]]:
    rng = np.random.default_rng(seed)
    ix = TemporalIndex(DIM, seed=seed, m=4)
    episodes = []
    for entity in range(n):
        length = int(rng.integers(1, 8))
        reward = float(rng.integers(0, 3)) / 2
        ix.bulk_insert(
            [entity] * length,
            list(range(length)),
            rng.normal(size=(length, DIM)).astype(np.float32),
            rewards=[reward] * length,
            actions=[VERBS[i] for i in rng.integers(0, len(VERBS), length)],
        )
        family = ("clean", "heat", None)[int(rng.integers(0, 3))]
        episodes.append(Episode(entity_id=entity, task_type=family, reward=reward))
    return ix, episodes


@pytest.mark.requirement("V1")
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("go to fridge 1", "go_to"),
        ("take apple 1 from fridge 1", "take"),
        ("put apple 1 in/on table 1", "put"),
        ("move apple 1 to table 1", "put"),
        ("clean mug 1 with sink 1", "clean"),
        ("heat egg 1 with microwave 1", "heat"),
        ("cool egg 1 with fridge 1", "cool"),
        ("use desklamp 1", "use"),
        ("open drawer 1", "open"),
        ("close drawer 1", "close"),
        ("examine shelf 1", "examine"),
        ("inventory", "other"),
        ("look", "other"),
        ("", "other"),
    ],
)
def test_every_command_has_its_kind(command: str, kind: str) -> None:
    assert classify_action(command) == kind


@pytest.mark.requirement("V1", "V3")
@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_counts_are_those_of_a_loop_over_trajectories(seed: int) -> None:
    ix, episodes = random_index(seed)
    model = RegionMDP(ix, level=1, score="mean")
    model.learn_from_episodes(ix, episodes)

    region_of = dict(zip(*(a.tolist() for a in ix.region_assignments(model.level)), strict=True))
    transitions: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    rewards: dict[tuple[int, str], list[float]] = defaultdict(list)
    for episode in episodes:
        steps = ix.trajectory(episode.entity_id)
        for i, step in enumerate(steps):
            key = (region_of[step.node_id], classify_action(step.action or ""))
            assert episode.reward is not None
            end = SUCCESS if episode.reward > 0.5 else FAILURE
            follows = region_of[steps[i + 1].node_id] if i + 1 < len(steps) else end
            transitions[key][follows] += 1
            rewards[key].append(episode.reward)

    for (s, a), counts in transitions.items():
        for s_next, n in counts.items():
            assert model.transition_probability(s, a, s_next) == n / counts.total()
        assert dict(model.best_action(s))[a] == pytest.approx(np.mean(rewards[(s, a)]))
    for s in {s for s, _ in transitions}:
        listed = model.best_action(s)
        assert {a for a, _ in listed} == {a for at, a in transitions if at == s}
        assert [score for _, score in listed] == sorted((v for _, v in listed), reverse=True)


@pytest.mark.requirement("V1", "V3")
def test_steps_that_carry_their_own_reward_are_averaged_and_the_outcome_is_what_wins() -> None:
    # Regions of level 0 are the nodes there were when they were drawn, for a while.
    ix = index_of([([0, 1] * 5, [None] * 10, None)])
    for entity in (1, 2):
        ix.bulk_insert([entity] * 4, range(4), places(2)[[0, 1, 0, 1]], actions=["take", "put"] * 2)
    model, chances = RegionMDP(ix, level=0, score="mean"), RegionMDP(ix, level=0)
    played = (((0.25, None, 0.75, None), 1.0), ((0.5, 0.125, None, 0.25), 0.0))
    episodes = [
        Episode(
            entity_id=entity,
            reward=outcome,
            steps=tuple(
                Event(
                    entity_id=entity,
                    timestamp=step.timestamp,
                    node=step.node_id,
                    action=step.action,
                    reward=own,
                )
                for step, own in zip(ix.trajectory(entity), rewards, strict=True)
            ),
        )
        for entity, (rewards, outcome) in enumerate(played, start=1)
    ]
    for one in (model, chances):
        one.learn_from_episodes(ix, episodes)
    here, there = (model.region_of(node) for node in (10, 11))
    assert here is not None
    assert there is not None
    # A step without a reward of its own has that of its episode.
    assert dict(model.best_action(here)) == {"take": (0.25 + 0.75 + 0.5 + 0.0) / 4}
    assert dict(model.best_action(there)) == {"put": (1.0 + 1.0 + 0.125 + 0.25) / 4}
    assert model.transition_probability(there, "put", SUCCESS) == 0.25
    assert model.transition_probability(there, "put", FAILURE) == 0.25
    for region, action in ((here, "take"), (there, "put")):
        estimate = chances.estimate(region, action)
        assert (estimate.trials, estimate.wins) == (4, 2)
    effect = chances.action_effect("take")
    assert (effect.with_action, effect.without_action) == (2, 0)
    assert chances.region_sequences() == [((here, there, here, there), 1)]
    kept = json.loads(json.dumps(model.to_dict()))
    again = RegionMDP.from_dict(ix, kept)
    assert again.best_action(there) == model.best_action(there)
    assert again.estimate(there, "put") == model.estimate(there, "put")
    # One that was kept by an older version knows no outcome beside the rewards.
    for trace in kept["traces"]:
        del trace["outcome"]
    assert RegionMDP.from_dict(ix, kept).best_action(there) == model.best_action(there)


@pytest.mark.requirement("V3")
@pytest.mark.parametrize("level", [None, 0, 1])
@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_learning_step_by_step_is_learning_at_once(level: int | None, seed: int) -> None:
    ix, episodes = random_index(seed)
    batch = RegionMDP(ix, level)
    batch.learn_from_episodes(ix, episodes)
    stepwise = RegionMDP(ix, level)
    for episode in episodes:
        stepwise.update(episode)
    assert stepwise.to_dict() == batch.to_dict()
    for region in batch.index.regions(batch.level).tolist():
        for family in (None, "clean"):
            assert stepwise.best_action(region, family) == batch.best_action(region, family)
            assert stepwise.strategy_for(region, family) == batch.strategy_for(region, family)
            assert stepwise.region_quality(region) == batch.region_quality(region)


def test_counting_backs_off_one_context_at_a_time() -> None:
    everywhere, here = (2.0, 1.0), (1.0, 1.0)
    assert backed_off([everywhere], 1.0).mean == (1 + 0.5) / (2 + 1)
    elsewhere = (0 + 0.5) / (1 + 1)
    assert backed_off([everywhere, here], 1.0).mean == (1 + elsewhere) / (1 + 1)
    assert backed_off([(0.0, 0.0)], 1.0).mean == 0.5


def test_one_trial_counts_once_however_many_contexts_hold_it() -> None:
    assert backed_off([(1.0, 1.0)] * 10, 2.0) == backed_off([(1.0, 1.0)], 2.0)
    assert backed_off([(1.0, 1.0)], 2.0).mean == (1 + 2 * 0.5) / (1 + 2)


def test_a_model_that_learned_nothing_says_nothing() -> None:
    ix = index_of([((0,), ("take mug 1",), 1.0)])
    model = RegionMDP(ix)
    region = model.assign(places(1)[0])
    assert model.best_action(region) == []
    assert model.strategy_for(region) == ()
    assert model.region_quality(region) == 0.5
    assert model.region_sequences() == []


@pytest.mark.requirement("V3")
@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_on_new_regions_it_is_as_if_learned_there_from_the_start(seed: int) -> None:
    ix, episodes = random_index(seed, n=12)
    grown = RegionMDP(ix)
    grown.learn_from_episodes(ix, episodes)
    before = ix.region_epoch
    rng = np.random.default_rng(seed)
    ix.bulk_insert([99] * 200, list(range(200)), rng.normal(size=(200, DIM)).astype(np.float32))
    assert ix.region_epoch > before
    fresh = RegionMDP(ix)
    fresh.learn_from_episodes(ix, episodes)
    for region in ix.regions(fresh.level).tolist():
        assert grown.best_action(region) == fresh.best_action(region)
    assert grown.to_dict() == fresh.to_dict()


@pytest.mark.requirement("V3")
def test_a_strict_model_refuses_to_answer_on_other_regions() -> None:
    ix, episodes = random_index(3)
    model = RegionMDP(ix, on_stale="error")
    model.learn_from_episodes(ix, episodes)
    region = model.assign(places(1)[0])
    ix.refresh_regions()
    with pytest.raises(StaleRegionsError, match="relearn"):
        model.best_action(region)
    with pytest.raises(StaleRegionsError):
        model.update(episodes[0])
    model.relearn()
    assert model.best_action(model.assign(places(1)[0]))


def test_deleted_nodes_drop_out_when_regions_change() -> None:
    ix = index_of([((0, 1), ("take mug 1", "clean mug 1"), 1.0), ((2,), ("open box 1",), 0.0)])
    model = RegionMDP(ix, level=0)
    model.learn_from_episodes(ix, [Entity(0), Entity(1)])
    ix.delete([0])
    ix.refresh_regions()
    assert model.transition_probability(0, "take", 1) == 0.0
    assert model.transition_probability(1, "clean", SUCCESS) == 1.0


@pytest.mark.parametrize("refresh", [False, True])
def test_it_survives_json_on_the_same_regions_and_on_others(refresh: bool) -> None:
    ix, episodes = random_index(5)
    model = RegionMDP(ix)
    model.learn_from_episodes(ix, episodes)
    text = json.dumps(model.to_dict())
    if refresh:
        ix.refresh_regions()
    back = RegionMDP.from_dict(ix, json.loads(text))
    for region in ix.regions(back.level).tolist():
        assert back.best_action(region) == model.best_action(region)
        assert back.strategy_for(region) == model.strategy_for(region)


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_model_of_another_index_learns_anew_though_its_epoch_has_the_same_number(
    mirrored: bool,
) -> None:
    ix, episodes = random_index(5)
    elsewhere, _ = random_index(6)
    if mirrored:  # The same nodes are hubs, and lie elsewhere.
        elsewhere = TemporalIndex(DIM, seed=5, m=4)
        for step in (ix.step(node) for node in range(len(ix))):
            row = -np.asarray(ix.vector(step.node_id))
            elsewhere.bulk_insert([step.entity_id], [step.timestamp], row[None])
    for one in (ix, elsewhere):
        while one.region_epoch < 10:
            one.refresh_regions()
    model = RegionMDP(ix, level=0)
    model.learn_from_episodes(ix, episodes)
    data = json.loads(json.dumps(model.to_dict()))
    back = RegionMDP.from_dict(elsewhere, data)
    anew = dict(zip(*(column.tolist() for column in elsewhere.region_assignments(0)), strict=True))
    for trace in back.trajectories:
        assert list(trace.regions) == [anew[node] for node in trace.nodes if node in anew]
    with pytest.raises(StaleRegionsError, match="checksum"):
        RegionMDP.from_dict(elsewhere, {**data, "on_stale": "error"})


def test_a_reward_that_decayed_does_not_rewrite_what_happened() -> None:
    ix, episodes = random_index(7)
    model, after = RegionMDP(ix), RegionMDP(ix)
    model.learn_from_episodes(ix, episodes)
    for step in ix.trajectory(0):
        ix.set_reward(step.node_id, 0.1)
    after.learn_from_episodes(ix, episodes)
    assert after.to_dict() == model.to_dict()


@pytest.mark.parametrize(
    "kw", [{"score": "median"}, {"on_stale": "ignore"}, {"prior_strength": 0.0}]
)
def test_a_parameter_out_of_bounds_is_a_typed_error(kw: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        RegionMDP(TemporalIndex(DIM), **kw)  # type: ignore[arg-type]


def test_a_model_refuses_another_index() -> None:
    model = RegionMDP(TemporalIndex(DIM))
    with pytest.raises(InvalidInputError, match="another index"):
        model.learn_from_episodes(TemporalIndex(DIM), [])


@pytest.mark.parametrize("data", [{}, {"epoch": 1}, None, {"traces": 3}])
def test_what_no_model_told_of_itself_is_refused_by_name(data: object) -> None:
    with pytest.raises(InvalidInputError, match=r"data is .*to_dict"):
        RegionMDP.from_dict(TemporalIndex(2), data)  # type: ignore[arg-type]
