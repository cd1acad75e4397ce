"""What the record tells of a long run is exactly what the memory has learned from it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.learn.decay import BlindDecay
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue

DIM = 12
ACTIONS = ("go to sink 1", "take mug 1", "clean mug 1", "heat mug 1", "put mug 1")


def long_run(seed: int, games: int = 25) -> ActiveMemory:
    rng = np.random.default_rng(seed)
    am = ActiveMemory(TemporalIndex(DIM, seed=seed), decay=BlindDecay(0.8), weights=None, k=4)
    for _ in range(3):
        steps = [("", a, rng.normal(size=DIM).astype(np.float32)) for a in ACTIONS]
        am.add_demonstration("a goal", steps, str(rng.choice(["clean", "heat"])))
    for _ in range(games):
        run = am.begin("a goal", str(rng.choice(["clean", "heat"])))
        for _ in range(int(rng.integers(0, 6))):
            decision = am.recall(Cue(vector=rng.normal(size=DIM).astype(np.float32)))
            chosen = [h for h in decision.hits if rng.random() < 0.3]
            am.act(decision, str(rng.choice(ACTIONS)), chosen)
        am.close(run, float(rng.choice([0.0, 0.25, 0.75, 1.0])))
    return am


@pytest.mark.requirement("V16", "V17", "V23")
@given(st.integers(0, 10_000))
@settings(max_examples=12, deadline=None)
def test_the_record_tells_everything_that_was_learned(seed: int) -> None:
    am = long_run(seed)
    ix: Any = am.index
    episodes = {e.episode_id: e for e in am.record.episodes()}
    decisions = am.record.decisions()

    usage: dict[object, list[int]] = defaultdict(lambda: [0, 0, 0])
    edges: set[tuple[int, int, str, float]] = set()
    rewards = {s.node: e.reward for e in episodes.values() for s in am_steps(am, e.episode_id)}
    for number, episode in episodes.items():
        mine = [d for d in decisions if d["episode"] == number]
        assert episode.reward is not None
        won = episode.reward > 0.5
        followed: dict[object, bool] = {}
        for place, decision in enumerate(mine):
            assert decision["outcome"] == episode.reward
            for node, entity, *_ in decision["hits"]:
                contexts: list[object] = [(episode.task_type, entity), ("node", node), entity]
                for context in contexts:
                    followed[context] = followed.get(context, False) or (
                        node in decision["followed"]
                    )
            kind = "caused_success" if won else "caused_failure"
            weight = episode.reward if won else 1 - episode.reward
            edges |= {
                (node, episode.steps[place].node or 0, kind, weight)
                for node in decision["followed"]
            }
        if not won:
            recalled = {hit[0] for d in mine for hit in d["hits"]}
            ignored = recalled - {node for d in mine for node in d["followed"]}
            edges |= {(n, episode.steps[-1].node or 0, "irrelevant", 1.0) for n in ignored}
            for node in recalled:
                rewards[node] = float(np.float32((rewards[node] or 0.0) * 0.8))
        for context, taken in followed.items():
            cell = usage[context]
            cell[0] += 1
            cell[1] += taken
            cell[2] += taken and won

    assert am.usage is not None
    assert {c: list(am.usage.count(c)) for c in am.usage} == usage
    assert {(e.from_node, e.to_node, e.kind, e.weight) for e in ix.edges()} == edges
    assert {n: ix.reward(n) for n in rewards} == pytest.approx(rewards)
    twin = RegionMDP(ix)
    twin.learn_from_episodes(ix, [e for e in am.episodes if e.steps])
    assert am.mdp is not None
    for region in ix.regions(twin.level).tolist():
        assert am.mdp.best_action(region) == twin.best_action(region)
    failed = {s.node for e in episodes.values() if (e.reward or 0) <= 0.5 for s in e.steps}
    kept_out = am.record.query("SELECT node FROM events WHERE NOT recallable")
    assert {node for (node,) in kept_out} == failed
    assert {n for n in range(len(ix)) if not ix.recallable(n)} == failed


def am_steps(am: ActiveMemory, number: int | None) -> Any:
    """The steps as they were before any decay."""
    return next(e.steps for e in am.episodes if e.episode_id == number)


@pytest.mark.requirement("V17")
@given(st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_no_demonstration_is_ever_lost(seed: int) -> None:
    am = long_run(seed)
    for entity in range(3):
        assert [s.action for s in am.index.trajectory(entity)] == list(ACTIONS)
    am.reset_decay()
    assert all(am.index.reward(node) == 1.0 for node in range(3 * len(ACTIONS)))


@pytest.mark.requirement("V16")
def test_the_same_run_gives_the_same_memory() -> None:
    a, b = long_run(7), long_run(7)
    cue = Cue(vector=np.ones(DIM, np.float32), task_type="clean")
    assert a.recall(cue) == b.recall(cue)
    assert a.record.usage() == b.record.usage()
    assert [e.weight for e in a.record.links()] == [e.weight for e in b.record.links()]
