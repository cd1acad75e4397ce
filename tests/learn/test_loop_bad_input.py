"""Games that teach badly: nothing collapses, and what is learned stays within its bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import EpisodeEndedError, InvalidInputError
from cvx.learn.decay import BlindDecay, ContextAwareDecay, DecayPolicy
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import UNKNOWN
from cvx.memory import Memory
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Episode, Filter, Hit
from tests.learn.test_loop import CLEAN, DIM, memory, play
from tests.store.processes import embedder

GAMES = 20
DEMONSTRATIONS = [0, 1]


def assert_sound(loop: ActiveMemory) -> list[Hit]:
    """Whatever was learned: numbers are finite and bounded, and the demonstrations still advise."""
    weights, scorer = loop.weights, loop.scorer
    assert weights is not None
    assert scorer is not None
    assert all(abs(c) <= weights.bound for c in weights.coefficients)
    assert all(math.isfinite(w) and abs(w) <= 10.0 for w in scorer.weights.values())
    for node in range(len(loop.index)):
        assert 0.0 <= (loop.index.reward(node) or 0.0) <= 1.0
    loop.begin("clean a pan", "clean")
    decision = loop.recall(Cue(step="a kitchen"), Filter(entities=DEMONSTRATIONS), distinct=None)
    assert {hit.node for hit in decision.hits} == set(range(6)), "a demonstration is lost"
    assert all(math.isfinite(hit.score) for hit in decision.hits)
    assert all(0.0 <= chance <= 1.0 for _, chance in decision.action_scores)
    return list(decision.hits)


@pytest.mark.requirement("V16")
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.booleans()), max_size=15))
@settings(max_examples=15, deadline=None)
def test_whatever_the_outcomes_nothing_collapses(games: list[tuple[float, bool]]) -> None:
    loop = memory()
    for reward, follow in games:
        play(loop, reward, follow=follow)
    assert_sound(loop)


@pytest.mark.requirement("V16")
def test_all_wins_leave_an_order_and_full_rewards() -> None:
    loop = memory()
    for _ in range(GAMES):
        play(loop, 1.0)
    hits = assert_sound(loop)
    assert len({hit.score for hit in hits}) > 1
    assert {hit.reward for hit in hits} == {1.0}


@pytest.mark.requirement("V16", "V17")
@pytest.mark.parametrize("policy", [ContextAwareDecay(), BlindDecay()])
def test_all_losses_lower_rewards_without_end_and_delete_nothing(policy: DecayPolicy) -> None:
    loop = memory(decay=policy)
    for _ in range(GAMES):
        play(loop, 0.0)
    assert_sound(loop)
    assert 0.0 < (loop.index.reward(0) or 0.0) < 0.5
    restored = loop.reset_decay()
    assert restored[0] == loop.index.reward(0) == 1.0


@pytest.mark.requirement("V16", "V15")
def test_contradictory_outcomes_end_in_the_middle() -> None:
    loop = memory(decay=None)
    for game in range(GAMES):
        run = loop.begin("clean a cup", "clean")
        decision = loop.recall(Cue(step="a kitchen"), Filter(entities=[0]), distinct=None)
        loop.act(decision, "go to sink 1", [hit for hit in decision.hits if hit.node == 0])
        loop.close(run, float(game % 2))
    assert_sound(loop)
    assert loop.mdp is not None
    assert loop.usage is not None
    region = loop.mdp.region_of(0)
    assert region is not None
    estimate = loop.mdp.estimate(region, "go_to", "clean")
    low, high = estimate.posterior.interval()
    assert low < 0.5 < high
    assert high - low < 0.5
    assert loop.usage.success(("node", 0)) == pytest.approx(0.5, abs=0.02)


@pytest.mark.requirement("V16")
def test_one_kind_of_action_is_ranked_alone() -> None:
    loop = ActiveMemory(TemporalIndex(DIM))
    steps = [("a kitchen", "open box 1"), ("a box", "open box 2")]
    loop.add_demonstration("open all", steps, "open")
    for reward in (1.0, 0.0, 1.0):
        run = loop.begin("open all", "open")
        loop.act(loop.recall(Cue(step="a kitchen")), "open box 1")
        loop.close(run, reward)
    loop.begin("open all", "open")
    decision = loop.recall(Cue(step="a kitchen"))
    assert [kind for kind, _ in decision.action_scores] == ["open"]
    assert 0.5 < decision.action_scores[0][1] < 1.0
    assert loop.weights is not None
    assert all(abs(c) <= loop.weights.bound for c in loop.weights.coefficients)


@pytest.mark.requirement("X20")
def test_a_family_of_goals_never_seen_is_advised_by_all_and_says_so() -> None:
    loop = memory()
    run = loop.begin("polish the brass", "polish")
    decision = loop.recall(Cue(step="a kitchen"))
    assert decision.hits
    assert loop.mdp is not None
    assert decision.region is not None
    ranking = loop.mdp.best_action(decision.region, "polish")
    assert list(decision.action_scores) == ranking
    assert ranking.basis.task_type is None
    loop.act(decision, decision.hits[0].action, decision.hits[0])
    loop.close(run, 0.0)
    assert loop.index.reward(decision.hits[0].node) == 1.0, "advice for another family decayed"
    assert loop.mdp.best_action(decision.region, "polish").basis.task_type == "polish"


@pytest.mark.requirement("V16")
def test_a_region_never_seen_is_answered_from_wider_ones_and_says_so() -> None:
    loop = memory()
    rng = np.random.default_rng(0)
    strangers = rng.normal(size=(200, DIM)).astype(np.float32)
    loop.index.bulk_insert([77] * 200, list(range(200)), strangers)
    assert loop.mdp is not None
    loop.mdp.relearn()
    loop.begin("clean a pan", "clean")
    bases = set()
    for vector in strangers[:20]:
        decision = loop.recall(Cue(vector=vector))
        assert decision.region is not None
        assert decision.action_scores
        estimate = loop.mdp.estimate(decision.region, "go_to", "clean")
        bases.add((estimate.basis.place, estimate.trials > 0))
    assert any(place in ("around", "anywhere") and not own for place, own in bases)


@pytest.mark.requirement("V16")
def test_an_agent_that_never_follows_advice_blames_and_praises_nothing() -> None:
    loop = memory()
    before = dict(loop.scorer.weights) if loop.scorer else {}
    for game in range(GAMES):
        play(loop, float(game % 2), follow=False)
    assert_sound(loop)
    assert loop.usage is not None
    assert loop.scorer is not None
    assert loop.scorer.weights == before
    assert [loop.index.reward(node) for node in range(6)] == [1.0] * 6
    counts = loop.usage.count(("node", 0))
    assert (counts.followed, counts.helped) == (0, 0)
    assert 0 < counts.retrieved <= GAMES
    kinds = {edge.kind for edge in loop.index.edges()}
    assert kinds == {"irrelevant"}


@pytest.mark.requirement("V16")
def test_an_episode_without_outcome_is_not_closed_and_teaches_nothing() -> None:
    loop, untouched = memory(), memory()
    run = loop.begin("clean a cup", "clean")
    loop.act(loop.recall(Cue(step="a kitchen")), "go to sink 1")
    with pytest.raises(InvalidInputError, match="None"):
        loop.close(run, None)  # type: ignore[arg-type]
    loop.discard(run)
    assert len(loop.index) == len(untouched.index)
    assert loop.record.usage() == []
    assert loop.record.decisions() == []
    assert loop.mdp is not None
    assert len(loop.mdp) == 2


@pytest.mark.requirement("V16", "V3")
def test_events_without_outcome_teach_where_things_lead_and_have_no_reward_to_lose() -> None:
    loop = memory(decay=BlindDecay())
    vector = loop.embedder.embed(["a kitchen"])[0]
    (node,) = loop.index.bulk_insert([9], [9], vector[None], actions=["take mug 1"]).tolist()
    assert loop.mdp is not None
    loop.mdp.update(Episode(entity_id=9, task_type="clean"))
    region = loop.mdp.region_of(node)
    assert region is not None
    assert loop.mdp.transition_probability(region, "take", UNKNOWN) == 1.0
    assert loop.mdp.estimate(region, "take").trials == 0
    run = loop.begin("clean a cup", "clean")
    decision = loop.recall(Cue(step="a kitchen"), distinct=None)
    (unknown,) = [hit for hit in decision.hits if hit.node == node]
    loop.act(decision, "take mug 1", unknown)
    loop.close(run, 0.0)
    assert loop.index.reward(node) is None


class CrashError(Exception):
    """What a broken environment raises."""


def crash() -> NoReturn:
    raise CrashError


@pytest.mark.requirement("V16")
def test_an_environment_that_crashes_leaves_a_loop_that_goes_on() -> None:
    loop, untouched = memory(), memory()
    run = loop.begin("clean a cup", "clean")
    decision = loop.recall(Cue(step="a kitchen"))
    loop.act(decision, "go to sink 1")
    with pytest.raises(CrashError):
        crash()
    # Somebody may give the game up, or just begin the next one.
    following, _ = play(loop, 1.0)
    play(untouched, 1.0)
    assert following.closed
    assert len(loop.index) == len(untouched.index)
    assert len(loop.record.decisions()) == len(untouched.record.decisions())
    assert len(loop.record.episodes()) == len(untouched.record.episodes()) == 3
    loop.discard(run)
    with pytest.raises(EpisodeEndedError):
        loop.close(run, 1.0)
    assert_sound(loop)


@pytest.mark.requirement("V16", "W26")
def test_a_process_that_dies_in_the_middle_of_a_game_leaves_nothing_of_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store", embedder=embedder()) as first:
        loop = first.learning.loop()
        loop.add_demonstration("clean a mug", CLEAN, "clean")
        loop.begin("clean a cup", "clean")
        loop.act(loop.recall(Cue(step="a kitchen")), "go to sink 1")
    with Memory.open(tmp_path / "store", embedder=embedder()) as second:
        again = second.learning.loop()
        assert len(again.episodes) == 1
        assert second.record.decisions() == []
        run, _ = play(again, 1.0)
        assert run.closed
        assert len(second.record.episodes()) == 2


@pytest.mark.parametrize("part", ["scorer", "decay", "mdp", "usage", "weights", "order"])
def test_a_part_of_another_kind_is_refused_before_any_game(part: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{part} is 'blind': give a "):
        ActiveMemory(TemporalIndex(DIM), **{part: "blind"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "told", [{"anything": 1}, {"names": 7}, {"names": ["likeness"], "mean": "x"}]
)
def test_weights_of_a_record_that_are_none_are_named(told: dict[str, object]) -> None:
    kept = Memory(embedder=embedder())
    with kept.episode("find the milk") as episode:
        episode.act("open the fridge", observation="a kitchen")
        episode.end(outcome=True)
    with kept.record.transaction() as write:
        write.set_state("weights", told)
    with pytest.raises(InvalidInputError, match=r"to_dict\(\) returned"):
        kept.learning.loop()


def test_a_region_model_of_another_index_is_refused() -> None:
    with Memory(embedder="lexical") as mine, Memory(embedder="lexical") as other:
        with mine.episode("find the key", task="find") as episode:
            episode.advise("a locked door", ["look", "wait"])
            episode.act("look")
            episode.end(1.0)
        for _ in range(2):
            loop = mine.learning.loop(mdp=RegionMDP(other.index))
            with pytest.raises(InvalidInputError, match="another index"):
                _ = loop.mdp
