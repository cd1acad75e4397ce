"""Whatever is given to a public method of a memory: it works, or is refused by name."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx
from cvx.embed import LexicalEmbedder
from cvx.errors import (
    CvxError,
    InvalidInputError,
)
from cvx.memory import Memory
from cvx.memory.situation import Situation, situation_context
from cvx.recall.context import Serving
from cvx.types import Edge, Event, Filter
from tests.store.facade import memory

__all__ = ["memory"]

WRONG: tuple[Any, ...] = (
    None, True, -1, 3.5, math.nan, 2**70, "", "no such", b"x", (1, "a"), [], [None], [object()],
    {}, {"a": object()}, object(), np.zeros(3),
)  # fmt: skip
GIVEN: dict[str, Any] = {
    "edge": Edge(1, 2),
    "cause": 1,
    "cue": "rain",
    "shown": 0,
    "decision": 0,
    "effect": 2,
    "embedder": LexicalEmbedder(24),
    "event": 1,
    "event_or_words": 1,
    "key": "rain",
    "name": "my_kind",
    "names": ["dense"],
    "items": [Event(timestamp=1, text="x")],
    "namespace": "ana",
    "questions": [("rain", 1), ("cellar", 2), ("mug", 3), ("cup", 3), ("night", 1)],
    "recorded": 10**18,
    "value": 0.5,
    "situation": Situation(("Ann",)),
    "source": "a",
    "text": "a text",
    "texts": ["a word"],
}

STALE_AFTER = Serving().stale_after
NOUNS = ("causes", "learning", "frames", "admin")
# Those of files and of sampled choices have tests of their own.
NO_ARGUMENT = {"open", "close", "loop", "export", "import_", "off_policy"}


def filled() -> Memory:
    memory = Memory(embedder=LexicalEmbedder(16))
    rain = memory.add("it rained all night", key="rain", source="a")
    flood = memory.add("the cellar is under water")
    memory.add("a mug", entity="3", aliases=["cup"])
    memory.link(rain, flood, "caused", why="the drain is too small")
    memory.context("rain")
    return memory


def methods() -> dict[str, Any]:
    """Every public method of a memory and of its nouns, by its name."""
    made = Memory(embedder=LexicalEmbedder(16))
    owners = {"": made, **{f"{noun}.": getattr(made, noun) for noun in NOUNS}}
    return {
        before + name: getattr(owner, name)
        for before, owner in owners.items()
        for name, _ in inspect.getmembers(type(owner), callable)
        if not name.startswith("_") and name not in NO_ARGUMENT
    }


def parameters() -> Iterator[tuple[str, str]]:
    for name, method in methods().items():
        for parameter in inspect.signature(method).parameters:
            yield name, parameter


def needed(name: str, parameter: str) -> dict[str, Any]:
    if name == "get":
        return {} if parameter == "event" else {"key": "rain"}
    required = {
        parameter.name
        for parameter in inspect.signature(methods()[name]).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    }
    given = {"events": [1], **GIVEN}
    return {one: given[one] for one in required}


@pytest.mark.parametrize(("name", "parameter"), list(parameters()))
def test_every_argument_of_every_method_works_or_is_refused_and_then_changes_nothing(
    name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of the wrong values is a good path.
    monkeypatch.chdir(tmp_path)
    refusals = []
    memory = filled()
    before = memory.record.tail()
    for value in WRONG:
        try:
            attrgetter(name)(memory)(**{**needed(name, parameter), parameter: value})
        except CvxError as error:
            refusals.append((str(error), memory.record.tail() == before))
        else:
            memory = filled()
            before = memory.record.tail()
    assert refusals
    for said, unchanged in refusals:
        assert unchanged, said
        assert re.search(r": \w+", said), f"no cure is named: {said}"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("path", value) for value in (None, 3, b"x", ["a"])),
        *(("embedder", value) for value in (3, object())),
        *(("metric", value) for value in ("euclid", 3)),
        *(("seed", value) for value in (None, -1, 2.5, "x", 2**70)),
        *((name, value) for name in ("create", "read_only") for value in (None, "no")),
        *((name, value) for name in ("clock", "preset", "tokenizer") for value in (3, len)),
    ],
)
def test_a_wrong_option_of_opening_makes_no_store(
    tmp_path: Path, option: str, value: object
) -> None:
    options: dict[str, Any] = {"path": tmp_path / "m", "embedder": LexicalEmbedder(16)}
    with pytest.raises(InvalidInputError, match=f"^{option} is "):
        Memory.open(**{**options, option: value})
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "field",
    [
        {"since": "x"},
        {"until": 2.5},
        {"entities": [1]},
        {"ids": "12"},
        {"ids": [None]},
        {"tags": [3]},
        {"min_reward": math.nan},
        {"max_reward": "high"},
        {"recallable": "yes"},
        {"kind": 3},
        {"source": [b"x"]},
        {"metadata": "topic"},
        {"metadata": {3: "x"}},
        {"metadata": {"topic": ["home"]}},
        {"metadata": {"topic": {"like": "h%"}}},
        {"metadata": {"topic": {"in": "home"}}},
        {"metadata": {"topic": {"exists": 1}}},
        {"min_trust": "much"},
        {"outcome": "won"},
    ],
)
def test_a_filter_with_a_field_of_another_type_is_refused_by_its_name(
    memory: Memory, field: dict[str, Any]
) -> None:
    (name,) = field
    with pytest.raises(InvalidInputError, match=rf"^where\.{name}"):
        memory.recall("rain", where=Filter(**field))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda m: m.recall("rain", k="3"),
            InvalidInputError,
            "k is '3': give an int of at least 1",
        ),
        (
            lambda m: m.recall("rain", where={"colour": "red"}),
            InvalidInputError,
            "a field of where is 'colour': give one of since, until",
        ),
        (lambda m: m.context("rain", k=2.5), InvalidInputError, "k is 2.5: give an int"),
        (
            lambda m: situation_context(m, None),  # type: ignore[arg-type]
            InvalidInputError,
            "situation is None: give a Situation",
        ),
        (lambda m: m.feedback(None), InvalidInputError, "shown is None: give what context"),
        (lambda m: m.admin.budget(events="5"), InvalidInputError, "events is '5': give an int"),
        (lambda m: m.admin.budget(bytes=0.5), InvalidInputError, "bytes is 0.5: give an int"),
        (lambda m: m.as_of("x"), InvalidInputError, "recorded is 'x': give an int"),
        (lambda m: m.as_of(2**70), InvalidInputError, f"recorded is {2**70}: give one of 64"),
        (lambda m: m.add_many("abc"), InvalidInputError, "items are 'abc': give a list of Events"),
        (lambda m: m.add_many(7), InvalidInputError, "items are 7: give a list of Events"),
        (
            lambda m: m.add_many(
                [
                    Event(timestamp=1, text="x"),
                    Event(timestamp=1, text="y", vector=np.array(["a"])),
                ]
            ),
            InvalidInputError,
            "event 1 of those given: the vector is array(['a'], dtype='<U1'): give 16 numbers",
        ),
        (
            lambda m: m.add_many([Event(timestamp=1, text="x")] * 2, aliases=[["w"], ["w", 3]]),
            InvalidInputError,
            "aliases[1] is ['w', 3]: give a list of str",
        ),
        (
            lambda m: m.forget([1, "2"]),
            InvalidInputError,
            "events[1] is '2': give an event, a hit or an id; get(key=...) finds what has a key",
        ),
        (lambda m: m.forget("rain"), InvalidInputError, "events is 'rain': give an event, a hit"),
        (lambda m: m.get("rain"), InvalidInputError, "event is 'rain': give an event, a hit"),
        (lambda m: m.link("a", "b"), InvalidInputError, "cause is 'a': give an event, a hit"),
        (
            lambda m: m.add("x", timestamp=np.datetime64("2024-01-01")),
            InvalidInputError,
            "timestamp is np.datetime64('2024-01-01'): give an int or a datetime with a time zone",
        ),
        (lambda m: m.link(1, 2, weight="x"), InvalidInputError, "weight is 'x': give a number"),
        (
            lambda m: m.update(1, aliases="abc"),
            InvalidInputError,
            "aliases is 'abc': give a list",
        ),
    ],
)
def test_the_error_says_what_was_given_and_what_to_give(
    memory: Memory, call: Callable[[Memory], object], error: type[Exception], said: str
) -> None:
    memory.add("it rained all night")
    memory.add("the cellar is under water")
    before = memory.record.tail()
    with pytest.raises(error, match=f"^{re.escape(said)}"):
        call(memory)
    assert memory.record.tail() == before


def test_numbers_of_numpy_are_numbers(memory: Memory) -> None:
    memory.add("it rained all night")
    memory.add("the cellar is under water")
    one, two = np.array([1, 2])
    memory.link(one, two, weight=np.float32(0.5))  # type: ignore[arg-type]
    assert [step.edge.weight for step in memory.why(two).steps] == [0.5]
    assert memory.get(one).text == "it rained all night"
    assert len(memory.recall("rain", k=one)) == 1
    assert memory.admin.budget(events=one).events_left == 1
    memory.forget(np.array([1, 2]))
    assert len(memory) == 0


class Failing:
    """An embedder that has no answer any more."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = told

    def info(self) -> Mapping[str, Any]:
        return self.told

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise ConnectionError(f"no answer for {len(texts)} texts")


def test_warnings_name_the_line_of_the_caller(memory: Memory) -> None:
    # Long before they are written down: what gets the time of its writing may be told in any order.
    late = memory.add("late", timestamp=-2_000_000)
    early = memory.add("early", timestamp=-3_000_000)
    with pytest.warns(cvx.errors.EffectFirstWarning) as said:
        memory.link(late, early, effect_first="flag")
    for turn in range(STALE_AFTER - 1):
        memory.context(cvx.Cue(text="late", place=turn))
    with pytest.warns(cvx.errors.StaleCueWarning) as stale:
        memory.context(cvx.Cue(text="late", place=STALE_AFTER))
    memory._shared.embedder = Failing(memory.embedder.info())
    with pytest.warns(cvx.errors.EmbedderWarning) as failed:
        memory.recall("early")
    assert {said[0].filename, stale[0].filename, failed[0].filename} == {__file__}
