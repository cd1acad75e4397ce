"""What one asker may know of a region model is what a model of its own would know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cvx.learn.region_mdp import RegionMDP
from cvx.store.namespaces import reads
from cvx.temporal_index import TemporalIndex
from cvx.types import Episode, Event

VERBS = ("go to sink 1", "take mug 1", "clean mug 1", "put mug 1 in shelf 1")
ASKERS = [("", ()), ("ana", ()), ("bob", ("ana",)), ("eve", ("ana", "bob"))]


def played(ix: TemporalIndex, rng: np.random.Generator, number: int) -> Episode:
    """An episode of somebody, in the index."""
    namespace = str(rng.choice(["", "ana", "bob"]))
    visibility = str(rng.choice(["private", "shared", "public"]))
    length = int(rng.integers(1, 7))
    actions = [VERBS[place] for place in rng.integers(0, len(VERBS), length)]
    nodes = ix.bulk_insert(
        [number] * length,
        list(range(length)),
        rng.normal(size=(length, 6)).astype(np.float32),
        actions=actions,
    ).tolist()
    # Powers of two, so that sums are the same in any order.
    trust = float(rng.choice([1.0, 1.0, 0.5, 0.25, 0.0]))
    return Episode(
        entity_id=number,
        task_type=("clean", "heat", None)[int(rng.integers(0, 3))],
        reward=float(rng.integers(0, 3)) / 2,
        namespace=namespace,
        steps=tuple(
            Event(
                entity_id=number,
                timestamp=at,
                node=node,
                action=act,
                reward=(None, 0.25, 1.0)[int(rng.integers(0, 3))],
                visibility=visibility,
                trust=trust,
            )
            for at, (node, act) in enumerate(zip(nodes, actions, strict=True))
        ),
    )


def readable(episode: Episode, own: str, also: tuple[str, ...]) -> bool:
    visibility = episode.steps[0].visibility
    return (
        episode.namespace == own
        or visibility == "public"
        or (visibility == "shared" and episode.namespace in also)
    )


def answers(model: RegionMDP) -> dict[str, object]:
    """Everything that can be asked of a model."""
    out: dict[str, object] = {"moves": model.moves(), "paths": model.region_sequences(n=100)}
    for region in sorted(model._epochs.now.hubs):
        for family in (None, "clean", "heat"):
            out[f"best {region} {family}"] = [
                *model.best_action(region, family),
                model.best_action(region, family).basis,
            ]
            out[f"strategy {region} {family}"] = (
                model.strategy_for(region, family),
                model.strategy_for(region, family).basis,
            )
            out[f"quality {region} {family}"] = model.region_quality(region, family)
            out[f"estimate {region} {family}"] = model.estimate(region, "take", family)
        out[f"transitions {region}"] = model.transitions(region, "take")
    return out


@pytest.mark.requirement("B9", "B3", "V1")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("score", ["beta", "mean"])
def test_the_view_of_an_asker_is_the_model_of_what_it_may_read(seed: int, score: str) -> None:
    rng = np.random.default_rng(seed)
    ix = TemporalIndex(6, seed=seed, m=4)
    model = RegionMDP(ix, score=score, on_stale="gradual")  # type: ignore[arg-type]
    views = {asker: model.within(reads(*asker)) for asker in ASKERS}
    episodes: list[Episode] = []
    away: set[int] = set()
    for round_ in range(60):
        episodes.append(played(ix, rng, round_))
        model.update(episodes[-1])
        nodes = [int(step.node or 0) for episode in episodes for step in episode.steps]
        some = set(rng.choice(nodes, int(rng.integers(0, 5))).tolist())
        if rng.random() < 0.5:
            some |= {int(step.node or 0) for step in episodes[int(rng.integers(round_ + 1))].steps}
        if rng.random() < 0.6:
            model.leave_out(some)
            away |= some
        else:
            model.take_back(some)
            away -= some
        if round_ % 12 == 11:
            model.relearn()
            for asker, view in views.items():
                twin = RegionMDP(ix, score=score)  # type: ignore[arg-type]
                left = (
                    replace(e, steps=tuple(s for s in e.steps if s.node not in away))
                    for e in episodes
                    if readable(e, *asker) and e.steps[0].trust
                )
                twin.learn_from_episodes(ix, [episode for episode in left if episode.steps])
                assert answers(view) == answers(twin), asker
                assert bool(len(view)) == bool(len(twin))
    assert any(strategy for strategy in answers(model).values())


@pytest.mark.requirement("B3")
def test_what_is_trusted_less_counts_for_less() -> None:
    told = [("take mug", 1.0, 1.0), ("use gas", 1.0, 0.05), ("use gas", 0.0, 1.0)]
    chances = {}
    for believed in (0.05, 1.0):
        ix = TemporalIndex(2)
        model = RegionMDP(ix)
        for number, (action, reward, trust) in enumerate(told):
            ix.insert(number, 0, [1.0, 0.0])
            step = Event(
                entity_id=number,
                timestamp=0,
                node=number,
                action=action,
                trust=max(trust, believed),
            )
            model.update(Episode(entity_id=number, reward=reward, steps=(step,)))
        region = model.assign(np.array([1.0, 0.0], np.float32))
        assert model.estimate(region, "use").trials == pytest.approx(1.0 + believed)
        chances[believed] = dict(model.best_action(region))["use"]
        assert model.strategy_for(region) == ("take",)
    # The prior of the kind is what the other one came to, worth two trials.
    prior = 2.0 * (1.0 + 1.0) / (1.0 + 2.0)
    assert chances[0.05] == pytest.approx((0.05 + prior) / (1.05 + 2.0))
    assert chances[1.0] == pytest.approx((1.0 + prior) / (2.0 + 2.0))


def test_a_model_that_was_kept_has_what_was_left_out() -> None:
    rng = np.random.default_rng(3)
    ix = TemporalIndex(6, seed=3)
    model = RegionMDP(ix)
    episodes = [played(ix, rng, number) for number in range(8)]
    for episode in episodes:
        model.update(episode)
    model.leave_out([int(step.node or 0) for step in episodes[2].steps])
    back = RegionMDP.from_dict(ix, model.to_dict())
    assert answers(back) == answers(model)
    back.take_back(range(100))
    model.take_back(range(100))
    assert answers(back) == answers(model)
    assert len(back) == sum(bool(episode.steps[0].trust) for episode in episodes)
    told = RegionMDP.from_dict(ix, model.within(reads("ana", ())).to_dict())
    assert answers(told) == answers(model.within(reads("ana", ())))
