"""One outcome is written whole or not at all; whatever fails after that follows the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cvx.errors import EpisodeEndedError, RecordIOError
from cvx.learn.decay import BlindDecay, DecayCase
from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.scoring import LearnedWeights, UsageTracker
from cvx.store import Record, failpoints
from cvx.store.writer import Writer
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue

STEPS = [("a kitchen", "go to sink 1"), ("a sink", "clean mug 1"), ("a clean mug", "put mug 1")]


class DiskError(OSError):
    """What the tests break the loop with."""


def fails(*args: Any, **kw: Any) -> None:
    raise DiskError("the disk is full")


def trained() -> ActiveMemory:
    am = ActiveMemory(TemporalIndex(128), decay=BlindDecay(0.9))
    am.add_demonstration("clean a mug", STEPS, "clean")
    am.add_demonstration("clean a cup", STEPS[:2], "clean")
    for reward in (1.0, 0.0):
        run = am.begin("clean a mug", "clean")
        decision = am.recall(Cue(step="a kitchen"))
        am.act(decision, decision.hits[0].action, decision.hits[0])
        am.close(run, reward)
    return am


def state(am: ActiveMemory) -> dict[str, Any]:
    """Everything that learning changes, as far as it can be seen."""
    record: Record = am.record
    assert am.mdp is not None
    assert am.usage is not None
    assert am.weights is not None
    assert am.scorer is not None
    ix: Any = am.index
    hits = am.recall(Cue(goal="clean a mug", step="a kitchen"), distinct=None, k=50).hits
    failed = am.recall(Cue(goal="clean a mug", step="x"), distinct=None, k=50, outcome="failure")
    return {
        "nodes": sorted(h.node for h in (*hits, *failed.hits)),
        "rewards": {h.node: h.reward for h in (*hits, *failed.hits)},
        "scores": {h.node: h.score for h in hits if h.factors},
        "edges": {(e.from_node, e.to_node, e.kind, e.weight) for e in ix.edges()},
        "mdp": [t.to_dict() for t in am.mdp.trajectories],
        "usage": {c: am.usage.count(c) for c in am.usage},
        "weights": am.weights.to_dict(),
        "scorer": am.scorer.weights,
        "log": len(am.episodes),
        "record": (
            [(e.episode_id, e.reward) for e in record.episodes()],
            [(e.node, e.reward) for e in record.events()],
            [(e.from_node, e.to_node, e.kind, e.weight, e.evidence) for e in record.links()],
            record.usage(),
            record.decays(),
            len(record.decisions()),
        ),
    }


BREAKS = [
    (Writer, "add_episode"),
    (Writer, "add_decays"),
    (Writer, "add_links"),
    (Writer, "set_usage"),
    (Writer, "set_state"),
    (Writer, "add_decisions"),
    (UsageTracker, "after"),
    (LearnedWeights, "update"),
    (LearnedWeights, "blend"),
    (BlindDecay, "factor"),
]
"""What runs before an outcome is written for good."""

FOLLOWS = [
    (TemporalIndex, "bulk_insert"),
    (TemporalIndex, "add_edge"),
    (TemporalIndex, "set_reward"),
    (RegionMDP, "update"),
]
"""What takes in an outcome that was written."""


@pytest.mark.requirement("V16")
@pytest.mark.parametrize(("owner", "name"), BREAKS, ids=[f"{o.__name__}.{n}" for o, n in BREAKS])
def test_an_error_before_the_commit_leaves_nothing(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    am = trained()
    run = am.begin("clean a mug", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.act(decision, decision.hits[0].action, decision.hits[0])
    before = state(am)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails)
        with pytest.raises(DiskError):
            am.close(run, 0.0)
    after = state(am)
    assert {k for k in before if before[k] != after[k]} == set()


def lost_a_game(am: ActiveMemory) -> OpenEpisode:
    run = am.begin("clean a mug", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.act(decision, decision.hits[0].action, decision.hits[0])
    return run


@pytest.mark.requirement("V16", "X9")
@pytest.mark.parametrize(("owner", "name"), FOLLOWS, ids=[f"{o.__name__}.{n}" for o, n in FOLLOWS])
def test_what_fails_after_the_commit_is_made_up_for_at_the_next_call(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    am, untroubled = trained(), trained()
    untroubled.close(lost_a_game(untroubled), 0.0)
    run = lost_a_game(am)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails)
        with pytest.raises(DiskError):
            am.close(run, 0.0)
    assert state(am) == state(untroubled)
    with pytest.raises(EpisodeEndedError):
        am.close(run, 0.0)
    again, other = lost_a_game(am), lost_a_game(untroubled)
    assert am.close(again, 1.0).steps[0].node == untroubled.close(other, 1.0).steps[0].node
    assert state(am) == state(untroubled)


@pytest.mark.requirement("V17")
def test_what_only_the_index_knows_decays_too_and_is_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    am = ActiveMemory(TemporalIndex(128), decay=BlindDecay(0.5))
    there = am.embedder.embed(["a kitchen"])[0]
    node = am.index.insert(77, 0, there, action="go to sink 1", reward=1.0)
    for left in (0.5, 0.25):
        run = am.begin("clean a mug", "clean")
        decision = am.recall(Cue(vector=there))
        am.act(decision, "go to sink 1")
        with monkeypatch.context() as patch:
            patch.setattr(TemporalIndex, "set_reward", fails)
            with pytest.raises(DiskError):
                am.close(run, 0.0)
        am.recall(Cue(vector=there))
        assert am.index.reward(node) == left
    assert am.reset_decay() == {node: 1.0}
    assert am.index.reward(node) == 1.0


@pytest.mark.requirement("V16", "X9")
@pytest.mark.parametrize("name", ["transaction.committed", "tail.written"])
def test_an_error_that_is_told_after_the_commit_leaves_the_episode_closed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    am, untroubled = trained(), trained()
    untroubled.close(lost_a_game(untroubled), 0.0)
    run = lost_a_game(am)
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_wanted", f"{name}:error")
        patch.setattr(failpoints, "_reached", {})
        with pytest.raises(RecordIOError):
            am.close(run, 0.0)
    assert run.closed
    assert state(am) == state(untroubled)


@pytest.mark.requirement("V16", "X9")
def test_an_index_saved_before_an_outcome_catches_up_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    am, untroubled = trained(), trained()
    untroubled.close(lost_a_game(untroubled), 0.0)
    run = lost_a_game(am)
    with monkeypatch.context() as patch:
        patch.setattr(TemporalIndex, "bulk_insert", fails)
        with pytest.raises(DiskError):
            am.close(run, 0.0)
    am.index.save(tmp_path / "behind.cvx")
    index = TemporalIndex.load(tmp_path / "behind.cvx")
    again = ActiveMemory(index, record=am.record, decay=BlindDecay(0.9))
    assert state(again) == state(untroubled)


@pytest.mark.requirement("V16")
def test_an_episode_whose_close_failed_can_be_closed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    am, untroubled = trained(), trained()
    for each in (am, untroubled):
        run = each.begin("clean a mug", "clean")
        decision = each.recall(Cue(step="a kitchen"))
        each.act(decision, decision.hits[0].action, decision.hits[0])
        if each is am:
            with monkeypatch.context() as patch:
                patch.setattr(Writer, "add_decisions", fails)
                with pytest.raises(DiskError):
                    each.close(run, 0.0)
        each.close(run, 0.0)
    a, b = am.record, untroubled.record
    assert a.usage() == b.usage()
    assert [d[1:] for d in a.decays()] == [d[1:] for d in b.decays()]
    assert [(e.from_node, e.kind) for e in a.links()] == [(e.from_node, e.kind) for e in b.links()]
    assert am.index.reward(0) == untroubled.index.reward(0)


@pytest.mark.requirement("V14", "V16")
def test_a_game_costs_a_memory_once_however_often_it_was_recalled() -> None:
    class Count:
        """A policy that counts how often it is asked about each node's action."""

        def __init__(self) -> None:
            self.asked = 0

        def factor(self, case: DecayCase) -> float:  # noqa: ARG002
            self.asked += 1
            return 0.5

    policy = Count()
    am = ActiveMemory(TemporalIndex(128), decay=policy)
    am.add_demonstration("clean a mug", STEPS[:1], "clean")
    run = am.begin("clean a mug", "clean")
    for _ in range(5):
        am.act(am.recall(Cue(step="a kitchen")), "go to sink 1")
    am.close(run, 0.0)
    assert policy.asked == 1
    assert am.index.reward(0) == 0.5


def test_a_reset_of_decay_that_cannot_be_written_can_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    am = trained()
    before = state(am)
    with monkeypatch.context() as broken:
        broken.setattr(Writer, "clear_decays", fails)
        with pytest.raises(DiskError):
            am.reset_decay()
    assert state(am) == before
    assert am.reset_decay()
    assert am.reset_decay() == {}
