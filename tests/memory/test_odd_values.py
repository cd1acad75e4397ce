"""Whatever is given to a memory and its nouns: it is used, or refused by a typed error."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx
from cvx.characters import Cast
from cvx.embed import LexicalEmbedder
from cvx.errors import CvxError

DEEP: dict[str, Any] = {}
for _ in range(2000):
    DEEP = {"a": DEEP}
ODD: list[Any] = [
    None, "", " ", "9" * 5000,
    "\ud800", "a\0b", "rtl \u202e", b"bytes", 0, -1, 2**63, -(2**63) - 1, 10**400,
    1.5, float("nan"), float("inf"), True, [], [1], ["a"], {}, {"a": float("nan")}, {1: 2}, (), {1},
    object(), np.zeros(3), np.array([]), np.int64(1), np.float32(0.5), np.full(384, np.nan),
    datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), date(2020, 1, 1), len, type,
    cvx.Filter(), [cvx.Filter()], cvx.Cue("x"), range(3), ValueError("x"),
    np.ma.masked, DEEP, *(cvx.Cue(vector=odd) for odd in (b"x", "x", 1, [1.0], np.zeros((1, 2)))),  # type: ignore[arg-type]
]  # fmt: skip

# After these have worked, the next call gets a new thing.
CHANGING = {"forget", "erase", "episode", "advise", "act", "end"}

SCENE = ("location", "atmosphere", "time", "description")

Make = Callable[[], Any]


def a_memory() -> cvx.Memory:
    memory = cvx.Memory(embedder=LexicalEmbedder())
    rain = memory.add("it rained")
    memory.link(rain, memory.add("the cellar is under water", key="flood"))
    return memory


def a_cast() -> Cast:
    cast = Cast(a_memory())
    cast.seed(
        "Ann", description="a cook", archetype="a mother", background="a village",
        communication="curt", decision_style="quick", traits=["calm"], skills=["cooking"],
        values=["truth"],
    )  # fmt: skip
    return cast


# What is called: of which thing, which verb, and the arguments of a call that works.
VERBS: list[tuple[str, Make, str, tuple[Any, ...], dict[str, Any]]] = [
    ("memory", a_memory, "add", ("a text",), {}),
    ("memory", a_memory, "add_many", ([{"text": "a text"}],), {}),
    ("memory", a_memory, "update", (1,), {}),
    ("memory", a_memory, "link", (1, 2), {}),
    ("memory", a_memory, "forget", (1,), {}),
    ("memory", a_memory, "erase", (1,), {}),
    ("memory", a_memory, "get", (1,), {}),
    ("memory", a_memory, "events", (), {}),
    ("memory", a_memory, "recall", ("water",), {}),
    ("memory", a_memory, "context", ("water",), {}),
    ("memory", a_memory, "why", ("water",), {}),
    ("memory", a_memory, "consequences", ("rain",), {}),
    ("memory", a_memory, "feedback", (1,), {}),
    ("memory", a_memory, "within", ("other",), {}),
    ("memory", a_memory, "as_of", (1,), {}),
    ("memory", a_memory, "episode", ("a goal",), {}),
    ("causes", lambda: a_memory().causes, "propose", (2,), {}),
    ("causes", lambda: a_memory().causes, "observe", (1, 2), {}),
    ("causes", lambda: a_memory().causes, "story", (1,), {}),
    ("learning", lambda: a_memory().learning, "evaluate", ([("water", [2])],), {}),
    ("learning", lambda: a_memory().learning, "off_policy", ({},), {}),
    ("learning", lambda: a_memory().learning, "reset", ("feedback",), {}),
    ("frames", lambda: a_memory().frames, "events", (), {}),
    ("admin", lambda: a_memory().admin, "quarantine", (), {}),
    ("admin", lambda: a_memory().admin, "export", ("all.jsonl",), {}),
    ("admin", lambda: a_memory().admin, "import_", ("none.jsonl",), {}),
    ("admin", lambda: a_memory().admin, "roll_back", ("mail",), {}),
    ("admin", lambda: a_memory().admin, "trust", ("mail", 0.5), {}),
    ("episode", lambda: a_memory().episode("a goal"), "advise", ("a hall", ["go", "stay"]), {}),
    ("episode", lambda: a_memory().episode("a goal"), "act", ("go",), {}),
    ("episode", lambda: a_memory().episode("a goal"), "end", (1.0,), {}),
    ("cast", a_cast, "on_turn", ("Ann", "hello", 1), {}),
    ("cast", a_cast, "scene", (), dict.fromkeys(SCENE, "x")),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "verb", "right", "named"),
    [pytest.param(*rest, id=f"{noun}.{rest[1]}") for noun, *rest in VERBS],
)
def test_odd_values_are_used_or_refused_by_name(
    make: Make,
    verb: str,
    right: tuple[Any, ...],
    named: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    escaped = []
    thing = make()
    parameters = inspect.signature(getattr(thing, verb)).parameters.values()
    for place, parameter in enumerate(parameters):
        for odd in ODD:
            call = inspect.signature(getattr(thing, verb)).bind_partial(*right, **named)
            call.arguments[parameter.name] = (
                {"tags": odd} if parameter.kind is parameter.VAR_KEYWORD else odd
            )
            try:
                told = getattr(thing, verb)(*call.args, **call.kwargs)
                repr(told), str(told)
                thing = make() if verb in CHANGING else thing
            except CvxError:
                continue
            except Exception as error:
                escaped.append(
                    f"{verb}({parameter.name}={reprlib.repr(odd)}) [{place}]: {error!r:.100}"
                )
    assert not escaped, "\n".join(escaped)


def test_two_events_without_a_time_are_linked_as_told() -> None:
    memory = cvx.Memory(embedder=LexicalEmbedder())
    flood, rain = memory.add("the cellar is under water"), memory.add("it rained")
    memory.link(rain, flood)
    assert [event.id for event in memory.why(flood)] == [rain.id]
