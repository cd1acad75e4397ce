"""The loop: recall, act, close, and what the next recall makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.errors import (
    EpisodeEndedError,
    InvalidInputError,
    InvalidVectorError,
    StoreError,
    UnknownError,
)
from cvx.learn.decay import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    DecayPolicy,
    ProportionalDecay,
)
from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.scoring import LearnedWeights, Scorer, UsageTracker, use_posterior
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Decision, Filter, Hit

DIM = 256
CLEAN = [
    ("a kitchen", "go to sink 1"),
    ("a sink", "clean mug 1 with sink 1"),
    ("a clean mug", "put mug 1 in shelf 1"),
]
HEAT = [
    ("a kitchen", "go to microwave 1"),
    ("a microwave", "heat egg 1 with microwave 1"),
    ("a hot egg", "put egg 1 in shelf 1"),
]


def memory(**kw: object) -> ActiveMemory:
    made = ActiveMemory(TemporalIndex(DIM), **kw)  # type: ignore[arg-type]
    made.add_demonstration("clean a mug", CLEAN, "clean")
    made.add_demonstration("heat an egg", HEAT, "heat")
    return made


def play(
    am: ActiveMemory,
    reward: float,
    *,
    family: str = "clean",
    follow: bool = True,
    views: tuple[str, ...] = ("a kitchen", "a sink"),
) -> tuple[OpenEpisode, list[Decision]]:
    """Play a game that takes the first advice at every step, or none at all."""
    run = am.begin(f"{family} a cup", family)
    decisions = []
    for view in views:
        decision = am.recall(Cue(step=view))
        best = decision.hits[0]
        action = best.action if follow else "sing"
        decisions.append(am.act(decision, action, best if follow else ()))
    am.close(run, reward)
    return run, decisions


def links(am: ActiveMemory, kind: str) -> set[tuple[int, int]]:
    return {(e.from_node, e.to_node) for e in am.index.edges() if e.kind == kind}


@pytest.mark.requirement("V16")
def test_recall_returns_the_continuation_of_what_is_similar() -> None:
    am = memory()
    am.begin("clean a cup", "clean")
    hit = am.recall(Cue(step="a kitchen")).hits[0]
    assert hit.action == "go to sink 1"
    assert [step.action for step in hit.successors] == [action for _, action in CLEAN[1:]]
    assert hit.predecessors == ()
    episode = am.history.episode(hit.node)
    assert episode is not None
    assert (episode.goal, episode.kind) == ("clean a mug", "demonstration")


@pytest.mark.requirement("V16", "X14")
def test_hits_come_best_first_and_explain_their_score() -> None:
    am = memory()
    play(am, 1.0)
    am.begin("clean a cup", "clean")
    hits = am.recall(Cue(step="a kitchen")).hits
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    for hit in hits:
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score)
        assert hit.similarity == pytest.approx(1 - hit.distance)


@pytest.mark.requirement("V16")
def test_each_entity_advises_once_unless_all_its_steps_are_asked_for() -> None:
    am = memory()
    entities = [h.entity_id for h in am.recall(Cue(step="a kitchen")).hits]
    assert sorted(entities) == [0, 1]
    assert len(am.recall(Cue(step="a kitchen"), distinct=None).hits) == 6
    assert len(am.recall(Cue(step="a kitchen"), k=1).hits) == 1


def test_each_episode_of_an_entity_advises() -> None:
    am = ActiveMemory(TemporalIndex(DIM))
    for _ in range(3):
        am.add_demonstration("clean a mug", CLEAN, "clean", entity_id=7)
    found = am.recall(Cue(step="a kitchen")).hits
    assert [hit.action for hit in found] == ["go to sink 1"] * 3
    assert len(am.recall(Cue(step="a kitchen"), distinct="entity").hits) == 1


def test_nodes_of_no_episode_advise_once_an_entity() -> None:
    am = memory()
    rows = am.embedder.embed([text for text, _ in CLEAN])
    am.index.bulk_insert([7, 7, 8], [0, 1, 2], rows)
    found = am.recall(Cue(step="a kitchen")).hits
    assert sorted(hit.entity_id for hit in found) == [0, 1, 7, 8]


@pytest.mark.requirement("V16")
def test_a_pool_full_of_one_entity_grows_until_others_are_found() -> None:
    am = ActiveMemory(TemporalIndex(DIM), k=2, pool=1)
    am.add_demonstration("stay", [("a kitchen", f"look {i}") for i in range(50)], "clean")
    am.add_demonstration("leave", [("a garden far away", "go to gate 1")], "clean")
    assert {h.entity_id for h in am.recall(Cue(step="a kitchen")).hits} == {0, 1}


@pytest.mark.requirement("V16", "V17")
def test_a_success_becomes_advice_with_its_reward_on_every_step() -> None:
    am = memory()
    play(am, 1.0)
    episode = am.episodes[-1]
    nodes = [step.node for step in episode.steps]
    assert [am.index.reward(n) for n in nodes if n is not None] == [1.0, 1.0]
    assert nodes[0] in [h.node for h in am.recall(Cue(goal="clean a cup", step="a kitchen")).hits]


@pytest.mark.requirement("V1", "V16")
def test_a_step_may_have_a_reward_of_its_own_and_the_region_model_keeps_the_mean() -> None:
    index = TemporalIndex(DIM)
    # Regions of level 0 are the nodes there were when they were drawn; of equals it is the first.
    index.bulk_insert([99] * 10, range(10), np.ones((10, DIM)))
    index.refresh_regions()

    def model() -> RegionMDP:
        return RegionMDP(index, level=0, score="mean", on_stale="error")

    am = ActiveMemory(index, mdp=model(), decay=BlindDecay(0.5), distinct=None)
    run = am.begin("clean a cup", "clean")
    am.step(run, "a kitchen", "go to sink 1", reward=0.25)
    am.step(run, "a sink", "take mug 1")
    episode = am.close(run, 1.0)
    assert [step.reward for step in episode.steps] == [0.25, 1.0]
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.act(decision, "go to sink 1", reward=0.75)
    lost = am.close(run, 0.0)
    # What followed in the failed game was at half its worth.
    nodes = [step.node for one in (episode, lost) for step in one.steps]
    assert [am.index.reward(node) for node in nodes if node is not None] == [0.125, 0.5, 0.75]
    again = ActiveMemory(index, record=am.record, mdp=model())
    for loop in (am, again):
        assert loop.mdp is not None
        assert dict(loop.mdp.best_action(0)) == {"go_to": 0.5, "take": 1.0}
        counted = loop.mdp.estimate(0, "go_to")
        assert (counted.trials, counted.wins) == (2, 1)
        assert [step.reward for step in loop.episodes[0].steps] == [0.25, 1.0]


@pytest.mark.parametrize("reward", [1.5, -0.1, float("nan"), "much"])
def test_a_reward_of_a_step_that_is_no_share_is_refused_and_the_step_not_taken(
    reward: Any,
) -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    with pytest.raises(InvalidInputError):
        am.step(run, "a kitchen", "go to sink 1", reward=reward)
    with pytest.raises(InvalidInputError):
        am.act(decision, "go to sink 1", reward=reward)
    assert run.steps == []
    am.act(decision, "go to sink 1", reward=0.5)
    assert [step.reward for step in am.close(run, 1.0).steps] == [0.5]


@pytest.mark.requirement("V16", "V17", "X11")
def test_a_failure_is_kept_and_never_advises() -> None:
    am = memory()
    play(am, 0.0)
    nodes = {step.node for step in am.episodes[-1].steps}
    cue = Cue(goal="clean a cup", step="a kitchen")
    assert not nodes & {h.node for h in am.recall(cue, distinct=None, k=50).hits}
    assert not nodes & {
        h.node for h in am.recall(cue, Filter(recallable=None), distinct=None, k=50).hits
    }
    asked = am.recall(cue, outcome="failure").hits
    assert {h.node for h in asked} <= nodes
    assert asked
    assert {h.event.kind for h in asked if h.event} == {"failed_step"}
    assert {h.reward for h in asked} == {0.0}
    assert "failed" in am.render(am.recall(cue, outcome="failure"))


@pytest.mark.requirement("V17")
def test_failures_can_be_left_out_of_everything_but_decay() -> None:
    am = memory(learn_from_failures=False)
    before = len(am.index)
    play(am, 0.0)
    assert len(am.index) == before
    assert am.mdp is not None
    assert len(am.mdp) == 2
    assert am.usage is not None
    assert len(am.usage) == 0
    assert am.index.edges() == []
    assert am.record.decays()
    assert [e.reward for e in am.record.episodes()] == [1.0, 1.0, 0.0]


@pytest.mark.requirement("V16")
def test_followed_advice_is_linked_to_the_step_that_followed_it() -> None:
    am = memory()
    _, decisions = play(am, 1.0)
    nodes = [step.node for step in am.episodes[-1].steps]
    expected = {(d.followed[0], n) for d, n in zip(decisions, nodes, strict=True)}
    assert links(am, "caused_success") == expected
    assert links(am, "caused_failure") == links(am, "irrelevant") == set()


@pytest.mark.requirement("V16")
def test_a_failure_tells_followed_advice_from_ignored() -> None:
    am = memory()
    _, decisions = play(am, 0.0)
    nodes = [step.node for step in am.episodes[-1].steps]
    followed = {d.followed[0] for d in decisions}
    seen = {h.node for d in decisions for h in d.hits}
    assert links(am, "caused_failure") == {
        (d.followed[0], n) for d, n in zip(decisions, nodes, strict=True)
    }
    assert links(am, "irrelevant") == {(node, nodes[-1]) for node in seen - followed}
    assert links(am, "caused_success") == set()


@pytest.mark.requirement("V16")
def test_the_record_has_the_same_edges_as_the_index() -> None:
    am = memory()
    play(am, 0.25)
    play(am, 1.0)
    found = {(e.from_node, e.to_node, e.kind, e.weight) for e in am.index.edges()}
    kept = {(e.from_node, e.to_node, e.kind, e.weight) for e in am.record.links()}
    assert found == kept
    assert {w for _, _, kind, w in kept if kind == "caused_failure"} == {0.75}


@pytest.mark.requirement("V9", "V16")
def test_an_outcome_can_be_asked_who_caused_it() -> None:
    am = memory()
    _, decisions = play(am, 1.0)
    last = am.episodes[-1].steps[-1].node
    assert last is not None
    found = am.index.typed_neighbors(last, "caused_success", direction="in")
    assert [edge.from_node for edge in found] == [decisions[-1].followed[0]]


def reopened(am: ActiveMemory, path: Path, **kw: object) -> ActiveMemory:
    """A loop on the index alone, saved and loaded; its record is lost."""
    am.index.save(path)
    return ActiveMemory(TemporalIndex.load(path), **kw)  # type: ignore[arg-type]


@pytest.mark.requirement("V16", "V19")
def test_an_index_that_was_saved_and_loaded_gives_the_loop_its_region_model_back(
    tmp_path: Path,
) -> None:
    am = memory()
    for game in range(12):
        play(am, float(game % 3 > 0), family=("clean", "heat")[game % 2], follow=game % 4 > 0)
    again = reopened(am, tmp_path / "a.cvx")
    assert am.mdp is not None
    assert again.mdp is not None
    am.mdp.relearn()
    assert len(again.mdp) == len(am.mdp) == 14
    regions = again.index.regions(again.mdp.level).tolist()
    assert regions == am.index.regions(am.mdp.level).tolist()
    for family in (None, "clean", "heat"):
        assert again.mdp.moves(family) == am.mdp.moves(family)
        for region in regions:
            assert again.mdp.best_action(region, family) == am.mdp.best_action(region, family)
            assert again.mdp.strategy_for(region, family) == am.mdp.strategy_for(region, family)
    again.begin("clean a cup", "clean")
    assert again.recall(Cue(step="a kitchen")).action_scores == tuple(
        am.mdp.best_action(again.mdp.assign(again.embedder.embed(["a kitchen"])[0]), "clean")
    )


@pytest.mark.requirement("V14", "V16", "V19")
def test_a_loaded_index_tells_the_loop_which_family_a_memory_is_of(tmp_path: Path) -> None:
    am = reopened(memory(), tmp_path / "a.cvx")
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"), distinct=None, k=50)
    matches = {
        hit.node: factor.value
        for hit in decision.hits
        for factor in hit.factors
        if factor.name == "task_match"
    }
    assert matches == {node: float(node < 3) for node in range(6)}
    am.act(decision, "sing", decision.hits)
    am.close(run, 0.0)
    assert [am.index.reward(node) == 1.0 for node in range(6)] == [False] * 3 + [True] * 3


@pytest.mark.requirement("V16", "V19")
def test_what_is_played_on_a_loaded_index_goes_on_after_what_is_there(tmp_path: Path) -> None:
    am = memory()
    play(am, 1.0)
    for path in (tmp_path / "a.cvx", tmp_path / "b.cvx"):
        am = reopened(am, path)
        play(am, 1.0)
    index: Any = am.index
    timelines = [index.trajectory(entity) for entity in range(5)]
    assert [len(steps) for steps in timelines] == [3, 3, 2, 2, 2]
    times = [step.timestamp for steps in timelines for step in steps]
    assert times == sorted(set(times))
    assert am.mdp is not None
    assert len(am.mdp) == 5


@pytest.mark.requirement("V14", "V16")
def test_only_followed_advice_of_the_same_family_decays() -> None:
    am = memory()
    _, decisions = play(am, 0.0)
    followed = {d.followed[0] for d in decisions}
    rewards = {h.node: am.index.reward(h.node) for d in decisions for h in d.hits}
    assert {node for node, reward in rewards.items() if reward != 1.0} == followed
    assert all(0.7 <= (am.index.reward(n) or 0) <= 0.95 for n in followed)


@pytest.mark.requirement("V14", "V16")
def test_a_loop_decays_each_memory_by_its_own_family_and_the_quality_of_its_region() -> None:
    index = TemporalIndex(3)
    places = np.eye(3, dtype=np.float32)
    # Regions of level 0 are the nodes there were when they were drawn, for a while.
    index.bulk_insert([99] * 30, range(30), np.tile(places, (10, 1)))
    index.refresh_regions()
    am = ActiveMemory(index, mdp=RegionMDP(index, 0, on_stale="error"), distinct=None)
    assert am.mdp is not None

    def seen(place: int, family: str, outcome: float) -> int:
        steps = [("", f"take mug {place}", places[place])]
        node = am.add_demonstration("a mug", steps, family, reward=outcome).steps[0].node
        assert node is not None
        return node

    good, bad, other = seen(0, "clean", 0.8), seen(1, "clean", 0.8), seen(2, "heat", 0.8)
    for _ in range(3):
        seen(0, "clean", 1.0)
        seen(1, "clean", 0.0)
    quality = [am.mdp.region_quality(place) for place in range(2)]
    assert quality[0] > 0.75 > 0.5 > quality[1]
    run = am.begin("a mug", "clean")
    for place in range(3):
        decision = am.recall(Cue(vector=places[place]), k=50)
        advice = [hit for hit in decision.hits if hit.node in (good, bad, other)]
        am.act(decision, f"take mug {place}", [hit for hit in advice if hit.similarity > 0.5])
    am.close(run, 0.0)
    expected = [0.8 * (0.7 + 0.25 * quality[0]), 0.8 * (0.7 + 0.25 * quality[1]), 0.8]
    assert [index.reward(node) for node in (good, bad, other)] == pytest.approx(expected)


@pytest.mark.requirement("V14", "V16")
def test_advice_that_nobody_followed_does_not_decay_unless_decay_is_blind() -> None:
    careful, blind = memory(), memory(decay=BlindDecay(0.5))
    for am in (careful, blind):
        play(am, 0.0, follow=False)
    assert careful.record.decays() == []
    assert {after for *_, after in blind.record.decays()} == {0.5}


def lowered(policy: DecayPolicy | None) -> dict[int, float]:
    """By how much a failure that followed its advice lowers which node."""
    am = memory(**({} if policy is None else {"decay": policy}))
    play(am, 0.0)
    return {node: after / before for _, node, before, after in am.record.decays()}


@pytest.mark.requirement("X12")
def test_decay_is_a_policy_of_the_loop_and_by_context_where_none_is_given() -> None:
    assert lowered(BlindDecay(1.0)) == {}
    blind, context = lowered(BlindDecay()), lowered(ContextAwareDecay())
    assert len(blind) > len(context) > 0, "blind decay blames what was not followed too"
    assert set(blind.values()) == {0.85}
    assert lowered(None) == context
    assert lowered(ContextAwareDecay(worst=0.7, span=0.0)) == dict.fromkeys(context, 0.7)
    spared = {node: factor - 0.7 for node, factor in context.items()}
    half = lowered(ContextAwareDecay(worst=0.7, span=0.125))
    assert {node: factor - 0.7 for node, factor in half.items()} == pytest.approx(
        {node: more / 2 for node, more in spared.items()}
    )
    assert max(spared.values()) > 0.0
    assert all(0.7 < factor < 1.0 for factor in lowered(ProportionalDecay(0.3)).values())
    assert lowered(BayesianDecay()).keys() == context.keys()


@pytest.mark.requirement("V17")
def test_decay_lowers_rewards_deletes_nothing_and_can_be_undone() -> None:
    am = memory(decay=BlindDecay(0.5))
    for _ in range(3):
        play(am, 0.0)
    lowered = {node: after for _, node, _, after in am.record.decays()}
    assert min(lowered.values()) <= 0.25
    assert {n: am.index.reward(n) for n in lowered} == pytest.approx(lowered)
    assert [s.action for s in am.index.trajectory(0)] == [action for _, action in CLEAN]
    am.reset_decay()
    assert {am.index.reward(n) for n in range(6)} == {1.0}
    assert am.record.decays() == []
    assert {e.reward for e in am.record.events() if e.node is not None and e.node < 6} == {1.0}


@pytest.mark.requirement("V16", "V23")
def test_retrieved_followed_and_helped_are_counted_apart() -> None:
    am = memory()
    play(am, 1.0)
    play(am, 0.0, follow=False)
    assert am.usage is not None
    assert am.usage.count(("clean", 0)) == (2, 1, 1)
    assert am.usage.count(("clean", 1)) == (2, 0, 0)
    assert am.usage.count(("heat", 0)) == (0, 0, 0)
    assert am.usage.count(("node", 0)).helped == 1
    kept = UsageTracker()
    kept.load(am.record)
    assert {c: kept.count(c) for c in kept} == {c: am.usage.count(c) for c in am.usage}


@pytest.mark.requirement("V11", "V13", "V23")
def test_use_counted_by_the_loop_is_found_by_entity_and_by_bayesian_search() -> None:
    index = TemporalIndex(DIM)
    am = ActiveMemory(index)
    for steps in (CLEAN, HEAT):
        am.add_demonstration("a mug or an egg", steps, "clean")
    for reward in (1.0, 0.0):
        run = am.begin("clean a cup", "clean")
        decision = am.recall(Cue(step="a kitchen"))
        advice = next(hit for hit in decision.hits if hit.entity_id == int(reward))
        am.act(decision, advice.action, advice)
        am.close(run, reward)
    usage_tracker = am.usage
    assert usage_tracker is not None
    assert [usage_tracker.count(entity) for entity in (0, 1)] == [(2, 1, 0), (2, 1, 1)]
    assert usage_tracker[1] > 0.8 > 0.2 > usage_tracker[0]
    kitchen = am.embedder.embed(["a kitchen"])[0]
    hits = index.bayesian_search(kitchen, k=12, usage=usage_tracker, weights={"usage_success": 1.0})
    assert {hit.entity_id: hit.score for hit in hits if hit.entity_id < 2} == {
        entity: pytest.approx(usage_tracker[entity]) for entity in (0, 1)
    }


@pytest.mark.requirement("V16", "V23")
def test_an_episode_that_was_cut_off_is_kept_and_blames_by_its_exposure() -> None:
    blamed = {}
    for exposure in (0.0, 0.5, 1.0):
        am = memory()
        run = am.begin("clean a cup", "clean")
        am.act(am.recall(Cue(step="a kitchen")), "go to sink 1")
        lost = am.close(run, 0.0, exposure=exposure)
        assert lost.steps[0].node in am.index
        assert {edge.kind for edge in am.index.edges()} >= {"caused_failure"}
        assert am.usage is not None
        assert am.usage.count(("clean", 0)).followed == 1
        blamed[exposure] = am.usage[("clean", 0)]
    assert 0.5 == blamed[0.0] > blamed[0.5] > blamed[1.0]


@pytest.mark.requirement("V16", "V23")
def test_to_be_cut_off_at_once_leaves_a_posterior_that_began_with_similarity_as_it_was() -> None:
    scores = {}
    for exposure in (0.0, 1.0):
        usage = UsageTracker(mean="similarity")
        feature = use_posterior(usage, lambda hit, task: (task, hit.entity_id))
        am = memory(usage=usage, scorer=Scorer({"own": 1.0}, features={"own": feature}))
        score = []
        for _ in range(3):
            run = am.begin("clean a cup", "clean")
            decision = am.recall(Cue(step="an odd kitchen"))
            score += [hit.score for hit in decision.hits if hit.entity_id == 0]
            am.act(decision, "go to sink 1")
            am.close(run, 0.0, exposure=exposure)
        scores[exposure] = score
    assert scores[0.0] == pytest.approx([scores[0.0][0]] * 3)
    assert scores[1.0][2] < scores[1.0][1] < scores[1.0][0] == scores[0.0][0] < 1


@pytest.mark.requirement("V16")
@pytest.mark.parametrize("exposure", [-0.5, 2.0, float("nan"), "x", None])
def test_an_exposure_that_is_no_chance_leaves_the_episode_running(exposure: Any) -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    am.act(am.recall(Cue(step="a kitchen")), "go to sink 1")
    before = len(am.index), len(am.episodes)
    with pytest.raises(InvalidInputError, match="exposure"):
        am.close(run, 0.0, exposure=exposure)
    assert (len(am.index), len(am.episodes)) == before
    assert am.close(run, 1.0).reward == 1.0


@pytest.mark.requirement("V16", "V23")
def test_advice_that_failed_gives_way_to_advice_that_helped() -> None:
    am = ActiveMemory(TemporalIndex(DIM), k=2, decay=None, mdp=None, weights=None)
    am.add_demonstration("clean a mug", [("a kitchen", "sing")], "clean")
    am.add_demonstration("clean a mug", [("a kitchen", "go to sink 1")], "clean")
    for _ in range(2):
        run = am.begin("clean a mug", "clean")
        decision = am.recall(Cue(step="a kitchen"), Filter(entities=[0, 1]))
        am.act(decision, decision.hits[0].action, decision.hits[0])
        am.close(run, float(decision.hits[0].action == "go to sink 1"))
    am.begin("clean a mug", "clean")
    best = am.recall(Cue(step="a kitchen"), Filter(entities=[0, 1])).hits[0]
    assert best.action == "go to sink 1"


@pytest.mark.requirement("V16")
def test_the_region_model_learns_from_successes_and_failures() -> None:
    am = memory()
    play(am, 1.0)
    play(am, 0.0)
    assert am.mdp is not None
    twin = RegionMDP(am.index)
    twin.learn_from_episodes(am.index, am.episodes)
    assert len(am.mdp) == 4
    for region in am.index.regions(am.mdp.level):
        assert am.mdp.best_action(int(region), "clean") == twin.best_action(int(region), "clean")


@pytest.mark.requirement("V6", "V16")
def test_a_decision_knows_which_kinds_of_action_succeed_here() -> None:
    am = memory()
    for _ in range(4):
        play(am, 1.0)
    am.begin("clean a cup", "clean")
    decision = am.recall(Cue(goal="clean a cup", step="a sink"))
    assert am.mdp is not None
    assert decision.region == am.mdp.assign(am.embedder.embed(["clean a cup a sink"])[0])
    assert list(decision.action_scores) == am.mdp.best_action(decision.region, "clean")
    kinds = dict(decision.action_scores)
    for hit in decision.hits:
        (factor,) = [f for f in hit.factors if f.name == "action_success"]
        kind = am.models.rules.action_type(hit.action or "")
        if kind in kinds:
            assert factor.value == kinds[kind]


@pytest.mark.requirement("V6")
def test_similar_states_are_ranked_by_the_success_of_their_continuation() -> None:
    am = ActiveMemory(
        TemporalIndex(DIM), scorer=Scorer({"action_success": 1.0}), decay=None, weights=None
    )
    for _ in range(3):
        am.add_demonstration("clean", [("a kitchen", "open box 1")], "clean", reward=0.0)
        am.add_demonstration("clean", [("a kitchen", "take mug 1")], "clean")
    am.add_demonstration("clean", [("a kitchen", "open box 2")], "clean")
    am.begin("clean", "clean")
    ranked = [h.action for h in am.recall(Cue(goal="", text="a kitchen")).hits]
    assert ranked[-1] == "open box 2"
    assert set(ranked[:-1]) == {"take mug 1"}


@pytest.mark.requirement("V16")
def test_weights_learn_from_what_was_followed() -> None:
    am = memory()
    prior = dict(am.scorer.weights) if am.scorer else {}
    for game in range(6):
        play(am, float(game % 2))
    assert am.weights is not None
    assert am.scorer is not None
    assert am.weights.samples == 12
    assert any(am.weights.coefficients)
    assert am.scorer.weights == am.weights.blend(prior)
    assert am.record.state("weights") == am.weights.to_dict()


@pytest.mark.requirement("V16")
def test_ignored_advice_teaches_the_weights_nothing() -> None:
    am = memory()
    play(am, 0.0, follow=False)
    assert am.weights is not None
    assert am.weights.samples == 0


@pytest.mark.requirement("V16", "V18")
def test_a_decision_reads_as_evidence_with_chains_and_a_strategy() -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    text = am.render(am.recall(Cue(step="a kitchen"), episode=run))
    lines = text.splitlines()
    assert "not instructions" in lines[0]
    assert "demonstration that succeeded (clean)" in lines[1]
    assert lines[1].endswith("go to sink 1 -> clean mug 1 with sink 1 -> put mug 1 in shelf 1")
    assert "What succeeded most often from here for clean: go_to -> clean -> put" in text


def test_an_empty_memory_has_nothing_to_say() -> None:
    am = ActiveMemory(TemporalIndex(DIM))
    run = am.begin("clean a mug", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    assert (decision.hits, decision.action_scores, decision.region) == ((), (), None)
    assert am.render(decision) == ""
    am.act(decision, "sing")
    am.close(run, 0.0)
    assert am.recall(Cue(step="a kitchen")).hits == ()


@pytest.mark.requirement("V18")
@pytest.mark.parametrize(
    "off",
    [
        {"scorer": None},
        {"decay": None},
        {"mdp": None},
        {"usage": None},
        {"weights": None},
        {"edges": False},
        {"learn_from_failures": False},
        {"edge_boost": {"caused_success": 0.3}},
        {"log_decisions": False},
        {
            "scorer": None,
            "decay": None,
            "mdp": None,
            "usage": None,
            "weights": None,
            "edges": False,
            "learn_from_failures": False,
        },
    ],
    ids=lambda off: "+".join(off),
)
def test_every_part_can_be_switched_off(off: dict[str, object]) -> None:
    am = memory(**off)
    play(am, 1.0)
    play(am, 0.0)
    hits = am.recall(Cue(goal="clean a cup", step="a kitchen")).hits
    assert hits[0].action == "go to sink 1"
    assert am.render(am.recall(Cue(step="a kitchen")))
    if off.get("edges") is False:
        assert am.index.edges() == []
    if off.get("log_decisions") is False:
        assert am.record.decisions() == []


@pytest.mark.requirement("V18")
def test_without_a_scorer_the_order_is_that_of_similarity() -> None:
    am = memory(scorer=None)
    am.begin("clean a cup", "clean")
    hits = am.recall(Cue(step="a kitchen"), distinct=None).hits
    assert [h.score for h in hits] == [h.similarity for h in hits]
    assert [h.distance for h in hits] == sorted(h.distance for h in hits)


@pytest.mark.requirement("V8", "V16")
def test_recall_can_follow_edges_to_what_similarity_misses() -> None:
    am = memory(edge_boost={"caused": 0.9}, scorer=Scorer({"similarity": 1.0}))
    far = am.add_demonstration("elsewhere", [("zzz qqq", "open gate 1")], "clean").steps[0].node
    am.index.add_edge(0, far or 0, "caused", 1.0)
    by_node = {h.node: h for h in am.recall(Cue(step="a kitchen"), distinct=None).hits}
    assert [edge.kind for edge in by_node[far or 0].path] == ["caused"]


@pytest.mark.requirement("V16")
def test_the_words_of_the_episode_complete_the_cue() -> None:
    am = memory()
    am.begin("clean a cup", "clean")
    cue = am.recall(Cue(step="a kitchen")).cue
    assert (cue.goal, cue.task_type, cue.place) == ("clean a cup", "clean", 0)
    assert cue.vector is not None
    np.testing.assert_array_equal(cue.vector, am.embedder.embed(["clean a cup a kitchen"])[0])
    given = np.ones(DIM, np.float32)
    assert am.recall(Cue(vector=given)).cue.vector is given


@pytest.mark.requirement("V16")
def test_advice_named_by_its_action_counts_as_followed() -> None:
    am = memory()
    am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    assert am.act(decision, "go to sink 1").followed == (0,)


@pytest.mark.requirement("V16")
def test_steps_taken_without_asking_are_part_of_the_episode() -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    am.step(run, "a hall", "go to kitchen 1", tags=("way",))
    am.act(am.recall(Cue(step="a kitchen")), "go to sink 1")
    episode = am.close(run, 1.0)
    assert episode.actions == ("go to kitchen 1", "go to sink 1")
    assert links(am, "caused_success") == {(0, episode.steps[1].node)}
    found = am.recall(Cue(step="a hall"), Filter(tags=["way"])).hits
    assert [h.node for h in found] == [episode.steps[0].node]


@pytest.mark.requirement("V16")
def test_a_step_may_be_filed_elsewhere_than_where_memory_was_asked() -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    vector = am.embedder.embed(["a place of its own"])[0]
    am.act(am.recall(Cue(step="a kitchen")), None, (), vector=vector)
    node = am.close(run, 1.0).steps[0].node
    assert am.recall(Cue(vector=vector)).hits[0].node == node


@pytest.mark.requirement("V16")
def test_nothing_is_recalled_across_namespaces() -> None:
    am = memory()
    run = am.begin("clean a cup", "clean", namespace="other house")
    assert am.recall(Cue(step="a kitchen")).hits == ()
    am.step(run, "a kitchen", "open window 1")
    am.close(run, 1.0)
    am.begin("clean a cup", "clean", namespace="other house")
    assert [h.action for h in am.recall(Cue(step="a kitchen")).hits] == ["open window 1"]
    am.begin("clean a cup", "clean")
    assert "open window 1" not in [h.action for h in am.recall(Cue(step="a kitchen")).hits]


@pytest.mark.requirement("V16")
def test_the_record_tells_which_memory_drove_which_decision() -> None:
    am = memory()
    run, decisions = play(am, 1.0)
    rows = am.record.decisions(run.episode_id)
    assert [row["decision_id"] for row in rows] == [d.decision_id for d in decisions]
    assert [row["followed"] for row in rows] == [list(d.followed) for d in decisions]
    assert {row["outcome"] for row in rows} == {1.0}
    assert [hit[0] for hit in rows[0]["hits"]] == [h.node for h in decisions[0].hits]


@pytest.mark.requirement("V16")
def test_a_memory_goes_on_from_its_record() -> None:
    first = memory()
    for game in range(4):
        play(first, float(game % 2))
    second = ActiveMemory(first.index, record=first.record)
    cue = Cue(goal="clean a cup", step="a kitchen", task_type="clean")
    a, b = first.recall(cue), second.recall(cue)
    assert (b.region, b.cue) == (a.region, a.cue)
    assert b.decision_id != a.decision_id
    assert b.action_scores == a.action_scores
    assert [(h.node, h.score, h.factors) for h in b.hits] == [
        (h.node, h.score, h.factors) for h in a.hits
    ]
    assert [[s.node_id for s in h.successors] for h in b.hits] == [
        [s.node_id for s in h.successors] for h in a.hits
    ]
    assert first.render(a) == second.render(b)
    run, _ = play(second, 1.0)
    assert run.episode_id == 6
    assert second.reset_decay()


@pytest.mark.requirement("X9")
def test_an_index_that_lacks_what_the_record_has_is_filled_from_it() -> None:
    am = memory()
    play(am, 1.0)
    play(am, 0.0)
    again = ActiveMemory(TemporalIndex(DIM), record=am.record)
    nodes = range(len(am.index))
    assert [again.index.step(n) for n in nodes] == [am.index.step(n) for n in nodes]
    assert [again.index.recallable(n) for n in nodes] == [am.index.recallable(n) for n in nodes]
    ours, theirs = (
        {(e.from_node, e.to_node, e.kind, e.weight) for e in loop.index.edges()}
        for loop in (am, again)
    )
    assert ours == theirs


def test_a_record_that_does_not_fit_the_index_is_refused() -> None:
    am = memory()
    other = TemporalIndex(DIM)
    other.insert(77, 5, np.ones(DIM))
    with pytest.raises(StoreError, match="others in their place"):
        ActiveMemory(other, record=am.record)


@pytest.mark.requirement("V16")
def test_closing_twice_is_an_error_and_changes_nothing() -> None:
    am = memory()
    run, _ = play(am, 1.0)
    n = len(am.index)
    with pytest.raises(EpisodeEndedError):
        am.close(run, 1.0)
    assert len(am.index) == n


def test_a_discarded_episode_teaches_nothing_and_is_over() -> None:
    am, untouched = memory(), memory()
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.act(decision, "go to sink 1")
    am.discard(run)
    assert len(am.record.episodes()) == 2
    assert len(am.index) == len(untouched.index)
    assert am.record.usage() == untouched.record.usage() == []
    for use in (lambda: am.close(run, 1.0), lambda: am.discard(run), lambda: am.step(run, "x")):
        with pytest.raises(EpisodeEndedError):
            use()
    with pytest.raises(EpisodeEndedError):
        am.act(decision, "go to sink 1")


def test_acting_after_the_end_is_an_error() -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.close(run, 0.0)
    with pytest.raises(EpisodeEndedError):
        am.act(decision, "go to sink 1")
    with pytest.raises(EpisodeEndedError):
        am.step(run, "too late")
    with pytest.raises(EpisodeEndedError):
        am.recall(Cue(step="a kitchen"), episode=run)


def test_a_decision_is_acted_on_once() -> None:
    am = memory()
    am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    am.act(decision, "go to sink 1")
    with pytest.raises(EpisodeEndedError, match="recall again"):
        am.act(decision, "go to sink 1")


def test_a_decision_outside_of_any_episode_cannot_be_acted_on() -> None:
    am = memory()
    with pytest.raises(UnknownError, match="begin an episode"):
        am.act(am.recall(Cue(step="a kitchen")), "go to sink 1")


def test_an_episode_of_another_memory_is_refused() -> None:
    am, other = memory(), memory()
    run = other.begin("clean a cup", "clean")
    for use in (lambda: am.step(run, "x"), lambda: am.close(run, 1.0)):
        with pytest.raises(UnknownError):
            use()


def test_following_a_hit_of_another_decision_is_an_error() -> None:
    am = memory()
    am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"), k=1)
    foreign = Hit(node=5, distance=0, score=0, similarity=1, entity_id=1, timestamp=0)
    with pytest.raises(InvalidInputError, match="node 5"):
        am.act(decision, "sing", foreign)


@pytest.mark.parametrize(
    ("vector", "error"),
    [
        (np.ones(3), InvalidVectorError),
        (np.ones((1, DIM)), InvalidVectorError),
        (np.full(DIM, np.nan), InvalidVectorError),
        (np.zeros(DIM), InvalidVectorError),
    ],
)
def test_a_vector_that_cannot_be_stored_is_refused_at_its_step(
    vector: np.ndarray, error: type[Exception]
) -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    decision = am.recall(Cue(step="a kitchen"))
    with pytest.raises(error):
        am.step(run, "a kitchen", "sing", vector)
    with pytest.raises(error):
        am.act(decision, "sing", vector=vector)
    with pytest.raises(error):
        am.recall(Cue(vector=vector))
    am.act(decision, "go to sink 1")
    assert am.close(run, 1.0).actions == ("go to sink 1",)


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
def test_a_reward_outside_its_range_leaves_the_episode_open(reward: float) -> None:
    am = memory()
    run = am.begin("clean a cup", "clean")
    with pytest.raises(InvalidInputError):
        am.close(run, reward)
    assert am.close(run, 1.0).reward == 1.0


@pytest.mark.parametrize(
    ("kw", "error"),
    [
        ({"k": 0}, InvalidInputError),
        ({"pool": 0}, InvalidInputError),
        ({"temporal_context": -1}, InvalidInputError),
        ({"distinct": "node"}, InvalidInputError),
        ({"weights": LearnedWeights(["nonsense"])}, UnknownError),
    ],
)
def test_a_parameter_out_of_bounds_is_a_typed_error(
    kw: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ActiveMemory(TemporalIndex(DIM), **kw)  # type: ignore[arg-type]


@pytest.mark.parametrize("kw", [{"k": 0}, {"outcome": "draw"}, {"distinct": "node"}])
def test_a_bad_recall_is_a_typed_error(kw: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        memory().recall(Cue(step="a kitchen"), **kw)  # type: ignore[arg-type]
