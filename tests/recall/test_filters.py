"""What a filter of a memory lets pass, against a naive reading of it."""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.index import RawIndex
from cvx.memory import Memory
from cvx.types import Event, Filter, Where

KINDS, SOURCES, TAGS = ("note", "event", "line"), ("", "web", "ana"), ("trip", "home")
VALUES: tuple[Any, ...] = (None, True, False, 0, 1, 1.0, 2.5, -3, "", "1", "home", "true")
ORDER: dict[str, Any] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
NOTHING = object()


def is_it(value: Any, wanted: Any) -> bool:
    """Whether two values of JSON are the same: 1.0 is 1, and True is not."""
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def meets(value: Any, how: str, limit: Any) -> bool:
    if how in ORDER:
        kinds = (str,) if isinstance(limit, str) else (int, float)
        same = isinstance(value, kinds) and not isinstance(value, bool)
        return bool(same and ORDER[how](value, limit))
    if how == "exists":
        return bool((value is not NOTHING) == limit)
    if how == "in":
        return any(is_it(value, one) for one in limit)
    return is_it(value, limit) != (how == "ne")


def passes(event: Event, where: Mapping[str, Any]) -> bool:
    for field, own in (("kind", event.kind), ("source", event.source)):
        if field in where and own not in np.atleast_1d(where[field]):
            return False
    for key, asked in where.get("metadata", {}).items():
        conditions = asked if isinstance(asked, Mapping) else {"is": asked}
        value = event.metadata.get(key, NOTHING)
        if not all(meets(value, how, limit) for how, limit in conditions.items()):
            return False
    return (
        event.trust >= where.get("min_trust", 0.0)
        and set(np.atleast_1d(where.get("tags", ())).tolist()) <= set(event.tags)
        and where.get("since", 0) <= event.timestamp < where.get("until", 100)
    )


def random_condition(rng: random.Random) -> Any:
    match rng.choice(["is", "ne", "in", "exists", *ORDER]):
        case "is":
            return rng.choice(VALUES)
        case "in":
            return {"in": rng.sample(VALUES, 3)}
        case "exists":
            return {"exists": rng.random() < 0.5}
        case "ne":
            return {"ne": rng.choice(VALUES)}
        case how:
            return {how: rng.choice([0, 1, 2.5, "1", "h"]), "exists": True}


def random_filter(rng: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": rng.choice([*KINDS, ["note", "line"], []]),
        "source": rng.choice([*SOURCES, ["web", "ana"]]),
        "min_trust": rng.choice([0, 0.0, 0.2, 0.5, 0.9]),
        "tags": rng.choice(["trip", ["trip", "home"], ["home"]]),
        "since": rng.randrange(50),
        "until": rng.randrange(50, 100),
        "metadata": {key: random_condition(rng) for key in rng.sample("ab", rng.randrange(3))},
    }
    return {name: fields[name] for name in rng.sample(sorted(fields), rng.choice([1, 1, 2, 3]))}


@pytest.fixture(scope="module")
def filled() -> Memory:
    rng = random.Random(5)
    memory = Memory(embedder=LexicalEmbedder(16))
    memory.add_many(
        Event(
            entity_id=0,
            timestamp=rng.randrange(100),
            text=f"rain on day {number}",
            kind=rng.choice(KINDS),
            source=rng.choice(SOURCES),
            trust=rng.choice([0.1, 0.5, 1.0]),
            tags=tuple(rng.sample(TAGS, rng.randrange(3))),
            metadata={key: rng.choice(VALUES) for key in rng.sample("ab", rng.randrange(3))},
        )
        for number in range(150)
    )
    return memory


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("seed", range(150))
def test_every_verb_returns_exactly_what_passes_a_filter(filled: Memory, seed: int) -> None:
    rng = random.Random(seed)
    asked = [random_filter(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    where: Where = asked[0] if len(asked) == 1 else [Filter(**asked[0]), *asked[1:]]
    expected = {
        event.id for event in filled.record.events() if any(passes(event, one) for one in asked)
    }
    assert {event.id for event in filled.events(where)} == expected
    for source in ("dense", "lexical"):
        hits = filled.recall("rain", 200, where=where, sources=[source], floor=-2.0)
        assert {hit.event.id for hit in hits if hit.event} == expected


def test_a_raw_index_says_what_only_a_memory_knows() -> None:
    index = RawIndex(2)
    index.insert(0, 1, [1.0, 0.0], tags=["a"])
    index.insert(0, 2, [0.0, 1.0], recallable=False)
    for where in (Filter(kind="note"), Filter(metadata={"a": 1}), Filter(min_trust=0.5)):
        with pytest.raises(InvalidInputError, match=r"ask a cvx\.Memory"):
            index.search([1.0, 0.0], where=where)
    found = [
        index.search([1.0, 0.0], where=Filter(outcome=outcome))[0].tolist()
        for outcome in ("success", "failure", "any")
    ]
    assert found == [[0], [1], [0, 1]]
    assert index.search([1.0, 0.0], where=Filter(tags="a", ids=0))[0].tolist() == [0]
    with pytest.raises(InvalidInputError, match=r"^where\.outcome is 'won'"):
        index.search([1.0, 0.0], where=Filter(outcome="won"))


@pytest.mark.parametrize(
    "where",
    [
        {"metadata": {"a": 2**64}},
        {"metadata": {"a": {"gt": 2**64}}},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": "half \ud800"}},
        {"metadata": {"half \ud800": 1}},
        {"metadata": {str(n): n for n in range(200)}},
        {"metadata": {"a": {"exists": 1}}},
        {"ids": 2**70},
        {"ids": True},
        {"entities": [2**70]},
        {"entities": True},
        {"tags": ["half \ud800"]},
        {"tags": [f"t{n}" for n in range(3000)]},
        {"kind": "half \ud800"},
    ],
)
def test_odd_filters_are_refused_by_their_names(filled: Memory, where: dict[str, Any]) -> None:
    (name,) = where
    for verb in (filled.events, lambda where: filled.recall("rain", where=where)):
        with pytest.raises(InvalidInputError, match=rf"^where\.{name}"):
            verb(where)


def test_a_long_list_of_values_is_a_filter(filled: Memory) -> None:
    many = list(range(100_000))
    expected = [event.id for event in filled.events() if is_it(event.metadata.get("a", ""), 1)]
    expected += [event.id for event in filled.events() if is_it(event.metadata.get("a", ""), 0)]
    found = filled.events({"metadata": {"a": {"in": many}}})
    assert sorted(event.id for event in found) == sorted(expected)
