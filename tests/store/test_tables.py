"""Frames of what is stored, and how much of it there is."""

import json

import numpy as np
import polars as pl
import pytest

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.types import Cue, Event, Filter
from tests.store.facade import memory
from tests.store.processes import embedder

__all__ = ["memory"]


def test_events_are_a_frame(memory: Memory) -> None:
    memory.add("a", tags=["x", 'y"z'], metadata={"n": 1}, entity="4", key="k")
    memory.forget(memory.add("b", namespace="other").id)
    frame = memory.frames.events()
    assert frame["text"].to_list() == ["a"]
    assert frame["tags"].to_list() == [["x", 'y"z']]
    assert [json.loads(m) for m in frame["metadata"]] == [{"n": 1}]
    assert frame["key"].to_list() == ["k"]
    assert memory.frames.events(state=None)["text"].to_list() == ["a", "b"]
    assert memory.frames.events(state=None, namespace="other")["text"].to_list() == ["b"]
    nobody = memory.frames.events(namespace="nobody", vectors=True)
    assert nobody.is_empty()
    assert nobody.schema["vector"] == pl.Array(pl.Float32, 16)
    assert nobody.schema["tags"] == pl.List(pl.String)


def test_vectors_are_a_column_that_numpy_and_arrow_read_without_a_copy(memory: Memory) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
    memory.add_many(Event(timestamp=n, text=f"event {n}", vector=row) for n, row in enumerate(rows))
    frame = memory.frames.events(vectors=True)
    np.testing.assert_array_equal(frame["vector"].to_numpy(allow_copy=False), rows)
    assert hasattr(frame, "__arrow_c_stream__")
    with memory.record.transaction() as write:
        write.add_events([Event(timestamp=9, text="no vector")])
    column = memory.frames.events(vectors=True)["vector"]
    assert column.is_null().to_list() == [False] * 5 + [True]
    np.testing.assert_array_equal(column.drop_nulls().to_numpy(), rows)


def test_links_are_a_frame_between_events(memory: Memory) -> None:
    assert memory.frames.links().is_empty()
    a = memory.add("a", aliases=["another name of a"]).id
    b, c = memory.add("b").id, memory.add("c").id
    memory.link(
        c, a, "caused", weight=0.25, why="so it seems", evidence="seen", effect_first="allow"
    )
    memory.link(a, b, "caused")
    frame = memory.frames.links()
    assert frame.select("from_event", "to_event", "kind", "weight").rows() == [
        (a, b, "caused", 1.0),
        (c, a, "caused", 0.25),
    ]
    assert frame["why"].to_list() == ["", "so it seems"]


def test_an_episode_that_has_not_ended_has_no_reward_in_a_frame(memory: Memory) -> None:
    left_open, failed = memory.episode("find the hat"), memory.episode("find the hat")
    left_open.act("left", observation="a hall")
    failed.act("left", observation="a hall")
    failed.end(0.0)
    memory.episode("find the hat").discard()
    frame = memory.frames.episodes()
    assert frame.select("kind", "reward", "steps").rows() == [
        ("open experience", None, 1),
        ("experience", 0.0, 1),
        ("discarded experience", None, 0),
    ]


@pytest.mark.requirement("V22")
def test_episodes_and_decisions_are_frames(memory: Memory) -> None:
    nothing = memory.frames.episodes()
    assert nothing.is_empty()
    assert memory.frames.decisions().is_empty()
    loop = memory.learning.loop()
    for reward, steps in ((1.0, 2), (0.0, 1)):
        run = loop.begin("put the cup away", "clean", metadata={"who": "ana"})
        for place in range(steps):
            decision = loop.recall(Cue(step=f"at place {place}"))
            loop.act(decision, f"go to {place}", decision.hits[:1])
        loop.close(run, reward)
    frame = memory.frames.episodes()
    assert isinstance(frame, pl.DataFrame)
    assert frame.schema == nothing.schema
    done = memory.frames.events({"kind": ["step", "failed_step"], "outcome": "any"})
    assert done["text"].to_list() == [
        "put the cup away at place 0", "put the cup away at place 1",
        "put the cup away at place 0",
    ]  # fmt: skip
    assert frame.select("goal", "task_type", "reward", "steps").rows() == [
        ("put the cup away", "clean", 1.0, 2),
        ("put the cup away", "clean", 0.0, 1),
    ]
    decisions = memory.frames.decisions()
    asked = decisions.unique("decision_id", maintain_order=True)
    assert asked["outcome"].to_list() == [1.0, 1.0, 0.0]
    assert asked["cue"].to_list()[1] == "put the cup away at place 1"
    for told in memory.record.decisions():
        rows = decisions.filter(decision_id=told["decision_id"])
        assert rows.height == max(1, len(told["hits"]))
        assert rows["followed"].fill_null(False).sum() == len(told["followed"])
    assert decisions.schema["event_id"] == pl.Int64


def test_a_frame_of_decisions_has_a_row_for_each_candidate(memory: Memory) -> None:
    rain = memory.add("rain in april", kind="note")
    flood = memory.add("rain in may")
    block = memory.context("rain")
    memory.feedback(block, helped=[flood], outcome=1.0)
    frame = memory.frames.decisions()
    assert frame["place"].to_list() == [1, 2]
    assert sorted(frame["event_id"].to_list()) == [rain.id, flood.id]
    assert frame.filter(followed=True)["event_id"].to_list() == [flood.id]
    assert frame["score"].to_list() == [hit.score for hit in block.hits]
    assert frame["outcome"].to_list() == [1.0, 1.0]
    assert memory.frames.decisions({"kind": "note"})["event_id"].to_list() == [rain.id]


def test_frames_hold_what_passes_a_filter(memory: Memory) -> None:
    ids = memory.add_many([
        {"text": "rain", "kind": "note", "namespace": "ana"},
        {"text": "mud", "kind": "note"},
        {"text": "sun"},
    ])  # fmt: skip
    rain, mud, sun = ids.tolist()
    memory.link(rain, mud)
    memory.link(mud, sun)
    with memory.episode("dry the field", entity="ana") as episode:
        episode.act("dig", observation="a wet field")
        episode.end(1.0)
    notes = {"kind": "note"}
    assert memory.frames.events(notes)["event_id"].to_list() == [rain, mud]
    assert memory.frames.events(notes, namespace="ana")["event_id"].to_list() == [rain]
    assert memory.frames.events([notes, {"ids": sun}])["event_id"].to_list() == [rain, mud, sun]
    assert memory.frames.links(notes).select("from_event", "to_event").rows() == [(rain, mud)]
    assert memory.frames.episodes({"entities": "ana"}).height == 1
    assert memory.frames.episodes({"entities": "bo"}).height == 0
    with pytest.raises(InvalidInputError, match="a field of where"):
        memory.frames.links({"colour": "red"})


@pytest.mark.requirement("W1")
def test_what_could_come_back_is_counted(memory: Memory) -> None:
    memory.add_many(
        Event(entity_id=n % 2, timestamp=n, text=f"rain {n}", reward=n / 10) for n in range(10)
    )
    memory.add("elsewhere", namespace="other")
    memory.add("open to all", namespace="other", visibility="public")
    memory.forget(1)
    assert (len(memory.events()), len(memory.events(namespace="other"))) == (10, 2)
    for where in (Filter(since=3, until=7), Filter(entities=["1"]), Filter(min_reward=0.5)):
        found = memory.recall("rain", k=50, where=where._replace(outcome="any"), floor=-2.0)
        assert len(memory.events(where)) == len(found)
    with pytest.raises(InvalidInputError):
        memory.events(Filter(since=7, until=3))


@pytest.mark.requirement("X10")
def test_from_how_many_vectors_on_a_graph_is_walked_can_be_set() -> None:
    assert Memory(embedder=embedder()).index.params["exact_below"] == 10_000
    with Memory._opened(None, embedder(), exact_below=50) as memory:
        assert memory.index.params["exact_below"] == 50
        memory.add_many(Event(timestamp=n, text=f"event {n}") for n in range(200))
        assert memory.recall("event 77", k=1)[0].similarity == pytest.approx(1.0)
