"""Typed edges of the loop: which are made, which are not, and what walking them brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cvx.errors import InvalidInputError, UnknownError
from cvx.learn.edges import ALL_EDGES, HELPFUL, OUTCOME_EDGES, edge_bonus, granger_edges
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.scoring import Scorer
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Edge
from tests.learn.test_loop import memory, play

DIM = 4
BONUS = "edge_bonus"


def corner(at: int, tilt: float = 0.0) -> np.ndarray:
    vector = np.full(DIM, tilt, dtype=np.float32)
    vector[at] = 1.0
    return vector


def loop_of(**options: Any) -> ActiveMemory:
    index = TemporalIndex(DIM)
    # Regions of level 0 are nodes: each corner is that of its first one, until there are 80.
    index.bulk_insert([99] * 40, range(40), np.tile(np.eye(DIM, dtype=np.float32), (10, 1)))
    index.refresh_regions()
    mdp = RegionMDP(index, 0, on_stale="error")
    return ActiveMemory(index, mdp=mdp, decay=None, weights=None, **options)


def walk(loop: ActiveMemory, *steps: tuple[int, str], tilt: float = 0.0) -> list[int]:
    run = loop.begin("a goal", "clean")
    for at, action in steps:
        loop.step(run, "", action, corner(at, tilt))
    return [int(step.node or 0) for step in loop.close(run, 1.0).steps]


def of_kind(loop: ActiveMemory, kind: str) -> set[tuple[int, int]]:
    return {(edge.from_node, edge.to_node) for edge in loop.index.edges() if edge.kind == kind}


def written(loop: ActiveMemory, node: int) -> list[Edge]:
    return loop.record.links_of([node], incoming=True)


@pytest.mark.requirement("B4")
def test_the_same_action_in_the_same_region_links_two_episodes() -> None:
    loop = loop_of(edges=ALL_EDGES)
    (first,) = walk(loop, (0, "take mug 1"))
    (second,) = walk(loop, (0, "take cup 2"), tilt=0.1)
    (third,) = walk(loop, (0, "take jar 3"))
    assert of_kind(loop, "same_action_type") == {(first, second), (second, third)}
    (edge,) = written(loop, second)
    cosine = 1.0 / np.linalg.norm(corner(0, 0.1))
    assert edge.weight == pytest.approx(cosine)
    assert edge.why == "both take"


@pytest.mark.requirement("B4")
def test_another_action_another_region_or_the_same_episode_links_nothing() -> None:
    loop = loop_of(edges=ALL_EDGES)
    walk(loop, (0, "take mug 1"), (0, "take mug 2"))
    walk(loop, (0, "open box 1"), (1, "take mug 1"))
    assert of_kind(loop, "same_action_type") == set()


def test_without_a_region_model_nothing_tells_which_steps_are_alike() -> None:
    loop = ActiveMemory(TemporalIndex(DIM), mdp=None, edges=ALL_EDGES)
    walk(loop, (0, "take mug 1"))
    walk(loop, (0, "take mug 1"))
    assert loop.index.edges() == []


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("kind", sorted(OUTCOME_EDGES))
def test_only_the_kinds_asked_for_are_made(kind: str) -> None:
    loop = memory(edges=[kind])
    play(loop, 1.0)
    play(loop, 0.0)
    play(loop, 0.0, follow=False)
    assert {edge.kind for edge in loop.index.edges()} == {kind}


def test_a_kind_that_no_close_makes_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'region_transition' are not made by close"):
        memory(edges=["region_transition"])


@pytest.mark.requirement("B4")
def test_regions_are_linked_by_the_share_of_moves_between_them() -> None:
    loop = loop_of()
    for there in (1, 1, 1, 2):
        walk(loop, (0, "go to shelf 1"), (there, "take mug 1"))
    made = loop.link_regions(min_moves=2)
    assert [(e.from_node, e.to_node, e.weight, e.evidence) for e in made] == [
        (0, 1, 0.75, "3 of 4 moves")
    ]
    assert of_kind(loop, "region_transition") == {(0, 1)}
    assert [edge.kind for edge in written(loop, 1)] == ["region_transition"]


@pytest.mark.requirement("B4")
def test_moves_too_few_and_stays_in_one_region_link_nothing() -> None:
    loop = loop_of()
    walk(loop, (0, "go to shelf 1"), (1, "take mug 1"))
    for _ in range(5):
        walk(loop, (2, "look"), (2, "look"))
    assert loop.link_regions(min_moves=2) == []
    assert loop.index.edges() == []


def test_links_of_regions_follow_what_was_learned_since() -> None:
    loop = loop_of()
    walk(loop, (0, "go to shelf 1"), (1, "take mug 1"))
    loop.link_regions(min_moves=1)
    for _ in range(3):
        walk(loop, (0, "go to shelf 2"), (2, "take mug 1"))
    (edge,) = loop.link_regions(min_moves=2)
    assert (edge.from_node, edge.to_node, edge.weight) == (0, 2, 0.75)
    assert of_kind(loop, "region_transition") == {(0, 2)}
    assert written(loop, 1) == []
    with pytest.raises(InvalidInputError, match="min_moves is 0"):
        loop.link_regions(min_moves=0)


def two_agents(*, follows: bool) -> TemporalIndex:
    """Entity 2 acts one stretch of ten ticks after entity 1 did, or whenever it likes."""
    rng = np.random.default_rng(4)
    index = TemporalIndex(DIM)
    busy = rng.poisson(2.0, 120)
    later = (np.roll(busy, 1) if follows else rng.poisson(2.0, 120)) + rng.poisson(0.5, 120)
    for entity, counts in ((1, busy), (2, later)):
        inside = [10 * at + n for at, most in enumerate(counts) for n in range(min(most, 9))]
        times = [0, *inside, 1199]
        rows = rng.normal(size=(len(times), DIM)).astype(np.float32)
        index.bulk_insert([entity] * len(times), times, rows)
    return index


@pytest.mark.requirement("B4", "V20")
def test_an_agent_that_follows_another_is_linked_in_that_direction() -> None:
    pytest.importorskip("statsmodels")
    loop = ActiveMemory(two_agents(follows=True))
    (edge,) = loop.link_granger([1, 2], width=10)
    first = {entity: loop.index.trajectory(entity)[0].node_id for entity in (1, 2)}
    assert (edge.from_node, edge.to_node) == (first[1], first[2])
    assert edge.weight > 0.99
    assert edge.evidence.endswith(" x 10, 2 pairs tested")
    assert of_kind(loop, "granger_causal") == {(first[1], first[2])}
    assert [e.kind for e in written(loop, first[2])] == ["granger_causal"]


@pytest.mark.requirement("B4", "V20")
def test_agents_that_act_on_their_own_are_not_linked() -> None:
    pytest.importorskip("statsmodels")
    loop = ActiveMemory(two_agents(follows=False))
    assert loop.link_granger([1, 2], width=10) == []
    assert loop.index.edges() == []


@pytest.mark.requirement("V20")
def test_a_pair_that_passes_alone_by_chance_does_not_pass_among_all_pairs() -> None:
    pytest.importorskip("statsmodels")
    rng = np.random.default_rng(6)
    index, agents = TemporalIndex(DIM), range(6)
    for agent in agents:
        counts = rng.poisson(2.0, 120)
        inside = [10 * at + n for at, most in enumerate(counts) for n in range(min(most, 9))]
        times = [0, *inside, 1199]
        index.bulk_insert([agent] * len(times), times, np.ones((len(times), DIM)))
    assert granger_edges(index, agents, 10, max_lag=2) == []
    (likeliest,) = granger_edges(index, agents, 10, max_lag=2, alpha=1.0)
    ends = likeliest.from_node, likeliest.to_node
    pair = [index.step(node).entity_id for node in ends]
    (alone,) = granger_edges(index, pair, 10, max_lag=2)
    assert (alone.from_node, alone.to_node) == ends
    # Bonferroni: its p value counts once for each of the 30 pairs, or for each of 2.
    assert (1.0 - likeliest.weight) / 30 == pytest.approx((1.0 - alone.weight) / 2)
    assert 1.0 - alone.weight < 0.05 < 1.0 - likeliest.weight < 1.0


def test_series_that_are_too_short_or_never_change_are_not_linked() -> None:
    index = TemporalIndex(DIM)
    index.bulk_insert([1] * 40 + [2] * 40, [*range(40)] * 2, np.ones((80, DIM)))
    assert granger_edges(index, [1, 2], width=1) == []
    assert granger_edges(index, [1, 2], width=20) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"entities": [1]},
        {"entities": [1, 1]},
        {"width": 0},
        {"max_lag": 0},
        {"alpha": 0.0},
        {"alpha": float("nan")},
    ],
)
def test_a_test_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    index = two_agents(follows=False)
    with pytest.raises(InvalidInputError):
        granger_edges(index, **{"entities": [1, 2], "width": 10, **bad})


def test_an_unknown_agent_is_an_error() -> None:
    with pytest.raises(UnknownError):
        granger_edges(two_agents(follows=False), [1, 77], width=10)


@pytest.mark.requirement("V8", "B4")
@pytest.mark.parametrize("scorer", ["default", None])
def test_what_advice_led_to_ranks_higher_when_recall_walks_edges(scorer: Any) -> None:
    orders = []
    for boost in (None, HELPFUL):
        loop = ActiveMemory(
            TemporalIndex(DIM), edge_boost=boost, scorer=scorer, mdp=None, weights=None
        )
        near, linked, plain = (
            int(loop.add_demonstration("g", [("", "look", vector)], "clean").steps[0].node or 0)
            for vector in (corner(0), corner(2, 0.2), corner(1, 0.25))
        )
        loop.index.add_edge(near, linked, "caused_success", 1.0)
        loop.begin("g", "clean")
        hits = {
            hit.node: hit for hit in loop.recall(Cue(vector=corner(0, 0.1)), distinct=None).hits
        }
        orders.append(list(hits))
    assert orders == [[near, plain, linked], [near, linked, plain]]
    bonus = {node: f.value for node, hit in hits.items() for f in hit.factors if f.name == BONUS}
    assert bonus == pytest.approx({near: 0.0, linked: 0.3 * hits[near].similarity, plain: 0.0})


@pytest.mark.requirement("B4")
def test_which_memory_drove_this_decision_and_did_it_pay_is_one_call() -> None:
    loop = memory()
    run = loop.begin("clean a cup", "clean")
    decision = loop.recall(Cue(step="a kitchen"))
    advice = decision.hits[0]
    loop.act(decision, advice.action, advice)
    ignored = loop.recall(Cue(step="a sink"))
    loop.act(ignored, "sing", ())
    during = loop.attribution(decision)
    assert (during.followed, during.outcome, during.helped) == ((advice.node,), None, None)
    loop.close(run, 1.0)
    after = loop.attribution(decision.decision_id)
    assert after.retrieved == tuple(hit.node for hit in decision.hits)
    assert (after.followed, after.action) == ((advice.node,), advice.action)
    assert (after.outcome, after.helped) == (1.0, True)
    nobodys = loop.attribution(ignored)
    assert (nobodys.followed, nobodys.outcome, nobodys.helped) == ((), 1.0, None)
    lost = loop.begin("clean a cup", "clean")
    again = loop.recall(Cue(step="a kitchen"))
    loop.act(again, advice.action, advice)
    loop.close(lost, 0.0)
    assert loop.attribution(again).helped is False


@pytest.mark.requirement("B4")
def test_a_decision_that_nobody_acted_on_drove_nothing() -> None:
    loop = memory()
    loop.begin("clean a cup", "clean")
    decision = loop.recall(Cue(step="a kitchen"))
    with pytest.raises(UnknownError, match=f"no decision {decision.decision_id}"):
        loop.attribution(decision)


def test_the_bonus_of_edges_is_a_feature_that_any_scorer_may_have() -> None:
    scorer = Scorer({"edge_bonus": 2.0}, features={"edge_bonus": edge_bonus})
    loop = memory(scorer=scorer, weights=None, edge_boost={"caused": 0.5})
    far = loop.add_demonstration("elsewhere", [("zzz qqq", "open gate 1")], "clean").steps[0].node
    loop.index.add_edge(0, far or 0, "caused", 1.0)
    loop.begin("clean a cup", "clean")
    best = loop.recall(Cue(step="a kitchen")).hits[0]
    assert best.node == far
    assert best.score > 0.0
