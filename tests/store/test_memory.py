"""The memory as its callers see it: in RAM and in a folder the same."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import cvx
from cvx.errors import (
    DuplicateKeyError,
    InvalidInputError,
    InvalidVectorError,
    LexicalOnlyWarning,
    SettingsMismatchError,
    StoreError,
    StoreNotFoundError,
    UnknownError,
)
from cvx.memory import Memory, settings
from cvx.types import Cue, Event, Filter
from tests.store.facade import memory, texts
from tests.store.processes import embedder

__all__ = ["memory"]


@pytest.mark.requirement("W26", "X9")
def test_everything_is_there_after_closing_and_opening_again(tmp_path: Path) -> None:
    with cvx.Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        key = memory.add("the key is under the pot", metadata={"a": 1}, reward=0.5).id
        door = memory.add("the door is open", aliases=["entrance unlocked"]).id
        memory.link(key, door, "caused", weight=0.75, why="it fits")
        memory.admin.declare_edge_kind("my_kind")
    with cvx.Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert texts(memory, "where is the key")[0] == "the key is under the pot"
        assert texts(memory, "entrance unlocked")[0] == "the door is open"
        assert memory.get(key).metadata == {"a": 1}
        assert [(b.event.event_id, b.edge.why) for b in memory.why(door).steps] == [
            (key, "it fits")
        ]
        memory.link(key, door, "my_kind")
        assert memory.admin.stats()["rebuilds"] == 0
    for path in (tmp_path / "m" / "index").iterdir():
        path.unlink()
    with cvx.Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.admin.stats()["rebuilds"] == 1
        assert "my_kind" in memory.index.edge_kinds
        assert texts(memory, "entrance unlocked")[0] == "the door is open"


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": None},
        {"text": b"bytes"},
        {"tags": [1]},
        {"key": 5},
        {"action": 3},
        {"kind": None},
        {"source": None},
        {"timestamp": 1.5},
        {"entity": 3},
        {"salience": "high"},
        {"aliases": "one string"},
        {"metadata": {"a": object()}},
        {"metadata": {"a": float("nan")}},
        {"metadata": [1]},
    ],
)
def test_what_is_of_another_type_is_refused_and_spoils_no_index(
    memory: Memory, wrong: dict[str, object]
) -> None:
    memory.add("a mug on a shelf")
    with pytest.raises(InvalidInputError):
        memory.add(**{"text": "a cup", **wrong})  # type: ignore[arg-type]
    assert texts(memory, "mug") == ["a mug on a shelf"]


def test_a_reason_that_is_no_string_is_refused(memory: Memory) -> None:
    cause, effect = memory.add("rain").id, memory.add("a flood").id
    for wrong in ({"why": 5}, {"evidence": None}):
        with pytest.raises(InvalidInputError, match="give a str"):
            memory.link(cause, effect, **wrong)
    assert memory.admin.check() == []


def test_ids_may_be_any_kind_of_integer(memory: Memory) -> None:
    first = memory.add("a mug", timestamp=np.int64(5), entity=str(np.uint8(3))).id  # type: ignore[arg-type]
    second = memory.add("a cup").id
    assert (memory.get(first).timestamp, memory.get(first).entity) == (5, "3")
    memory.recall("mug")
    memory.forget(np.array([first, second]))
    assert texts(memory, "mug") == []
    memory.update(np.int64(first), state="active")  # type: ignore[arg-type]
    assert texts(memory, "mug") == ["a mug"]
    memory.erase(np.array([second]))
    with pytest.raises(InvalidInputError, match="'first': give an event, a hit or an id"):
        memory.forget("first")  # type: ignore[arg-type]
    assert len(memory) == 1


def test_several_events_are_stored_together_or_not_at_all(memory: Memory) -> None:
    good = [
        Event(entity_id=1, timestamp=5, text="one"),
        Event(entity_id=1, timestamp=6, text="two"),
    ]
    assert memory.add_many(good).tolist() == [1, 2]
    with pytest.raises(InvalidVectorError, match="16"):
        memory.add_many(
            [
                Event(entity_id=1, timestamp=7, text="three"),
                Event(entity_id=1, timestamp=8, text="four", vector=np.ones(3, np.float32)),
            ]
        )
    assert len(memory) == 2
    with pytest.raises(InvalidInputError, match="event 1 of those given: reward is 2"):
        memory.add_many(
            [
                Event(entity_id=1, timestamp=7, text="three"),
                Event(entity_id=1, timestamp=8, text="four", reward=2.0),
            ]
        )
    bad = np.full(16, np.nan, np.float32)
    with pytest.raises(InvalidVectorError, match="event 2 of those given"):
        memory.add_many([*good, Event(entity_id=1, timestamp=8, text="four", vector=bad)])
    assert len(memory) == 2
    assert memory.add("five").id == 3


@pytest.mark.requirement("X7")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"vector": np.zeros(16, np.float32)}, InvalidVectorError),
        ({"vector": np.full(16, np.nan, np.float32)}, InvalidVectorError),
        ({"trust": 1.5}, InvalidInputError),
        ({"salience": -0.1}, InvalidInputError),
        ({"visibility": "hidden"}, InvalidInputError),
        ({"namespace": "a\x1fshared"}, InvalidInputError),
        ({"entity": ""}, InvalidInputError),
        ({"timestamp": 2**63}, InvalidInputError),
        ({"tags": "red"}, InvalidInputError),
        ({"metadata": {"x": float("nan")}}, ValueError),
    ],
)
def test_what_cannot_be_stored_is_named_and_nothing_is_stored(
    memory: Memory, options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        memory.add("text", **options)  # type: ignore[arg-type]
    assert len(memory) == 0
    assert memory.add("text").id == 1
    assert texts(memory, "text") == ["text"]


@pytest.mark.requirement("W25")
def test_an_event_with_aliases_takes_one_place(memory: Memory) -> None:
    memory.add("the mug is on the table", aliases=["cup place", "cup spot", "cup location"])
    for number in range(5):
        memory.add(f"a cup number {number}")
    found = texts(memory, "cup place", k=4, sources=["dense"])
    assert len(found) == len(set(found)) == 4
    assert found[0] == "the mug is on the table"
    memory.update(2, aliases=["zebra stripes"])
    assert texts(memory, "zebra stripes", k=1) == ["a cup number 0"]
    assert len(memory) == 6


@pytest.mark.requirement("X15")
def test_reward_and_salience_are_two_things(memory: Memory) -> None:
    event = memory.add("something", reward=0.25, salience=0.75).id
    assert (memory.get(event).reward, memory.get(event).salience) == (0.25, 0.75)
    memory.update(event, reward=1.0, metadata={"k": "v"})
    assert (memory.get(event).reward, memory.get(event).salience) == (1.0, 0.75)
    assert memory.get(event).importance == 7.5
    assert memory.index.reward(0) == 1.0
    assert texts(memory, "something", where=Filter(min_reward=0.9)) == ["something"]
    assert texts(memory, "something", where=Filter(max_reward=0.9)) == []
    with pytest.raises(UnknownError):
        memory.update(77, reward=1.0)


def test_a_filter_holds_for_words_as_for_vectors(memory: Memory) -> None:
    for number in range(6):
        memory.add(
            "a lamp",
            entity=str(number) if number else None,
            timestamp=number,
            tags=["even"][: 1 - number % 2],
        )
    for sources in (["dense"], ["lexical"], ["dense", "lexical"]):

        def found(where: Filter, sources: list[str] = sources) -> set[int | None]:
            hits = memory.recall("a lamp", where=where, sources=sources)
            return {hit.event.event_id for hit in hits if hit.event}

        assert found(Filter(since=2, until=4)) == {3, 4}
        assert found(Filter(since=4)) == {5, 6}
        assert found(Filter(entities=["5"])) == {6}
        assert found(Filter(tags=["even"])) == {1, 3, 5}
        assert found(Filter(ids=[2, 3])) == {2, 3}
        assert found(Filter(ids=[])) == set()
        assert found(Filter(tags=["even"], since=3)) == {5}


def test_scores_say_where_they_come_from(memory: Memory) -> None:
    memory.add("a red lamp", trust=0.1)
    memory.add("a green lamp")
    hits = memory.recall("red lamp")
    weights = memory.learning.pipeline.weighting.weights
    for hit in hits:
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score)
        assert hit.event
        for factor in hit.factors:
            assert factor.weight == pytest.approx(weights[factor.name] * hit.event.trust)
    # The better match comes from a source that is hardly believed.
    assert [hit.event.text for hit in hits if hit.event] == ["a green lamp", "a red lamp"]
    assert memory.recall("red lamp", floor=2.0, sources=["dense"]) == []


def test_a_cue_may_bring_its_own_vector(memory: Memory) -> None:
    memory.add("one", vector=np.eye(16, dtype=np.float32)[0])
    memory.add("two", vector=np.eye(16, dtype=np.float32)[1])
    cue = Cue(vector=np.eye(16, dtype=np.float32)[1])
    (hit,) = memory.recall(cue, k=1)
    assert hit.event
    assert (hit.event.text, hit.distance, hit.similarity) == ("two", 0.0, 1.0)


def test_a_walk_over_links_goes_both_ways_and_ends(memory: Memory) -> None:
    a, b, c = (memory.add(f"event {n}").id for n in "abc")
    memory.link(a, b, "caused", weight=0.5, why="first")
    memory.link(b, c, "caused", weight=1.0, why="second")
    memory.link(c, a, "caused", weight=1.0, why="round", effect_first="allow")
    assert [(s.event.event_id, s.depth) for s in memory.why(c).steps] == [(b, 1), (a, 2)]
    assert [(s.event.event_id, s.depth) for s in memory.consequences(a).steps] == [(b, 1), (c, 2)]
    assert [s.event.event_id for s in memory.why(c, max_depth=1).steps] == [b]
    memory.link(a, b, "caused", weight=0.25, why="better known")
    assert [s.edge.why for s in memory.why(b, max_depth=1).steps] == ["better known"]
    for bad, error in (
        (lambda: memory.link(a, a), InvalidInputError),
        (lambda: memory.link(a, b, "temporal"), InvalidInputError),
        (lambda: memory.link(a, b, "nonsense"), UnknownError),
        (lambda: memory.link(a, b, "caused", weight=1.5), InvalidInputError),
        (lambda: memory.link(a, 99), UnknownError),
        (lambda: memory.why(99), UnknownError),
    ):
        with pytest.raises(error):
            bad()
    memory.forget(b)
    assert memory.why(c) == []


@pytest.mark.requirement("X8")
def test_another_embedder_is_refused_by_name(tmp_path: Path) -> None:
    Memory.open(tmp_path / "m", embedder=embedder()).close()
    with pytest.raises(SettingsMismatchError, match=r"cvx-lexical-1/16.*reembed"):
        Memory.open(tmp_path / "m", embedder=cvx.LexicalEmbedder(dim=32))
    with pytest.raises(SettingsMismatchError, match="metric"):
        Memory.open(tmp_path / "m", embedder=embedder(), metric="l2")


def test_the_default_embedder_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_warned", False)
    with warnings.catch_warnings():
        # Once, also where a warning is an error.
        warnings.simplefilter("error")
        with pytest.raises(LexicalOnlyWarning):
            Memory()
        Memory()
    monkeypatch.setattr(settings, "_warned", False)
    with pytest.warns(LexicalOnlyWarning, match="spelling"):
        Memory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory = Memory()
    assert memory.embedder.info()["semantic"] is False


def test_questions_that_make_no_sense_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInputError):
        memory.recall("x", 0)
    with pytest.raises(InvalidInputError):
        memory.recall("x", where={"outcome": "maybe"})
    with pytest.raises(InvalidInputError):
        memory.recall("x", sources=["stars"])
    with pytest.raises(UnknownError):
        memory.get(1)
    assert memory.recall("anything at all") == []


def test_a_closed_memory_says_so_and_a_missing_one_is_not_made(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "m", embedder=embedder())
    memory.close()
    memory.close()
    with pytest.raises(StoreError):
        memory.add("late")
    with pytest.raises(StoreNotFoundError):
        Memory.open(tmp_path / "none", embedder=embedder(), create=False)
    assert not (tmp_path / "none").exists()


@pytest.mark.requirement("V16")
def test_what_a_loop_of_the_memory_learns_is_found_by_the_memory(memory: Memory) -> None:
    run = memory.learning.active.begin("wash the cup", "clean")
    loop = memory.learning.active
    loop.act(loop.recall(Cue(step="at the sink")), "open tap")
    episode = loop.close(run, 1.0)
    assert [e.goal for e in memory.record.episodes()] == ["wash the cup"]
    assert episode.steps[0].node == 0
    assert texts(memory, "at the sink")[0].endswith("at the sink")
    assert len(memory) == 1


@pytest.mark.requirement("X6")
def test_an_event_has_an_id_for_life_and_may_have_a_name_of_its_own(memory: Memory) -> None:
    first = memory.add("page one", key="doc-1").id
    assert memory.get(key="doc-1").event_id == first
    other = memory.add("page one of another", key="doc-1", namespace="other").id
    assert memory.get(key="doc-1", namespace="other").event_id == other
    with pytest.raises(DuplicateKeyError, match="doc-1"):
        memory.add("page one again", key="doc-1", source="another")
    assert len(memory) == 2
    with pytest.raises(UnknownError, match="doc-2"):
        memory.get(key="doc-2")
    memory.erase(first)
    later = memory.add("page one, rewritten", key="doc-1").id
    assert (memory.get(key="doc-1").event_id, later > other) == (later, True)
