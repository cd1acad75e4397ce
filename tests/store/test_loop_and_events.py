"""The loop beside events that were added, put away, or have aliases."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.learn.decay import BlindDecay
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from cvx.types import Cue, Filter, Vector
from tests.store.facade import memory
from tests.store.processes import embedder

__all__ = ["memory"]


def play(loop: ActiveMemory, step: str, reward: float) -> None:
    run = loop.begin("put the cup away", "clean")
    loop.act(loop.recall(Cue(step=step)), f"go to {step}")
    loop.close(run, reward)


def test_steps_and_events_have_times_of_one_clock(memory: Memory) -> None:
    before = memory.add("a note").id
    play(memory.learning.active, "sink", 1.0)
    play(memory.learning.loop(), "shelf", 1.0)
    after = memory.add("another note").id
    times = {event.event_id: event.timestamp for event in memory.record.events()}
    steps = [when for number, when in times.items() if number not in (before, after)]
    assert len(steps) == 2
    assert times[before] < steps[0] < steps[1] < times[after]
    where = Filter(since=times[before] + 1, until=times[after])
    found = {hit.action for hit in memory.learning.active.recall(Cue(step="sink"), where).hits}
    assert found == {"go to sink", "go to shelf"}


def test_what_happened_last_week_is_less_recent_to_a_loop_than_what_happened_just_now() -> None:
    now = [0]
    loop = Memory(embedder=embedder()).learning.loop(distinct=None, clock=lambda: now[0])
    play(loop, "sink", 1.0)
    now[0] = 7 * 24 * 3_600_000_000
    play(loop, "shelf", 1.0)
    hits = loop.recall(Cue(step="sink")).hits
    recency = {hit.action: {name: value for name, value, *_ in hit.factors} for hit in hits}
    assert recency["go to shelf"]["recency"] == pytest.approx(1.0)
    assert recency["go to sink"]["recency"] == pytest.approx(math.exp(-0.01 * 7 * 24))


@pytest.mark.requirement("B3", "V17")
@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_what_was_put_away_is_not_advice_of_either_kind(memory: Memory, outcome: str) -> None:
    loop = memory.learning.loop(distinct=None)
    for place in ("sink", "shelf", "stove"):
        play(loop, place, float(outcome == "success"))
    asked = Cue(goal="put the cup away", step="sink")

    def found() -> list[str | None]:
        hits = loop.recall(asked, k=2, outcome=outcome).hits  # type: ignore[arg-type]
        return [hit.action for hit in hits]

    assert found()[0] == "go to sink"
    (sink,) = (e.event_id for e in memory.record.events() if e.action == "go to sink")
    assert sink is not None
    memory.forget(sink)
    assert sorted(map(str, found())) == ["go to shelf", "go to stove"]
    memory.update(sink, state="active")
    assert found()[0] == "go to sink"


@pytest.mark.requirement("X11")
def test_a_failure_is_told_by_why_and_recalled_only_for_who_asks_for_failures(
    memory: Memory,
) -> None:
    loop = memory.learning.active
    play(loop, "sink", 1.0)
    run = loop.begin("put the cup away", "clean")
    advised = loop.recall(Cue(step="sink"))
    loop.act(advised, "go to sink", advised.hits[0])
    loop.close(run, 0.0)
    good, bad = memory.record.events()
    assert (good.kind, bad.kind) == ("step", "failed_step")
    assert bad.event_id is not None
    assert good.event_id is not None
    assert loop.mdp is not None
    assert len(loop.mdp) == 2, "the region model learned from both"

    cue = Cue(goal="put the cup away", step="sink")
    assert [hit.node for hit in loop.recall(cue, distinct=None).hits] == [good.node]
    words, failed = "put the cup away: sink", {"outcome": "failure"}
    assert {hit.node for hit in memory.recall(words, floor=-1.0)} == {good.node}
    assert {hit.node for hit in memory.recall(words, floor=-1.0, where=failed)} == {bad.node}

    asked = loop.recall(cue, outcome="failure")
    assert [(hit.node, hit.reward) for hit in asked.hits] == [(bad.node, 0.0)]
    assert "failed" in loop.render(asked)
    (because,) = memory.why(bad.event_id).steps
    assert (because.event.event_id, because.edge.kind) == (good.event_id, "caused_failure")
    (came,) = memory.consequences(good.event_id).steps
    assert (came.event.event_id, came.event.kind) == (bad.event_id, "failed_step")


@pytest.mark.requirement("V17", "W25")
def test_decay_reaches_an_event_by_whichever_of_its_names_it_was_recalled(memory: Memory) -> None:
    event = memory.add("polish the brass", reward=1.0, action="polish", aliases=["shine the metal"])
    loop = memory.learning.loop(decay=BlindDecay(0.5), mdp=None, distinct=None)
    run = loop.begin("shine the metal")
    decision = loop.recall(Cue(text="shine the metal"), k=1)
    assert decision.hits[0].node == 1, "the alias, not the event's own node"
    loop.act(decision, "polish")
    loop.close(run, 0.0)
    assert memory.get(event).reward == 0.5
    index = memory.index
    assert [index.reward(node) for node in (0, 1)] == [0.5, 0.5]
    loop.reset_decay()
    assert memory.get(event).reward == 1.0
    assert [memory.index.reward(node) for node in (0, 1)] == [1.0, 1.0]


class Asking(LexicalEmbedder):
    """Tells questions from documents."""

    asked: tuple[str, ...] = ()

    def embed_query(self, text: str) -> Vector:
        self.asked += (text,)
        row: Vector = np.asarray(self.embed([text])[0])
        return row


@pytest.mark.requirement("W3")
def test_cues_are_embedded_as_questions_and_steps_as_documents() -> None:
    model = Asking(dim=16)
    documents: list[str] = []
    embed = model.embed

    def noted(texts: Sequence[str]) -> Vector:
        documents.extend(texts)
        return embed(texts)

    loop = ActiveMemory(Memory(embedder=embedder()).index, model)
    model.embed = noted  # type: ignore[method-assign]
    run = loop.begin("wash the cup")
    loop.recall(Cue(step="at the sink"))
    loop.step(run, "a towel", "take towel")
    assert model.asked == ("wash the cup at the sink",)
    assert documents == ["wash the cup at the sink", "a towel"]


@pytest.mark.requirement("B9")
def test_a_loop_recalls_a_step_with_the_metadata_it_has_now(tmp_path: Path) -> None:
    mine, other = (Memory.open(tmp_path / "m", embedder=embedder()) for _ in range(2))
    loops = mine.learning.loop(), other.learning.loop()
    loops[0].add_demonstration("get in", [("a door", "open door"), ("a hall", "go on")], "enter")
    (event,) = (one.event_id for one in mine.record.events() if one.action == "open door")

    def known() -> list[list[dict[str, object]]]:
        found = (loop.recall(Cue(step="a door"), k=1).hits for loop in loops)
        return [[dict(hit.event.metadata) for hit in hits if hit.event] for hits in found]

    for loop in loops:
        loop.begin("get in", "enter")
    assert known() == [[{}], [{}]]
    for turn in (7, 8):
        other.update(event or 0, metadata={"turn": turn})
        assert known() == [[{"turn": turn}]] * 2
    mine.forget(event or 0)
    mine.update(event or 0, metadata={"turn": 9})
    assert [hit.action for hit in loops[1].recall(Cue(step="a door")).hits] == ["go on"]
    mine.close()
    other.close()
