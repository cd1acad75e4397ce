"""Errors of a memory's verbs name what was given, and what to do instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import (
    ClockWarning,
    ExportError,
    InvalidInputError,
    NamespaceError,
    RecordIOError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Episode, Event


def test_one_event_that_cannot_be_stored_is_not_counted() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    with pytest.raises(InvalidInputError, match=r"^trust is 4.0: give a number in \[0, 1\]"):
        memory.add("the drain is small", trust=4.0)
    with pytest.raises(InvalidInputError, match=r"^event 1 of those given: trust is 4.0"):
        memory.add_many(["a mug", {"text": "a cup", "trust": 4.0}])


def test_among_episodes_an_event_is_counted_once() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    played = Episode(goal="find the hat", reward=1.0)
    with pytest.raises(InvalidInputError, match=r"^event 1 of those given: trust is 4.0"):
        memory.add_many([played, Event("a cup", trust=4.0)])


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk", encoding="utf-8")
    for path in (file, file / "memory"):
        with pytest.raises(RecordIOError, match=r"notes\.txt is a file: give the path of a folder"):
            Memory.open(path, embedder=LexicalEmbedder())
    assert file.read_text(encoding="utf-8") == "milk"


def test_an_export_taken_in_before_names_the_argument(tmp_path: Path) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("a mug")
    memory.admin.export(tmp_path / "all.jsonl")
    with pytest.raises(ExportError, match="again=True"):
        memory.admin.import_(tmp_path / "all.jsonl")


def test_a_reason_in_the_place_of_a_kind_says_where_reasons_go() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    rain, flood = memory.add("it rained"), memory.add("the cellar is under water")
    with pytest.raises(UnknownError, match=r"'the drain is small'.*why="):
        memory.link(rain, flood, "the drain is small")


@pytest.mark.parametrize("where", [{}, [{}], [{"kind": "note"}, {}], {"metadata": {}}])
def test_what_everything_passes_is_no_target(where: Any) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("a mug")
    for lose in (memory.forget, memory.erase, memory.admin.quarantine):
        with pytest.raises(InvalidInputError, match="everything is"):
            lose(where=where)
    assert [event.state for event in memory.events()] == ["active"]
    assert memory.forget(where={"outcome": "any"}) == [1]


def test_a_call_in_the_name_of_a_namespace_touches_no_other() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    own, others = memory.add("a mug", namespace="ana"), memory.add("a cup", namespace="bob")
    assert memory.update(own, text="a jug", namespace="ana").text == "a jug"
    shown = memory.context("a cup", namespace="bob")
    touches: list[Callable[[], object]] = [
        lambda: memory.update(others, text="mine", namespace="ana"),
        lambda: memory.link(own, others, namespace="ana"),
        lambda: memory.forget(others, namespace="ana"),
        lambda: memory.erase(others, namespace="ana"),
        lambda: memory.get(others, namespace="ana"),
        lambda: memory.feedback(shown, outcome=1.0, namespace="ana"),
    ]
    for touch in touches:
        with pytest.raises((NamespaceError, UnknownError)):
            touch()
    assert memory.get(others).text == "a cup"
    assert memory.get(others).state == "active"
    memory.feedback(shown, outcome=1.0, namespace="bob")


def test_within_none_is_refused_and_is_not_the_unnamed_namespace() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for wrong in (None, 7):
        with pytest.raises(InvalidInputError, match=f"^namespace is {wrong}: give a str"):
            memory.within(wrong)  # type: ignore[arg-type]
    assert memory.within("").add("it rained").namespace == ""


@pytest.mark.parametrize("add", ["add", "add_many"])
def test_seconds_in_the_place_of_microseconds_are_warned_of(add: str) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    given: dict[str, Any] = {"text": "a mug", "timestamp": 1_761_000_000}
    with pytest.warns(ClockWarning, match=r"1761000000 microseconds.*2025-10-20"):
        memory.add(**given) if add == "add" else memory.add_many([given])
    memory.add("a cup", timestamp=1_761_000_000_000_000)
