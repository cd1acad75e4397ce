"""How a memory is opened, and what its verbs take: settings of the store, times, targets, items."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
    SettingsMismatchError,
    UnknownError,
)
from cvx.index import RawIndex
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.store import doctor
from cvx.types import Cue, Filter
from tests.store.facade import memory
from tests.store.processes import embedder

__all__ = ["memory"]


def test_a_store_is_opened_again_without_its_settings(tmp_path: Path) -> None:
    for name, given in (
        ("plain", {"embedder": LexicalEmbedder(32)}),
        ("by name", {"embedder": "lexical:48", "metric": "ip"}),
        ("own", {"dim": 3}),
    ):
        vector = np.array([1.0, 0.0, 0.0], dtype=np.float32) if name == "own" else None
        with Memory.open(tmp_path / name, **given) as made:
            made.add("a mug on the shelf", vector=vector)
            meant = made.embedder.info(), made.metric
        with Memory.open(tmp_path / name) as again:
            assert (again.embedder.info(), again.metric) == meant
            cue = Cue(text="mug", vector=vector)
            assert [hit.text for hit in again.recall(cue)] == ["a mug on the shelf"]
    with pytest.raises(SettingsMismatchError, match="lexical"):
        Memory.open(tmp_path / "plain", embedder=LexicalEmbedder(64))
    with pytest.raises(SettingsMismatchError, match="metric"):
        Memory.open(tmp_path / "plain", metric="l2")
    with pytest.raises(InvalidInputError, match="dim is 3, but an embedder is given too"):
        Memory(embedder=embedder(), dim=3)
    for odd in ("", " ", LexicalEmbedder):
        with pytest.raises(InvalidInputError, match=r"^embedder is"):
            Memory(embedder=odd)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="give lexical"):
        Memory.open(tmp_path / "new", embedder="no-such-thing")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("odd", [None, 3, 1.5, b"m", "", " ", "a\0b", "x" * 5000, object(), ["m"]])
def test_what_no_folder_can_be_called_is_refused_by_name(tmp_path: Path, odd: Any) -> None:
    for name, call in (
        ("path", Memory.open),
        ("path", doctor.check),
        ("path", lambda path: doctor.repair(path, tmp_path / "new")),
        ("target", lambda path: doctor.repair(tmp_path, path)),
    ):
        with pytest.raises(InvalidInputError, match=f"^{name} is .*: give the path of a folder"):
            call(odd)
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_argument_and_no_endless_number(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"^task is 0: give a str"):
        memory.episode(task=0)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInputError, match=r"^reach is 1000000000[0-9]*\.\.\.[0-9]*: give"
    ) as caught:
        Pipeline(reach=10**100)
    assert len(str(caught.value)) < 100


def test_an_embedder_that_a_store_cannot_make_is_asked_for(tmp_path: Path) -> None:
    class Ours(LexicalEmbedder):
        def info(self) -> dict[str, object]:
            return {**super().info(), "id": "ours"}

    Memory.open(tmp_path / "m", embedder=Ours(16)).close()
    with pytest.raises(SettingsMismatchError, match=r"are of ours.*give it as embedder="):
        Memory.open(tmp_path / "m")


def test_without_an_embedder_every_event_brings_its_vector() -> None:
    memory = Memory(dim=2)
    assert memory.metric == "l2"
    near = memory.add("near", vector=np.array([0, 1], dtype=np.float32))
    memory.add("far", vector=np.array([9, 9], dtype=np.float32))
    (hit, _) = memory.recall(Cue(vector=np.array([0, 2], dtype=np.float32)), sources=["dense"])
    assert (hit.event, hit.distance) == (near, 1.0)
    with pytest.raises(InvalidVectorError, match="give a vector with it"):
        memory.add("without one")
    with pytest.raises(InvalidVectorError):
        memory.add("of another length", vector=np.array([1], dtype=np.float32))
    assert [hit.text for hit in memory.recall("near")] == ["near"]


def test_times_may_be_datetimes_with_a_zone(memory: Memory) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    event = memory.add("lunch", timestamp=noon)
    assert event.timestamp == 1_795_348_800_000_000
    tea = memory.add(
        "tea", timestamp=noon.astimezone(timezone(timedelta(hours=9))) + timedelta(hours=4)
    )
    assert tea.timestamp - event.timestamp == 4 * 3600 * 10**6
    for where in (Filter(since=noon + timedelta(hours=1)), {"since": noon + timedelta(hours=1)}):
        assert [one.text for one in memory.events(where)] == ["tea"]
    assert memory.as_of(datetime(2200, 1, 1, tzinfo=UTC)).get(tea).text == "tea"
    naive = datetime(2026, 11, 22)
    with pytest.raises(InvalidInputError, match=r"^timestamp is .*with a time zone"):
        memory.add("when?", timestamp=naive)
    with pytest.raises(InvalidInputError, match=r"^where\.until is .*with a time zone"):
        memory.events({"until": naive})
    with pytest.raises(InvalidInputError, match=r"^recorded is .*with a time zone"):
        memory.as_of(naive)


@pytest.mark.requirement("B8")
def test_what_is_forgotten_or_erased_may_be_said_by_a_filter(memory: Memory) -> None:
    web = [memory.add(f"from the web {n}", source="web", metadata={"n": n}).id for n in range(4)]
    mine = memory.add("my own")
    other = memory.add("of another", source="web", namespace="other")
    few = {"source": "web", "metadata": {"n": {"lt": 2}}}
    assert memory.forget(where=few, dry_run=True) == web[:2]
    assert len(memory) == 6
    assert memory.forget(where=few) == web[:2]
    assert [memory.get(event).state for event in web] == ["archived"] * 2 + ["active"] * 2
    assert memory.erase(where={"source": "web"}, dry_run=True) == [*web]
    assert memory.erase(where={"source": "web"}) == [*web]
    assert [event.id for event in memory.record.events()] == [mine.id, other.id]
    assert memory.forget([]) == []
    assert memory.forget([mine, mine], dry_run=True) == [mine.id]
    for verb in (memory.forget, memory.erase):
        with pytest.raises(UnknownError, match="99"):
            verb([mine, 99], dry_run=True)
    for verb in (memory.forget, memory.erase):
        with pytest.raises(InvalidInputError, match="give one of them"):
            verb()
        with pytest.raises(InvalidInputError, match="give one of them"):
            verb(mine, where=few)
    assert memory.get(mine).state == "active"


def test_hits_and_events_are_mappings_too(memory: Memory) -> None:
    memory.add("the spare key", metadata={"room": "hall"}, tags=["key"], source="note")
    (hit,) = memory.recall("key")
    event = hit.event
    assert event is not None
    for name in ("text", "metadata", "tags", "source", "id", "recorded"):
        assert name in hit
        assert hit[name] == getattr(hit, name) == getattr(event, name)
    told = dict(hit)
    assert (told["score"], told["text"], told["node_id"]) == (hit.score, event.text, hit.node)
    assert dict(event)["text"] == event["text"] == "the spare key"
    assert ("text" in event, "colour" in event, "colour" in hit) == (True, False, False)
    with pytest.raises(KeyError, match="colour"):
        hit["colour"]
    with pytest.raises(AttributeError, match="colour"):
        hit.colour  # noqa: B018
    assert copy.copy(hit) == pickle.loads(pickle.dumps(hit)) == hit
    index = RawIndex(2)
    index.insert(0, 1, [1.0, 0.0])
    (bare,) = index.causal_search([1.0, 0.0], k=1)
    assert "text" not in bare
    with pytest.raises(AttributeError, match="'text'"):
        bare.text  # noqa: B018


def test_a_store_opened_by_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open("notes", embedder=LexicalEmbedder()) as memory:
        memory.add("the key is under the pot")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        memory.add("the drain was full")
        memory.admin.snapshot()
        assert memory.as_of(memory.record.now()).recall("key")
    with Memory.open(tmp_path / "notes") as memory:
        assert len(memory) == 2
    assert list(Path().iterdir()) == []
