"""Retention: quarantine, trust, forgetting, budgets, and views of the past."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import EchoWarning, InvalidInputError, ReadOnlyError, UnknownError
from cvx.memory import Memory
from cvx.store import Record
from cvx.types import Cue, Edge, Event, Filter
from tests.store.facade import memory, texts
from tests.store.processes import embedder

__all__ = ["memory"]

CLOSED = "the bridge is closed on sundays, " + ", ".join(f"and on day {day}" for day in range(30))
"""Long enough that nobody says it twice word for word."""


@pytest.mark.requirement("B3")
def test_recalled_text_that_comes_back_is_not_stored_again(memory: Memory) -> None:
    first = memory.add(CLOSED).id
    assert memory.add(CLOSED).id == 2
    assert memory.recall("bridge")
    with pytest.warns(EchoWarning):
        assert memory.add(CLOSED.title().replace(" ", "  ")).id in (first, 2)
    assert len(memory) == 2
    assert memory.add(CLOSED, again=True).id == 3
    assert memory.add(CLOSED, namespace="other").id == 4
    with pytest.warns(EchoWarning):
        mixed = memory.add_many([Event(timestamp=1, text="new"), Event(text=CLOSED)])
    assert mixed[0] == 5
    assert mixed[1] in (1, 2, 3)


@pytest.mark.requirement("B3")
def test_a_context_block_that_comes_back_as_a_memory_is_recognised(memory: Memory) -> None:
    first = memory.add("the bridge is <closed> & empty on sundays\nall year", timestamp=0).id
    second = memory.add("the ferry across runs at noon", timestamp=0).id
    block = memory.context("when can I cross the bridge or take the ferry?")
    shown = [hit.event.event_id or 0 for hit in block.hits if hit.event]
    assert sorted(shown) == [first, second]
    for text in (block, f"  {block.upper()}\n", block.replace("<recalled>", "")):
        with pytest.warns(EchoWarning):
            assert memory.add(text, source="a tool", tags=["seen"]).id in (first, second)
    assert len(memory) == 2
    # Where the best one was put away, by the next one that it shows; what says more is kept.
    memory.forget(shown[0])
    with pytest.warns(EchoWarning):
        assert memory.add(block).id == shown[1]
    quoting = memory.add(f"so I take the bus\n{block}").id
    assert quoting == 3
    assert memory.add(block, again=True).id == 4
    assert memory.add(block, namespace="other").id == 5
    # A block into which somebody has written something says more than was recalled.
    more = block.replace("</recalled>", "- the bus is full\n</recalled>")
    assert memory.add(more).id == 6


@pytest.mark.requirement("B3")
def test_what_a_loop_rendered_is_recognised_when_it_comes_back(memory: Memory) -> None:
    loop = memory.learning.loop(namespace="ana")
    for way in ("ring", "knock"):
        loop.add_demonstration("get in", [(f"a door to {way}", way)])
    decision = loop.recall(Cue(step="a door to knock"))
    text = loop.render(decision)
    first = memory.record.events_of_nodes([decision.hits[0].node])[decision.hits[0].node]
    held = len(memory)
    with pytest.warns(EchoWarning):
        assert memory.add(text, namespace="ana").id == first
    assert len(memory) == held
    assert memory.add(text, namespace="bob").id != first


@pytest.mark.requirement("B3", "B9")
def test_what_another_made_public_is_recognised_by_whoever_recalled_it(memory: Memory) -> None:
    first = memory.add(CLOSED, namespace="ana", visibility="public").id
    assert memory.recall("the bridge", namespace="bob")
    with pytest.warns(EchoWarning):
        assert memory.add(CLOSED, namespace="bob").id == first
    assert memory.add(CLOSED, namespace="cleo").id == 2


@pytest.mark.requirement("B3")
def test_a_block_of_an_earlier_session_is_recognised_by_its_form(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        first = memory.add("the bridge is <closed> & empty on sundays\nall year").id
        hidden = memory.add("a secret way", namespace="ana").id
        block = memory.context("the bridge")
        theirs = memory.context("a secret way", namespace="ana")
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        with pytest.warns(EchoWarning):
            assert memory.add(block).id == first
        assert memory.add(theirs, namespace="bob").id != hidden
        with pytest.warns(EchoWarning):
            assert memory.add(theirs, namespace="ana").id == hidden


@pytest.mark.requirement("B3")
def test_what_was_put_away_can_be_learned_again(memory: Memory) -> None:
    forgotten = memory.add(CLOSED.replace("bridge", "mill")).id
    memory.add("the ferry runs at noon", source="web")
    assert len(memory.recall("the mill, the ferry")) == 2
    memory.forget(forgotten)
    memory.admin.quarantine(source="web")
    again = (
        memory.add(CLOSED.replace("bridge", "mill")).id,
        memory.add("the ferry runs at noon", source="ana").id,
    )
    assert again == (3, 4)
    assert texts(memory, "the mill", k=1) == [CLOSED.replace("bridge", "mill")]
    assert texts(memory, "the ferry", k=1) == ["the ferry runs at noon"]


@pytest.mark.requirement("B3")
def test_a_source_is_quarantined_audited_released_and_rolled_back(memory: Memory) -> None:
    good = memory.add("the well is clean", source="ana").id
    bad = memory.add("the well is poisoned", source="bob", aliases=["do not drink"]).id
    memory.link(bad, good, "caused", effect_first="allow")
    assert memory.admin.quarantine(source="bob") == [bad]
    for cue in ("the well", "do not drink", "poisoned"):
        for outcome in ("success", "failure", "any"):
            assert "the well is poisoned" not in texts(memory, cue, where={"outcome": outcome})
    assert [e.state for e in memory.admin.audit("bob")] == ["quarantined"]
    assert memory.why(good) == []
    assert memory.admin.release(source="bob") == [bad]
    assert "the well is poisoned" in texts(memory, "poisoned")
    assert memory.why(good) != []
    assert memory.admin.roll_back("bob") == [bad]
    assert "the well is poisoned" not in texts(memory, "poisoned")
    assert memory.record.links() == []
    assert memory.index.edges() == []
    assert texts(memory, "the well") == ["the well is clean"]


@pytest.mark.requirement("B3")
def test_roll_back_takes_away_the_links_that_lead_to_a_source_too(memory: Memory) -> None:
    a, b = memory.add("rain", source="ana").id, memory.add("flood", source="ana").id
    bad = memory.add("gold", source="bob", aliases=["treasure"]).id
    memory.link(a, b, "caused")
    memory.link(a, bad, "caused")
    alias = memory.record.nodes_of_events([bad])[bad][1]
    with memory.record.transaction() as write:
        write.add_links([Edge(0, alias, "same_action_type")])
    memory.admin.roll_back("bob")
    assert [(e.from_node, e.to_node) for e in memory.record.links()] == [(0, 1)]
    assert [(e.from_node, e.to_node) for e in memory.index.edges()] == [(0, 1)]


@pytest.mark.requirement("B8")
def test_what_is_forgotten_can_be_restored(memory: Memory) -> None:
    event = memory.add("a blue door", aliases=["azure gate"]).id
    memory.forget(event)
    assert len(memory) == 0
    assert texts(memory, "blue door") == []
    assert texts(memory, "azure gate", where={"outcome": "any"}) == []
    assert memory.get(event).state == "archived"
    with pytest.raises(UnknownError):
        memory.forget([event, 99])
    memory.update(event, state="active")
    assert texts(memory, "azure gate") == ["a blue door"]


@pytest.mark.requirement("B8", "W24")
def test_a_budget_puts_the_least_useful_away_and_says_so_first(memory: Memory) -> None:
    for number in range(6):
        memory.add(f"note {number}", reward=number / 5)
    plan = memory.admin.budget(events=4)
    assert plan.events == (1, 2)
    assert (plan.events_left, len(memory)) == (4, 6)
    assert memory.admin.budget(events=4, dry_run=False).events == (1, 2)
    assert len(memory) == 4
    size = memory.admin.budget(bytes=10**9).bytes_left
    # "note n" is 6 bytes, its vector 64.
    assert size == 4 * 70
    assert memory.admin.budget(bytes=size - 1).events == (3,)
    with pytest.raises(InvalidInputError, match="no budget"):
        memory.admin.budget()
    # Of equals, what was asked for stays.
    a, b = memory.add("alpha words", salience=1.0).id, memory.add("beta words", salience=1.0).id
    assert texts(memory, "alpha words", k=1) == ["alpha words"]
    order = memory.admin.budget(events=0).events
    assert order.index(b) < order.index(a)


SHARES = st.sampled_from([None, 0.25, 0.5, 1.0])


@pytest.mark.requirement("B8")
@given(
    st.lists(st.tuples(SHARES, SHARES, st.integers(0, 3)), min_size=1, max_size=10),
    st.integers(0, 10),
)
@settings(max_examples=30, deadline=None)
def test_a_budget_goes_by_reward_times_salience_and_of_equals_puts_the_oldest_away(
    told: list[tuple[float | None, float | None, int]], most: int
) -> None:
    with Memory(embedder=embedder()) as memory:
        for number, (reward, salience, timestamp) in enumerate(told):
            memory.add(f"note {number}", reward=reward, salience=salience, timestamp=timestamp)

        def worth(event: int) -> tuple[float, int, int]:
            reward, salience, timestamp = told[event - 1]
            halves = (0.5 if share is None else share for share in (reward, salience))
            return math.prod(halves), timestamp, event

        least_useful_first = sorted(range(1, len(told) + 1), key=worth)
        gone = memory.admin.budget(events=most).events
        assert gone == tuple(least_useful_first[: max(0, len(told) - most)])


@pytest.mark.requirement("B8", "R12")
def test_what_happened_long_ago_stays_where_it_was_used_lately(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        old, new = (
            memory.add("a red lamp", timestamp=1).id,
            memory.add("a blue door", timestamp=50).id,
        )
        for event, now in ((old, 90), (new, 60)):
            only = Filter(ids=[event])
            assert memory.context(
                Cue(text="lamp or door", timestamp=now), where=only, floor=0.0
            ).hits
        assert memory.admin.budget(events=1).events == (new,)
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.admin.budget(events=1).events == (new,)


@pytest.mark.requirement("B1")
def test_the_past_knows_nothing_of_what_came_later(memory: Memory) -> None:
    a = memory.add("rain in april", reward=0.25).id
    b = memory.add("flood in may").id
    memory.link(a, b, "caused", weight=0.5, why="then")
    then = memory.get(b).recorded
    assert then is not None
    linked = memory.record.links()[0].recorded
    assert linked is not None
    c = memory.add("drought in june", aliases=["no rain"]).id
    memory.update(a, reward=1.0, metadata={"later": True})
    memory.link(a, b, "caused", weight=0.9, why="now")
    memory.link(b, c, "caused", weight=0.9, why="later")
    memory.forget(b)
    memory.update(a, aliases=["april showers"])

    past = memory.as_of(linked)
    assert len(past) == 2
    assert sorted(past.frames.events()["text"].to_list()) == ["flood in may", "rain in april"]
    assert (past.get(a).reward, past.get(a).metadata) == (0.25, {})
    assert past.index.reward(0) == 0.25
    assert [(s.event.event_id, s.edge.why, s.edge.weight) for s in past.why(b).steps] == [
        (a, "then", 0.5)
    ]
    assert "drought in june" not in texts(past, "drought june no rain")
    assert past.index.stats()["nodes"] == 2
    assert past.admin.check() == []
    assert len(memory.as_of(then).record.links()) == 0
    with pytest.raises(ReadOnlyError):
        past.add("a change of history")
    assert memory.get(a).reward == 1.0
    past.close()


@pytest.mark.requirement("B1")
def test_the_past_answers_as_the_memory_did_then(memory: Memory) -> None:
    rng = np.random.default_rng(7)
    marks: list[tuple[int, list[list[object]]]] = []
    cues = ["lamp table", "door", "window lamp"]
    ids: list[int] = []
    for step in range(40):
        words = " ".join(rng.choice(["lamp", "table", "door", "window", "cat"], 3))
        ids.append(memory.add(f"{words} {step}", reward=float(rng.random()), again=True).id)
        match rng.integers(4):
            case 0:
                memory.update(int(rng.choice(ids)), reward=float(rng.random()))
            case 1:
                memory.forget(int(rng.choice(ids)))
            case 2 if len(ids) > 1:
                a, b = rng.choice(ids, 2, replace=False).tolist()
                memory.link(a, b, "caused", effect_first="allow")
            case _:
                for one in ids:
                    memory.update(one, state="active")
        if step % 10 == 9:
            stamp = memory.record.query("SELECT max(recorded) FROM journal")[0][0]
            marks.append((stamp, [answers(memory, cue) for cue in cues]))
    for stamp, before in marks:
        past = memory.as_of(stamp)
        assert [answers(past, cue) for cue in cues] == before
        past.close()


def answers(memory: Memory, cue: str) -> list[object]:
    return [(h.node, h.score, h.distance, h.reward) for h in memory.recall(cue, k=8)]


@pytest.mark.requirement("B1", "V12")
def test_the_past_has_the_weights_counts_decisions_and_models_of_then(memory: Memory) -> None:
    loop = memory.learning.loop()

    def play(number: int) -> None:
        run = loop.begin("put the cup away", "clean")
        decision = loop.recall(Cue(step=f"at the shelf {number}"))
        loop.act(decision, f"go to {number}", decision.hits[:1])
        loop.close(run, float(number % 3 > 0))

    def known(record: Record) -> list[object]:
        decisions = [(d["decision_id"], d["outcome"]) for d in record.decisions()]
        return [record.usage(), record.decays(), record.state("weights"), decisions]

    marks = []
    for number in range(6):
        play(number)
        recorded = memory.record.query("SELECT max(recorded) FROM journal")[0][0]
        marks.append((recorded, known(memory.record)))
    loop.reset_decay()
    with memory.record.transaction() as write:
        write.add_usage({'["event",1]': 3})
    for recorded, expected in marks:
        past = memory.as_of(recorded)
        assert known(past.record) == expected
        assert past.admin.check() == []
        then = past.learning.loop()
        if then.weights is not None and expected[2] is not None:
            assert then.weights.to_dict() == expected[2]
        past.close()
