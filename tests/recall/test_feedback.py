"""Retrieved, shown, followed and helped are different things, and each is kept."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from cvx.cue import cue_hash
from cvx.embed import LexicalEmbedder
from cvx.errors import EpisodeEndedError, InvalidInputError, ReadOnlyError, UnknownError
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from cvx.recall.context import Refresh, Serving
from cvx.scoring import Scorer, logged_choices
from cvx.scoring.off_policy import PlackettLuce, off_policy_value, plackett_luce
from cvx.types import Cue, Decision, Filter, Hit
from tests.recall.rooms import BY_SIMILARITY, Axes, apart, axis, room


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = room()
    for n in range(4):
        made.add(f"x number {n}", vector=apart(0.9 - n / 10, n), timestamp=n)
    yield made
    made.close()


def counts(memory: Memory) -> dict[str, tuple[int, int, int]]:
    return {context: tuple(rest) for context, *rest in memory.record.usage()}  # type: ignore[misc]


@pytest.mark.requirement("B4", "R14")
def test_which_memory_drove_this_decision_and_did_it_pay_is_one_call(memory: Memory) -> None:
    block = memory.context(Cue(goal="x", vector=axis("x"), place=3), k=3, pipeline=BY_SIMILARITY)
    assert block.decision is not None
    before = memory.learning.attribution(block)
    assert (before.retrieved, before.shown) == ((1, 2, 3), (1, 2, 3))
    assert (before.followed, before.helped, before.outcome) == (None, None, None)
    memory.feedback(block, followed=[block.hits[1]], action="go north", outcome=0.9)
    after = memory.learning.attribution(block.decision)
    assert after.followed == (2,)
    assert after.helped is True
    assert (after.action, after.outcome, after.turn) == ("go north", 0.9, 3)
    assert (after.cue.goal, after.cue_hash) == ("x", before.cue_hash)


@pytest.mark.requirement("B4")
def test_what_was_shown_and_not_followed_is_not_counted_as_followed(memory: Memory) -> None:
    good, bad = (memory.context("x", k=2, pipeline=BY_SIMILARITY) for _ in range(2))
    memory.feedback(good, followed=[1], helped=True)
    memory.feedback(bad, followed=[1, 2], outcome=0.1)
    assert counts(memory) == {'["event",1]': (2, 2, 1), '["event",2]': (2, 1, 0)}


@pytest.mark.requirement("B4")
def test_what_was_followed_is_no_failure_while_the_outcome_is_unknown(memory: Memory) -> None:
    block = memory.context("x", k=2, pipeline=BY_SIMILARITY)
    memory.feedback(block, followed=[block.hits[0]], action="go north")
    early = memory.learning.attribution(block)
    assert (early.followed, early.helped, early.outcome) == ((1,), None, None)
    assert counts(memory)['["event",1]'] == (1, 0, 0)
    memory.feedback(block, outcome=0.9)
    late = memory.learning.attribution(block)
    assert (late.followed, late.helped, late.outcome) == ((1,), True, 0.9)
    assert late.action == "go north"
    assert counts(memory)['["event",1]'] == (1, 1, 1)


@pytest.mark.requirement("B4")
def test_the_last_word_on_a_decision_counts_and_keeps_what_it_leaves_open(memory: Memory) -> None:
    block = memory.context("x", k=2, pipeline=BY_SIMILARITY)
    first, second = block.hits
    memory.feedback(block, helped=[first], outcome=0.9, action="go north")
    memory.feedback(block, helped=[first])
    assert counts(memory)['["event",1]'] == (1, 1, 1)
    memory.feedback(block, outcome=0.1)
    told = memory.learning.attribution(block)
    assert (told.followed, told.helped, told.outcome) == ((first.id,), False, 0.1)
    assert told.action == "go north"
    assert counts(memory)['["event",1]'] == (1, 1, 0)
    assert memory.admin.stats()["sources"][""][""]["failed"] == 1
    memory.feedback(block, helped=[second])
    told = memory.learning.attribution(block)
    assert (told.followed, told.helped, told.outcome) == ((second.id,), True, 0.1)
    assert counts(memory)['["event",1]'] == (1, 0, 0)
    assert counts(memory)['["event",2]'] == (1, 1, 1)
    told_of = memory.admin.stats()["sources"][""][""]
    assert (told_of["helped"], told_of["failed"]) == (1, 0)
    memory.feedback(block)
    assert memory.learning.attribution(block) == told


@pytest.mark.requirement("R14")
def test_a_memory_knows_the_decisions_that_it_was_shown_in(memory: Memory) -> None:
    first = memory.context("x", k=1, pipeline=BY_SIMILARITY)
    second = memory.context("x", k=2, pipeline=BY_SIMILARITY)
    memory.feedback(first, followed=[1], helped=False)
    numbers = [block.decision for block in (first, second) if block.decision is not None]
    assert [found.decision_id for found in memory.learning.decisions_with(1)] == numbers
    assert [found.decision_id for found in memory.learning.decisions_with(2)] == numbers[1:]
    assert memory.learning.decisions_with(4) == []


def acted(
    loop: ActiveMemory, followed: Sequence[int], outcome: float, place: int | None = None
) -> Decision:
    """One episode of a single decision among the notes, of which those at some places follow."""
    run = loop.begin("x", "clean")
    cue = Cue(vector=axis("x"), place=place)
    decision = loop.recall(cue, Filter(until=10), k=3, distinct=None)
    taken = loop.act(decision, "go north", [decision.hits[at] for at in followed])
    loop.close(run, outcome)
    return taken


@pytest.mark.requirement("B4", "R14")
def test_a_decision_of_a_loop_is_in_the_same_log(memory: Memory) -> None:
    won = acted(memory.learning.active, [1], 0.9, place=3)
    found = memory.learning.attribution(won)
    assert (found.retrieved, found.shown) == ((1, 2, 3), (1, 2, 3))
    assert (found.followed, found.helped, found.outcome) == ((2,), True, 0.9)
    assert (found.action, found.turn, found.episode_id) == ("go north", 3, won.episode_id)
    assert (found.cue.goal, found.cue_hash) == ("x", cue_hash(won.cue))
    assert memory.learning.attribution(won.decision_id) == found
    own = memory.learning.active.attribution(won)
    assert replace(found, retrieved=own.retrieved, shown=own.shown, followed=own.followed) == own
    assert own.followed == won.followed
    lost, ignored = acted(memory.learning.active, [0], 0.0), acted(memory.learning.loop(), [], 0.0)
    assert [memory.learning.attribution(one).helped for one in (lost, ignored)] == [False, None]
    assert memory.learning.attribution(ignored).followed == ()
    block = memory.context("x", k=2, where=Filter(until=10), pipeline=BY_SIMILARITY)
    assert block.decision is not None
    mixed = [won.decision_id, lost.decision_id, ignored.decision_id, block.decision]
    assert [one.decision_id for one in memory.learning.decisions_with(2)] == mixed
    assert [one.decision_id for one in memory.learning.decisions_with(3)] == mixed[:3]
    assert memory.learning.decisions_with(4) == []


@pytest.mark.requirement("B4", "R14")
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_a_loop_found_by_an_alias_is_the_memory_that_has_it(nodes: int) -> None:
    memory = room()
    memory.add("x plainly", aliases=["y in other words"])
    run = memory.learning.active.begin("y")
    decision = memory.learning.active.recall(Cue(vector=axis("y")), k=nodes, distinct=None)
    # By the alias alone, or by both.
    assert [hit.similarity for hit in decision.hits] == pytest.approx([1.0, 0.0][:nodes])
    memory.learning.active.act(decision, "look", decision.hits)
    memory.learning.active.close(run, 1.0)
    found = memory.learning.attribution(decision)
    assert found.retrieved == found.shown == found.followed == (1,)
    assert [one.decision_id for one in memory.learning.decisions_with(1)] == [decision.decision_id]


@pytest.mark.requirement("B4")
def test_what_is_left_of_a_decision_can_be_asked_when_a_memory_of_it_is_erased(
    memory: Memory,
) -> None:
    taken = acted(memory.learning.active, [0, 1], 1.0)
    block = memory.context("x", k=2, where=Filter(until=10), pipeline=BY_SIMILARITY)
    memory.feedback(block, followed=[1, 2], outcome=1.0)
    memory.erase(1)
    for decision in (taken, block):
        found = memory.learning.attribution(decision)
        assert 1 not in {*found.retrieved, *found.shown}
        assert (found.followed, found.helped, found.outcome) == ((2,), True, 1.0)
    assert [one.decision_id for one in memory.learning.decisions_with(2)] == [
        taken.decision_id,
        -1 if block.decision is None else block.decision,
    ]


def test_the_outcome_of_a_loops_decision_is_that_of_its_episode(memory: Memory) -> None:
    taken = acted(memory.learning.active, [0], 0.9)
    before = memory.record.usage()
    with pytest.raises(EpisodeEndedError, match=f"is of episode {taken.episode_id}"):
        memory.feedback(taken, followed=[1], helped=False)
    assert memory.record.usage() == before
    run = memory.learning.active.begin("x")
    asked = memory.learning.active.recall(Cue(vector=axis("x")))
    memory.learning.active.act(asked, "go north", ())
    with pytest.raises(UnknownError, match="once its episode is closed"):
        memory.learning.attribution(asked)
    memory.learning.active.close(run, 0.0)
    assert memory.learning.attribution(asked).helped is None


def test_feedback_that_makes_no_sense_is_refused_and_changes_nothing(memory: Memory) -> None:
    block = memory.context("x", k=2, pipeline=BY_SIMILARITY)
    with pytest.raises(InvalidInputError, match=r"event 4 was followed, but decision \d+ did"):
        memory.feedback(block, followed=[1, 4])
    with pytest.raises(InvalidInputError, match="outcome is 2"):
        memory.feedback(block, outcome=2.0)
    with pytest.raises(UnknownError, match="no decision 77"):
        memory.feedback(77)
    memory.feedback(block, followed=[1], helped=True)
    with pytest.raises(InvalidInputError, match="event 4 was followed"):
        memory.feedback(block, followed=[4], helped=False)
    assert counts(memory)['["event",1]'] == (1, 1, 1)


@pytest.mark.parametrize(
    ("refresh", "touched"),
    [("rendered", {1}), ("retrieved", {1, 2, 3}), ("used", {1}), ("never", set())],
)
@pytest.mark.requirement("X16")
def test_what_counts_as_used_is_chosen(memory: Memory, refresh: Refresh, touched: set[int]) -> None:
    plan = replace(BY_SIMILARITY, serving=Serving(refresh=refresh))
    # Room for one memory of three.
    block = memory.context(Cue(text="x", timestamp=50), 24, k=3, pipeline=plan)
    assert len(block.hits) == 1
    if refresh == "used":
        assert memory.record.used([1, 2, 3]) == {}
    memory.feedback(block, followed=[1] if refresh == "used" else [])
    used = memory.record.used([1, 2, 3])
    assert {event for event, (_, last) in used.items() if last == 50} == touched


@pytest.mark.requirement("R12", "R5")
def test_what_has_not_been_used_for_longest_is_evicted_first() -> None:
    memory = room()
    warm, cold, never = (
        memory.add(f"x number {n}", vector=apart(0.9, n), timestamp=n).id for n in range(3)
    )
    for time, event in ((70, cold), (90, warm), (80, never)):
        only = Filter(ids=[event])
        cue = Cue(text="x", timestamp=time)
        # Retrieved as often as each other; only one of them is not shown.
        tokens = 0 if event == never else 200
        memory.context(cue, tokens, where=only, pipeline=BY_SIMILARITY)
    assert memory.admin.budget(events=0).events == (never, cold, warm)
    # Only asked what it would do, it does nothing.
    assert len(memory) == 3
    assert memory.admin.budget(events=1, dry_run=False).events == (never, cold)
    hits = memory.recall("x", pipeline=BY_SIMILARITY)
    assert [hit.event.event_id for hit in hits if hit.event] == [warm]


@pytest.mark.requirement("B4")
def test_decisions_survive_in_a_folder(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        memory.add("x one")
        block = memory.context("x")
        number = -1 if block.decision is None else block.decision
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        assert memory.learning.attribution(number).shown == (1,)
        memory.feedback(number, followed=[1], helped=True)
        # A loop on the same store passes over recalls for prompts.
        memory.learning.loop()
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        assert memory.learning.attribution(number).helped is True


def test_the_text_of_an_erased_memory_is_not_left_in_a_decision(memory: Memory) -> None:
    memory.context("x", k=1)
    memory.erase(1)
    rows = memory.record.query("SELECT * FROM decisions")
    assert "number 0" not in repr(rows)


@pytest.mark.requirement("B1")
def test_a_view_of_the_past_answers_and_writes_nothing_down(memory: Memory) -> None:
    past = memory.as_of(10**17)
    block = past.context("x", k=1)
    assert len(block.hits) == 1
    assert block.decision is None
    with pytest.raises(UnknownError, match="view of the past"):
        past.learning.attribution(block)
    with pytest.raises(ReadOnlyError, match="view of the past"):
        past.feedback(block, helped=True)


def hits(scores: list[float]) -> list[Hit]:
    return [Hit(n, 0.0, score, 0.0, 0, 0) for n, score in enumerate(scores)]


@pytest.mark.requirement("B5")
def test_the_sampled_order_has_the_propensities_that_it_logs() -> None:
    candidates = hits([0.3, 0.2, 0.1])
    weights = np.exp(np.array([0.3, 0.2, 0.1]) / 0.1)
    firsts = np.zeros(3)
    for seed in range(3_000):
        drawn, chances = PlackettLuce(seed).draw(candidates, 2)
        firsts[drawn[0].node] += 1
        left = [hit.node for hit in candidates if hit.node != drawn[0].node]
        assert chances[0] == pytest.approx(weights[drawn[0].node] / weights.sum())
        assert chances[1] == pytest.approx(weights[drawn[1].node] / weights[left].sum())
    assert stats.chisquare(firsts, 3_000 * weights / weights.sum()).pvalue > 1e-3


@pytest.mark.requirement("B5")
def test_a_sampled_recall_is_logged_for_off_policy_evaluation(memory: Memory) -> None:
    for turn in range(40):
        serving = Serving(sampling=PlackettLuce(seed=7, temperature=0.2))
        plan = replace(BY_SIMILARITY, serving=serving)
        cue = Cue(text=f"x {turn}", place=turn)
        block = memory.context(cue, 2_000, k=2, pipeline=plan)
        first = block.hits[0].node
        memory.feedback(block, followed=[block.hits[0]], outcome=float(first == 0))
    log = memory.learning.logged_choices(["similarity"])
    assert len(log) == 40
    assert {choice.features.shape for choice in log} == {(4, 1)}
    for choice in log:
        own = plackett_luce([1.0], temperature=0.2)(choice.features)
        assert own[choice.chosen] == pytest.approx(choice.propensity)
    sharp = off_policy_value(log, plackett_luce([1.0], 0.02), method="snips")
    flat = off_policy_value(log, plackett_luce([0.0]), method="snips")
    # Only the nearest memory pays, so that a policy which prefers it is worth more.
    assert sharp.value > flat.value
    assert memory.learning.logged_choices(["unheard_of"]) == []


@pytest.mark.requirement("B5")
def test_the_sampled_decisions_of_a_loop_are_logged_for_off_policy_evaluation(
    memory: Memory,
) -> None:
    by_similarity = Scorer({"similarity": 1.0})
    order = PlackettLuce(seed=7, temperature=0.1)
    loop = memory.learning.loop(
        order=order, scorer=by_similarity, weights=None, distinct=None, mdp=None
    )
    firsts = []
    for _ in range(40):
        run = loop.begin("x", "clean")
        decision = loop.recall(Cue(vector=axis("x")), Filter(until=10), k=2)
        firsts.append(decision)
        loop.act(decision, "go north", decision.hits[:1], vector=axis("w"))
        loop.close(run, float(decision.hits[0].node == 0))
    # What is looked at by nobody, and a context that was not sampled, say nothing.
    memory.context("x", pipeline=BY_SIMILARITY)
    log = memory.learning.logged_choices(["similarity"])
    assert len(log) == len(logged_choices(loop.record, ["similarity"])) == 40
    for choice, decision in zip(log, firsts, strict=True):
        assert decision.propensities is not None
        first = decision.hits[0]
        assert choice.features.shape == (4, 1)
        assert choice.features[choice.chosen] == [first.factors[0].value]
        assert choice.propensity == decision.propensities[0]
        own = plackett_luce([1.0], temperature=0.1)(choice.features)
        assert own[choice.chosen] == pytest.approx(choice.propensity)
        assert choice.reward == float(first.node == 0)
        assert choice.group == decision.episode_id
    sharp = off_policy_value(log, plackett_luce([1.0], 0.02), method="snips")
    flat = off_policy_value(log, plackett_luce([0.0]), method="snips")
    assert sharp.value > flat.value


@pytest.mark.requirement("B5")
def test_a_context_and_an_episode_of_one_number_are_two_groups(memory: Memory) -> None:
    plan = replace(BY_SIMILARITY, serving=Serving(sampling=PlackettLuce(seed=7)))
    for _ in range(3):
        block = memory.context("x", 2_000, k=2, pipeline=plan)
        memory.feedback(block, followed=[], outcome=1.0)
    loop = memory.learning.loop(order=PlackettLuce(seed=7))
    for _ in range(3):
        acted(loop, [0], 0.0)
    log = memory.learning.logged_choices(["similarity"])
    assert len({choice.group for choice in log}) == len(log) == 6


@pytest.mark.requirement("B5")
def test_contexts_of_one_cue_are_drawn_with_the_chances_that_they_log(memory: Memory) -> None:
    serving = Serving(sampling=PlackettLuce(seed=3, temperature=1.0))
    plan = replace(BY_SIMILARITY, serving=serving)
    firsts = np.zeros(4)
    chances = np.zeros(4)
    for _ in range(200):
        block = memory.context("x", 2_000, k=4, pipeline=plan)
        memory.feedback(block, helped=None)
        row = memory.record.decision(block.decision or 0)
        assert row is not None
        firsts[block.hits[0].node] += 1
        chances[block.hits[0].node] = row["record"]["propensities"][0]
    assert chances.sum() == pytest.approx(1.0)
    assert stats.chisquare(firsts, 200 * chances).pvalue > 1e-3


def test_the_same_seed_and_decision_sample_the_same_order() -> None:
    candidates = hits([0.9, 0.8, 0.7, 0.6])
    sampling = PlackettLuce(seed=3, temperature=1.0)
    orders = [tuple(hit.node for hit in sampling.draw(candidates, 4, n)[0]) for n in range(40)]
    assert orders == [
        tuple(hit.node for hit in sampling.draw(candidates, 4, n)[0]) for n in range(40)
    ]
    assert len(set(orders)) > 10
    with pytest.raises(InvalidInputError, match="temperature is 0"):
        PlackettLuce(1, 0.0)


@pytest.mark.requirement("B20")
def test_another_process_gives_feedback_on_a_recall_by_its_number(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=LexicalEmbedder(64)) as memory:
        key = memory.add("the spare key is under the green pot")
        memory.add("the spare key was lost in spring")
        known, last = memory.recall("where is the spare key?"), memory.recall("lost keys")
        memory.add("it rained")
        told = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys, cvx\n"
                "with cvx.Memory.open(sys.argv[1], embedder=cvx.LexicalEmbedder(64)) as memory:\n"
                f"    memory.feedback({known.decision}, helped=[{key.id}], outcome=1.0)\n"
                f"    print(memory.learning.attribution({known.decision}).followed)\n",
                str(folder),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == f"({key.id},)"
        assert memory.learning.attribution(known.decision or 0).outcome == 1.0
    with Memory.open(folder) as again:
        again.feedback(last.decision or 0, helped=False, outcome=0.0)
        rows = again.frames.decisions().filter(decision_id=last.decision)
        assert rows["outcome"].unique().to_list() == [0.0]
