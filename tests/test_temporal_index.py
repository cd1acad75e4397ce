"""cvx.TemporalIndex: scoring and the region model composed onto the raw index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvx
from cvx.errors import (
    InvalidInputError,
    StaleRegionsError,
    UnknownError,
)
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import classify_action
from cvx.scoring import UsageTracker, bayesian_score
from cvx.types import Episode, Filter, Hit

DIM = 8
ACTIONS = ("go to sink 1", "take mug 1", "clean mug 1 with sink 1", "put mug 1 in shelf 1")


def filled(seed: int = 0, episodes: int = 40) -> cvx.TemporalIndex:
    rng = np.random.default_rng(seed)
    ix = cvx.TemporalIndex(DIM, seed=seed)
    t = 0
    for entity in range(episodes):
        n = int(rng.integers(2, 7))
        won = float(entity % 2)
        ix.bulk_insert(
            [entity] * n,
            list(range(t, t + n)),
            rng.normal(size=(n, DIM)).astype(np.float32),
            rewards=[won] * n,
            actions=[ACTIONS[i] for i in rng.integers(0, 4, n)],
            tags=[["task:clean" if entity % 4 < 2 else "task:heat"]] * n,
        )
        t += n
    return ix


@pytest.mark.requirement("V11")
@given(st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_bayesian_search_ranks_by_the_seed_formula(seed: int) -> None:
    ix = filled(seed)
    rng = np.random.default_rng(seed)
    query = rng.normal(size=DIM).astype(np.float32)
    usage = UsageTracker()
    for entity in range(0, 40, 3):
        usage.add(entity, followed=True, helped=bool(entity % 2))
    now, level = 500, 1
    n = len(ix)
    found = ix.bayesian_search(query, k=n, now=now, usage=usage, level=level)
    own = int(np.asarray(ix.assign_region(query, level)))
    region_of = dict(zip(*(a.tolist() for a in ix.region_assignments(level)), strict=True))
    expected = {
        hit.node: bayesian_score(
            math.exp(-hit.distance),
            now - hit.timestamp,
            ix.reward(hit.node),
            region_of[hit.node] == own,
            usage[hit.entity_id],
        )
        for hit in ix.causal_search(query, k=n)
    }
    assert len(found) == n
    for hit in found:
        assert hit.score == pytest.approx(expected[hit.node], abs=1e-6)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@pytest.mark.requirement("V11", "X14")
def test_a_hit_of_bayesian_search_carries_both_distance_and_score() -> None:
    ix = filled()
    hits = ix.bayesian_search(np.ones(DIM, np.float32), k=5, now=300)
    ids, distances = ix.search(np.ones(DIM, np.float32), k=len(ix))
    nearest = dict(zip(ids.tolist(), distances.tolist(), strict=True))
    for hit in hits:
        assert hit.distance == pytest.approx(nearest[hit.node])
        assert hit.similarity == pytest.approx(1 - hit.distance)
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score)


@pytest.mark.requirement("V11")
def test_weights_are_given_in_the_order_of_the_seed_or_by_name() -> None:
    ix = filled()
    query = np.ones(DIM, np.float32)
    by_order = ix.bayesian_search(query, weights=(0.0, 0.0, 1.0, 0.0, 0.0))
    by_name = ix.bayesian_search(query, weights={"reward": 1.0})
    assert [h.node for h in by_order] == [h.node for h in by_name]
    assert by_order[0].score == 1.0


@pytest.mark.requirement("V19")
def test_bayesian_search_obeys_filters() -> None:
    ix = filled()
    where = Filter(entities=[3, 4], since=5)
    hits = ix.bayesian_search(np.ones(DIM, np.float32), k=50, where=where)
    assert hits
    assert {h.entity_id for h in hits} <= {3, 4}
    assert all(h.timestamp >= 5 for h in hits)
    assert ix.bayesian_search(np.ones(DIM, np.float32), where=Filter(entities=[])) == []
    assert cvx.TemporalIndex(DIM).bayesian_search(np.ones(DIM, np.float32)) == []


class Moving(cvx.TemporalIndex):
    """An index of which another thread takes what a search has just found."""

    def causal_search(self, *args: Any, **options: Any) -> Sequence[Hit]:
        hits = super().causal_search(*args, **options)
        self.set_vector(hits[0].node, None)
        self.delete(hits[1].node)
        return hits


def test_what_changes_while_it_is_scored_is_left_out() -> None:
    ix = Moving(2)
    ix.bulk_insert(vectors=[[1, 0], [1, 0.1], [1, 0.2]])
    assert [hit.node for hit in ix.bayesian_search([1, 0], k=3)] == [2]


def test_an_index_filters_by_a_mapping_or_any_of_several() -> None:
    ix = filled()
    query = np.ones(DIM, np.float32)
    hits = ix.bayesian_search(query, 50, where=[{"entities": 3}, Filter(entities=4, since=5)])
    assert {h.entity_id for h in hits} == {3, 4}
    mapped = ix.bayesian_search(query, 50, where={"entities": [3]})
    assert mapped == ix.bayesian_search(query, 50, where=Filter(entities=3))


@pytest.mark.requirement("V11")
@pytest.mark.parametrize(
    ("kw", "error"),
    [
        ({"weights": (1.0, 1.0)}, InvalidInputError),
        ({"weights": {"nonsense": 1.0}}, UnknownError),
        ({"pool": 0}, InvalidInputError),
        ({"level": 99}, UnknownError),
    ],
)
def test_bad_input_of_bayesian_search_is_a_typed_error(
    kw: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        filled().bayesian_search(np.ones(DIM, np.float32), **kw)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2.5, "x", b"x", {"a": None}, object(), [None]])
@pytest.mark.parametrize(
    ("method", "name"),
    [
        *(("bayesian_search", name) for name in ("k", "weights", "now", "level", "where", "pool")),
        ("transition_model", "level"),
        ("best_action", "region"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(
    method: str, name: str, value: object
) -> None:
    ix = cvx.TemporalIndex(dim=2)
    ix.bulk_insert([0, 0], [0, 1], [[1, 0], [0, 1]], rewards=[1.0, 0.5])
    given = {"query": [1, 0]} if method == "bayesian_search" else {}
    with pytest.raises(cvx.errors.InvalidInputError, match=r": \w+"):
        getattr(ix, method)(**{**given, name: value})


@pytest.mark.requirement("V2", "V11")
def test_the_transition_model_learns_from_every_timeline_of_the_index() -> None:
    ix = filled()
    model = ix.transition_model(level=1)
    twin = RegionMDP(ix, level=1)
    twin.learn_from_episodes(
        ix,
        [
            Episode(entity_id=e, task_type="clean" if e % 4 < 2 else "heat", reward=float(e % 2))
            for e in range(40)
        ],
    )
    assert len(model) == 40
    for region in ix.regions(1).tolist():
        for family in (None, "clean", "heat"):
            assert model.best_action(region, family) == twin.best_action(region, family)


@pytest.mark.requirement("V2", "V11")
def test_the_transition_model_knows_the_families_that_nodes_were_inserted_with() -> None:
    ix = cvx.TemporalIndex(dim=2)
    ix.insert(1, 0, [1, 0], action="go to sink 1", task_type="clean", reward=1.0)
    ix.bulk_insert(
        [2, 3],
        [0, 0],
        [[1, 0], [1, 0]],
        actions=["open box 1", "take mug 1"],
        task_types=["heat", None],
        rewards=[1.0, 1.0],
        tags=[["task:heat", "kitchen"], ["kitchen"]],
    )
    assert [ix.tags(n) for n in range(3)] == [{"task:clean"}, {"task:heat", "kitchen"}, {"kitchen"}]
    model = ix.transition_model()
    region = model.assign(np.array([1, 0], np.float32))
    assert [kind for kind, _ in model.best_action(region, "clean")] == ["go_to"]
    assert [kind for kind, _ in model.best_action(region, "heat")] == ["open"]


@pytest.mark.parametrize(
    ("kw", "error", "said"),
    [
        ({"task_types": ["clean"]}, InvalidInputError, "task_types has 1 rows, entity_ids 2"),
        ({"task_types": "ab"}, InvalidInputError, "task_types is 'ab'"),
        ({"task_types": 5}, InvalidInputError, "task_types is 5"),
        ({"task_types": [None, 5]}, InvalidInputError, r"task_types\[1\] is 5"),
        (
            {"task_types": [None, "a"], "tags": [[], ["task:b"]]},
            InvalidInputError,
            r"task_types\[1\] is .a., but the tags \[.task:b.\] name another",
        ),
        ({"task_types": ["a", "a"], "tags": [[]]}, InvalidInputError, "tags has 1 rows"),
        ({"task_types": ["a", "a"], "tags": [[], "x"]}, InvalidInputError, r"tags\[1\] is 'x'"),
    ],
)
def test_a_family_that_makes_no_sense_is_refused_and_nothing_inserted(
    kw: dict[str, object], error: type[Exception], said: str
) -> None:
    ix = cvx.TemporalIndex(dim=2)
    with pytest.raises(error, match=said):
        ix.bulk_insert([0, 1], [0, 1], [[1, 0], [0, 1]], **kw)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="task_type is 5"):
        ix.insert(0, 0, [1, 0], task_type=5)  # type: ignore[arg-type]
    assert len(ix) == 0


@pytest.mark.requirement("V2", "V11")
def test_an_unknown_level_has_no_transition_model() -> None:
    with pytest.raises(UnknownError):
        filled().transition_model(level=99)


@pytest.mark.requirement("V5", "X20")
def test_the_index_answers_which_action_is_best_in_a_region() -> None:
    ix = filled()
    model = ix.transition_model()
    region = model.assign(np.ones(DIM, np.float32))
    assert ix.best_action(region) == model.best_action(region)
    assert ix.best_action(region, "clean") == model.best_action(region, "clean")


@pytest.mark.requirement("V2")
def test_the_answer_changes_with_rewards_and_nodes() -> None:
    ix = filled()
    region = ix.transition_model().assign(np.ones(DIM, np.float32))
    seen = [ix.best_action(region)]
    for node in range(len(ix)):
        ix.set_reward(node, 1.0)
    seen.append(ix.best_action(region))
    assert seen[1] != seen[0]
    assert all(p > 0.9 for _, p in seen[1])
    ix.bulk_insert([99] * 3, [1, 2, 3], np.ones((3, DIM)), rewards=[0.0] * 3, actions=["sing"] * 3)
    seen.append(ix.best_action(region))
    assert seen[2] != seen[1]


@pytest.mark.requirement("V2", "V11")
def test_actions_of_another_domain_are_kinds_of_their_own() -> None:
    ix = cvx.TemporalIndex(2)
    rng = np.random.default_rng(0)
    for entity, (action, reward) in enumerate([("raise 10", 1.0), ("fold", 0.0)] * 50):
        ix.insert(entity, 0, rng.normal(size=2), action=action, reward=reward)

    def kinds(**options: Any) -> set[str]:
        model = ix.transition_model(1, **options)
        return {kind for region in ix.regions(1) for kind, _ in model.best_action(region)}

    assert kinds() == {"raise 10", "fold"}
    assert kinds(classify=lambda action: action.split()[0]) == {"raise", "fold"}
    # One household command tells the domain.
    ix.insert(200, 0, [1, 0], action="open box", reward=1.0)
    assert kinds() == {"open", "other"}


def test_what_was_deleted_has_no_say_in_the_best_action() -> None:
    ix = filled()
    model = ix.transition_model()
    region, epoch = model.assign(np.ones(DIM, np.float32)), ix.region_epoch
    before = ix.best_action(region)
    assert model.best_action(region) == before
    strict = RegionMDP(ix, on_stale="error")
    strict.learn_from_episodes(ix, [Episode(entity_id=3)])
    strict.best_action(region)
    hubs = set(ix.regions(model.level).tolist())
    ix.delete([n for n in range(len(ix)) if ix.reward(n) == 1.0 and n not in hubs])
    # The regions are those of before: nothing but the deletion tells that the answer is another.
    assert ix.region_epoch == epoch
    after = ix.transition_model().best_action(region)
    assert after != before
    assert ix.best_action(region) == after
    assert model.best_action(region) == after
    with pytest.raises(StaleRegionsError, match=r"deleted since: call relearn"):
        strict.best_action(region)


@pytest.mark.requirement("V11")
def test_a_change_while_the_model_is_learned_is_seen_by_the_next_question() -> None:
    class Busy(cvx.TemporalIndex):
        """Another thread gives rewards just when the model was learned."""

        waiting: tuple[int, ...] = ()

        def transition_model(self, level: int | None = None, **options: Any) -> RegionMDP:
            model = super().transition_model(level, **options)
            nodes, self.waiting = self.waiting, ()
            for node in nodes:
                self.set_reward(node, 1.0)
            return model

    ix, rows = Busy(DIM), np.random.default_rng(4).normal(size=(60, DIM))
    actions = [ACTIONS[n % 2] for n in range(60)]
    ix.bulk_insert(range(60), range(60), rows, rewards=[n % 2 for n in range(60)], actions=actions)
    region = ix.transition_model().assign(np.ones(DIM, np.float32))
    ix.waiting = tuple(range(60))
    ix.best_action(region)
    assert ix.best_action(region) == ix.transition_model().best_action(region)


@pytest.mark.requirement("V2")
def test_a_node_that_is_no_region_is_refused() -> None:
    ix = filled()
    model = ix.transition_model()
    regions = set(ix.regions(model.level).tolist())
    other = next(n for n in range(len(ix)) if n not in regions)
    with pytest.raises(UnknownError, match=f"node {other}"):
        ix.best_action(other)


@pytest.mark.requirement("V2")
def test_what_the_model_stands_on_speaks_of_node_ids() -> None:
    ix = filled()
    steps = ix.trajectory(5)
    nodes, regions = ix.region_assignments(1)
    assert [ix.step(s.node_id) for s in steps] == steps
    assert set(regions.tolist()) <= set(ix.regions(1).tolist())
    vectors = np.stack([np.asarray(ix.vector(n)) for n in nodes.tolist()])
    np.testing.assert_array_equal(ix.assign_region(vectors, 1), regions)
    ix.set_reward(steps[0].node_id, 0.5)
    assert ix.reward(steps[0].node_id) == 0.5
    assert ix.trajectory(5)[0].reward == 0.5


@pytest.mark.requirement("V13")
def test_the_composition_example_runs_as_written() -> None:
    index = filled()
    query_vec = np.ones(DIM, np.float32)
    now, task_type = 300, "clean"
    usage_tracker = UsageTracker()
    region_of = dict(zip(*(a.tolist() for a in index.region_assignments(1)), strict=True))
    episodes = [Episode(entity_id=e, task_type="clean" if e % 4 < 2 else "heat") for e in range(40)]

    # 1. Vector retrieval (existing)
    candidates = index.causal_search(query_vec, k=10, temporal_context=5)

    # 2. MDP scoring (Part A)
    mdp = RegionMDP(index, level=1)
    mdp.learn_from_episodes(index, episodes)
    current_region = mdp.assign(query_vec)
    action_scores = mdp.best_action(current_region)

    # 3. Bayesian re-ranking (Part C)
    scored = []
    for c in candidates:
        s = bayesian_score(
            similarity=c["score"],
            recency=now - c["timestamp"],
            reward=index.reward(c["node_id"]),
            region_match=(region_of[c["node_id"]] == current_region),
            usage_success=usage_tracker[c["entity_id"]],
        )
        scored.append((c, s))

    # 4. Present top results with MDP-informed strategy
    scored.sort(key=lambda x: -x[1])
    strategy = mdp.strategy_for(current_region, task_type)

    assert len(scored) == 10
    assert all(c["score"] == pytest.approx(1 - c["distance"]) for c in candidates)
    assert [s for _, s in scored] == sorted((s for _, s in scored), reverse=True)
    assert action_scores == sorted(action_scores, key=lambda pair: -pair[1])
    assert all(step.action in ACTIONS for c in candidates for step in c.successors)
    assert all(index.step(step.node_id) == step for c in candidates for step in c.successors)
    assert set(strategy) <= {"go_to", "take", "clean", "put"}
    assert strategy


@pytest.mark.requirement("V13")
def test_the_loop_of_part_a_runs_as_written() -> None:
    index, level = filled(), 1
    nodes, regions = index.region_assignments(level)
    region_of = dict(zip(nodes.tolist(), regions.tolist(), strict=True))
    transitions = []
    for entity in range(40):
        traj = index.trajectory(entity)
        for i in range(len(traj) - 1):
            s = region_of[traj[i].node_id]
            s_next = region_of[traj[i + 1].node_id]
            action_type = classify_action(traj[i].action or "")
            transitions.append((s, action_type, s_next, index.reward(traj[i].node_id)))
    model = RegionMDP(index, level=level)
    model.learn_from_episodes(index, [Episode(entity_id=e) for e in range(40)])
    assert transitions
    assert all(model.transition_probability(s, a, s_next) > 0 for s, a, s_next, _ in transitions)
