"""What ``Memory.add_many`` takes: events, episodes, mappings, texts and frames; all or none."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import EchoWarning, InvalidInputError, InvalidVectorError
from cvx.memory import Memory
from cvx.types import Episode, Event

ROWS: list[dict[str, Any]] = [
    {"text": "a mug", "tags": ["kitchen"], "entity": "ana", "timestamp": 5, "key": "mug"},
    {"text": "a lamp", "tags": [], "entity": None, "timestamp": 6, "key": None},
]


def in_ram() -> Memory:
    return Memory(embedder="lexical")


@pytest.mark.parametrize("kind", ["rows", "polars", "arrow"])
def test_mappings_and_frames_are_added_as_add_would(kind: str) -> None:
    frame = polars.DataFrame(ROWS)
    items = {"rows": ROWS, "polars": frame, "arrow": Arrow(ROWS)}[kind]
    one, many = in_ram(), in_ram()
    for row in ROWS:
        one.add(**{name: value for name, value in row.items() if value is not None})
    assert many.add_many(items).tolist() == [1, 2]
    for a, b in zip(one.events(), many.events(), strict=True):
        assert (a.text, a.tags, a.entity, a.timestamp, a.key) == (
            b.text, b.tags, b.entity, b.timestamp, b.key,
        )  # fmt: skip


class Arrow:
    """Looks like a table of Arrow, of which this is all that is used."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.rows


def test_texts_aliases_and_keys_that_are_there() -> None:
    memory = in_ram()
    memory.add("the key is under the pot", key="key")
    ids = memory.add_many([
        "a plain text", {"text": "the key hangs in the hall", "key": "key"},
        {"text": "the boiler", "aliases": ["hot water"]},
    ])  # fmt: skip
    assert ids[1] == 1
    assert [event.text for event in memory.get(1).history] == ["the key is under the pot"]
    assert memory.recall("hot water")[0].id == ids[2]


@pytest.mark.parametrize(
    "items",
    [
        "one text", {"text": "x"}, Event(text="x"), 3, [3], [{"words": "x"}], [{"tags": ["a"]}],
        [{"text": "fine"}, {"text": "x", "tags": "no list"}], [{"text": "x", "trust": 2.0}],
        ["fine", Episode("find", steps=(Event(text="a hall", action="go"),))],
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_refused_and_nothing_is(items: Any) -> None:
    memory = in_ram()
    with pytest.raises(InvalidInputError):
        memory.add_many(items)
    assert len(memory) == 0


def played(way: str, reward: float | None) -> Episode:
    steps = (Event(text="a hall", action=way),)
    return Episode("find the hat", task_type="hats", reward=reward, steps=steps)


def test_episodes_teach_as_if_they_had_been_played(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="lexical") as memory:
        ids = memory.add_many([played("left", 0.0), played("right", 1.0), played("right", 1.0)])
        assert [memory.get(one).action for one in ids] == ["left", "right", "right"]
    with Memory.open(tmp_path) as memory:
        episode = memory.episode("find the hat", task="hats")
        best = episode.advise("a hall", ["left", "right"]).best
        assert (best.action, best.trials) == ("right", 2)


def test_an_episode_that_fails_takes_all_back() -> None:
    memory = in_ram()
    with pytest.raises(InvalidInputError, match="event 1 of those given"):
        memory.add_many([played("left", 1.0), played("right", None)])
    assert len(memory) == 0
    options = memory.episode("find the hat", task="hats").advise("a hall", ["left", "right"])
    assert [one.trials for one in options] == [0, 0]


def test_a_bound_memory_names_no_other() -> None:
    ana = in_ram().within("ana")
    with pytest.raises(PermissionError):
        ana.add_many([{"text": "x", "namespace": "bob"}])
    (one,) = ana.add_many([{"text": "x", "vector": np.ones(ana.dim, np.float32)}])
    assert ana.get(one).namespace == "ana"


LONG = "The disk of db-3 is full: " + ", ".join(
    f"volume {n} holds {n} GB of logs" for n in range(12)
)
"""What nobody says twice word for word, of more than 300 characters."""


@pytest.mark.requirement("B3")
def test_what_is_said_again_of_ones_own_is_an_event_also_after_a_recall() -> None:
    memory = Memory(embedder=LexicalEmbedder(), clock="ticks")
    first = memory.add("I took my pill.", metadata={"speaker": "Mira"}, source="mira")
    assert memory.recall("did she take her pill?")[0].id == first.id
    own: list[dict[str, Any]] = [
        {"metadata": {"speaker": "Tobias"}}, {"source": "tobias"}, {"tags": ["health"]},
        {"kind": "observation"}, {"entity": "tobias"}, {"timestamp": 70}, {"salience": 0.5},
        {"trust": 0.5}, {"reward": 1.0}, {"action": "swallow"}, {"visibility": "public"},
        {"aliases": ["the tablet"]}, {"vector": np.ones(memory.dim, np.float32)},
    ]  # fmt: skip
    for said in ({}, *own):
        memory.recall("who took a pill?", k=50)
        added = memory.add("I took my pill.", **said)
        assert added.id == len(memory)
        assert (added.source, dict(added.metadata)) == (
            said.get("source", ""),
            said.get("metadata", {}),
        )
    ids = memory.add_many(["I took my pill."] * 2).tolist()
    assert ids == [len(memory) - 1, len(memory)]
    # Nor is a long text an echo where something is said with it.
    long = memory.add(LONG)
    memory.recall("is a disk full?")
    for said in own:
        assert memory.add(LONG, **said).id != long.id


@pytest.mark.requirement("B3")
def test_a_long_text_that_comes_back_alone_is_an_echo_and_said_to_be() -> None:
    memory = Memory(embedder=LexicalEmbedder(), clock="ticks")
    first = memory.add(LONG, timestamp=10)
    assert memory.add(LONG).id == 2, "nothing was recalled yet"
    memory.recall("is a disk full?")
    with pytest.warns(EchoWarning, match="event 1 says was recalled.*again=True"):
        assert memory.add(LONG).id in (first.id, 2)
    with pytest.warns(EchoWarning):
        more = memory.add_many([{"text": LONG, "timestamp": 80}, LONG]).tolist()
    assert more[0] == 3
    assert more[1] in (1, 2, 3)
    assert memory.add(LONG, again=True).id == 4
    assert len(memory) == 4


def test_a_vector_of_its_own_is_no_echo_of_a_recall() -> None:
    own = Memory(dim=2)
    held = own.add("a place", vector=np.array([1.0, 0.0]))
    assert own.recall(np.array([1.0, 0.0]))[0].id == held.id
    assert own.add("a place", vector=np.array([0.0, 1.0])).id != held.id
    with pytest.raises(InvalidVectorError):
        own.add("a place", vector=np.array([np.nan, 1.0]))


def test_values_of_numpy_are_metadata_as_those_of_python_are() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    made = memory.add(
        "the cart tipped over", metadata={"step": np.int64(3), "angle": [np.float32(0.5)]}
    )
    assert made.metadata == {"step": 3, "angle": [0.5]}
    assert type(made.metadata["step"]) is int
    for where in (np.int64(3), {"gte": np.int32(3)}, {"in": [np.int8(3)]}):
        assert [one.id for one in memory.events({"metadata": {"step": where}})] == [made.id]
