"""A region model on a growing index: what it learned moves over to new regions bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.learn.region_mdp import RegionMDP
from cvx.temporal_index import TemporalIndex
from cvx.types import Episode, Event

DIM = 5
VERBS = ("go to sink 1", "take mug 1", "clean mug 1", "put mug 1 in shelf 1")
FAMILIES = (None, "clean", "heat")


class Player:
    """Plays seeded episodes into an index, as a loop does."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.index = TemporalIndex(DIM, seed=seed, m=4)
        self.played: list[Episode] = []

    def play(self, steps: int) -> Episode:
        vectors = self.rng.normal(size=(steps, DIM)).astype(np.float32)
        number = len(self.played)
        actions = [VERBS[i] for i in self.rng.integers(0, len(VERBS), steps)]
        nodes = self.index.bulk_insert(
            [number] * steps, list(range(steps)), vectors, actions=actions
        ).tolist()
        reward = float(self.rng.integers(0, 2))
        events = [
            Event(
                entity_id=number,
                timestamp=at,
                node=node,
                action=action,
                vector=vector,
                reward=reward,
            )
            for at, (node, action, vector) in enumerate(zip(nodes, actions, vectors, strict=True))
        ]
        family = FAMILIES[number % len(FAMILIES)]
        self.played.append(
            Episode(entity_id=number, task_type=family, reward=reward, steps=tuple(events))
        )
        return self.played[-1]


def answers(model: RegionMDP) -> dict[str, Any]:
    """Everything a model says of its regions."""
    regions = sorted({region for trace in model.trajectories for region in trace.regions})
    return {
        "traces": [trace.to_dict() for trace in model.trajectories],
        "moves": model.moves(),
        "sequences": model.region_sequences(),
        "of": [
            (
                model.best_action(region, family),
                model.best_action(region, family).basis,
                model.region_quality(region, family),
                model.strategy_for(region, family),
                [model.estimate(region, verb, family) for verb in ("take", "put")],
            )
            for region in regions
            for family in FAMILIES
        ],
    }


def learned_at_once(player: Player, episodes: int, level: int | None = None) -> RegionMDP:
    """The naive twin: all of it learned on the regions of now."""
    twin = RegionMDP(player.index, level)
    twin.learn_from_episodes(player.index, player.played[:episodes])
    return twin


@pytest.mark.requirement("V3")
@given(st.integers(0, 10_000), st.lists(st.integers(1, 40), min_size=20, max_size=40))
@settings(max_examples=15, deadline=None)
def test_once_caught_up_it_is_as_if_learned_on_these_regions(seed: int, lengths: list[int]) -> None:
    player = Player(seed)
    model = RegionMDP(player.index, on_stale="gradual")
    caught_up = 0
    for number, steps in enumerate(lengths, start=1):
        model.update(player.play(steps))
        if not model.behind and number % 5 == 0:
            caught_up += 1
            twin = learned_at_once(player, number)
            assert (model.epoch, model.level) == (twin.epoch, twin.level)
            assert answers(model) == answers(twin)
    assert caught_up


@pytest.mark.requirement("V3")
def test_it_catches_up_within_two_thirds_of_the_way_to_the_next_epoch() -> None:
    player = Player(1)
    model = RegionMDP(player.index, on_stale="gradual")
    epochs: dict[int, list[int]] = {}
    for _ in range(60):
        model.update(player.play(100))
        epochs.setdefault(player.index.region_epoch, []).append(model.behind)
    *ended, _ = [behind for behind in epochs.values() if len(behind) > 5]
    assert len(ended) == 2
    for behind in ended:
        assert behind[0] > 0, "the steps were too few for a slice"
        assert behind == sorted(behind, reverse=True)
        assert behind.index(0) <= len(behind) * 2 / 3 + 1


@pytest.mark.requirement("V3")
def test_in_the_meantime_it_answers_by_the_regions_before() -> None:
    player = Player(2)
    model = RegionMDP(player.index, 1, on_stale="gradual")
    while not model.behind:
        model.update(player.play(20))
    assert model.epoch < player.index.region_epoch
    hubs = {region for trace in model.trajectories for region in trace.regions}
    for vector in player.rng.normal(size=(50, DIM)).astype(np.float32):
        region = model.assign(vector)
        assert model.knows(region)
        assert model.estimate(region).trials > 0
        assert region in hubs
    moves = sum(counts.total() for counts in model.moves().values())
    steps = sum(len(episode.steps) for episode in player.played)
    assert moves == steps
    for (region, action), counts in model.moves().items():
        chances = [model.transition_probability(region, action, there) for there in counts]
        assert sum(chances) == pytest.approx(1.0)


@pytest.mark.requirement("V3")
def test_what_nobody_learned_from_is_a_region_without_evidence_in_the_meantime() -> None:
    player = Player(4)
    model = RegionMDP(player.index, 1, on_stale="gradual")
    while player.index.region_epoch < 8:
        model.update(player.play(20))
    model.relearn()
    strange = player.rng.normal(size=(400, DIM)).astype(np.float32)
    player.index.bulk_insert([10_000] * 400, list(range(400)), strange)
    assert model.behind
    found = [model.estimate(model.assign(vector)) for vector in strange]
    borrowed = [estimate for estimate in found if not estimate.trials]
    assert borrowed
    assert all(estimate.basis.place == "anywhere" for estimate in borrowed)
    for _ in range(3 * len(player.played)):
        model.update(player.play(20))
    assert not model.behind
    assert answers(model) == answers(learned_at_once(player, len(player.played), level=1))


@pytest.mark.requirement("V3")
def test_deleted_nodes_drop_out_on_the_way_to_new_regions() -> None:
    player = Player(5)
    model = RegionMDP(player.index, on_stale="gradual")
    for _ in range(30):
        model.update(player.play(10))
    model.relearn()
    gone = [step.node for step in player.played[3].steps if step.node is not None]
    player.index.delete(gone)
    player.index.refresh_regions()
    assert model.behind == 30
    while model.behind:
        model.update(player.play(10))
    assert model.trajectories[3].nodes == []
    assert all(model.region_of(node) is None for node in gone)


@pytest.mark.parametrize("pace", [1, 0, -3])
def test_a_pace_that_never_arrives_is_refused(pace: int) -> None:
    with pytest.raises(InvalidInputError, match="2 or more"):
        RegionMDP(TemporalIndex(DIM), on_stale="gradual", pace=pace)
