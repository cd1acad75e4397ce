"""The nouns: immutable, small, and a hit that is read by attribute or by item."""

import dataclasses
import json
import sys
from typing import Any

import numpy as np
import pytest

import cvx
from cvx.memory import Memory
from cvx.types import Cue, Decision, Edge, Episode, Event, Factor, Filter, Hit, Region, Step

HIT = Hit(
    node=3,
    distance=0.25,
    score=0.75,
    similarity=0.75,
    entity_id=1,
    timestamp=9,
    reward=1.0,
    action="open fridge 1",
)
NOUNS = [
    Event(timestamp=0),
    Episode(),
    Edge(0, 1, "caused"),
    Region(0, 1, 0),
    Cue(),
    HIT,
    Decision(0, Cue(), ()),
    Filter(),
    Step(0, 0, 0, None, None),
    Factor("similarity", 1.0, 1.0, 1.0),
]


@pytest.mark.requirement("V13")
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Hit)])
def test_a_hit_is_read_by_item_as_by_attribute(name: str) -> None:
    assert HIT[name] is getattr(HIT, name)


@pytest.mark.requirement("V13")
def test_a_hit_knows_its_node_by_both_names() -> None:
    assert HIT["node_id"] == HIT.node_id == HIT["node"] == 3


def test_an_unknown_item_of_a_hit_is_a_key_error_that_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"score.*node_id"):
        HIT["nodeid"]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_nouns_are_immutable_and_slim(noun: Any) -> None:
    first = getattr(noun, "_fields", None) or [field.name for field in dataclasses.fields(noun)]
    with pytest.raises(AttributeError):
        setattr(noun, first[0], None)
    assert not hasattr(noun, "__dict__")


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_nouns_equal_their_copies_and_can_be_keys(noun: Any) -> None:
    copy = type(noun)(*noun) if isinstance(noun, tuple) else dataclasses.replace(noun)
    if not isinstance(noun, Filter):
        assert {noun: 1}[copy] == 1
    assert copy == noun


def test_an_episode_is_closed_once_it_has_a_reward() -> None:
    open_one = Episode(
        entity_id=0,
        steps=(Event(timestamp=0, action="go"), Event(timestamp=1)),
    )
    assert not open_one.closed
    assert dataclasses.replace(open_one, reward=0.0).closed
    assert open_one.actions == ("go",)


@pytest.mark.parametrize("name", cvx.__all__)
def test_every_public_name_loads(name: str) -> None:
    value = getattr(cvx, name)
    assert value is getattr(sys.modules["cvx"], name)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        cvx.Nothing  # noqa: B018


def test_events_and_hits_are_mappings_that_json_can_hold() -> None:
    memory = Memory(embedder="lexical")
    memory.add("a mug on a shelf", key="mug", entity="ana", metadata={"room": "kitchen"})
    event, hit = memory.get(key="mug"), memory.recall("mug")[0]
    for one in (event, hit):
        told = json.loads(json.dumps(dict(one)))
        assert told["id"] == event.id
        assert told["text"] == one["text"] == "a mug on a shelf"
        assert "text" in one
        assert "vector" in one
        assert "no such" not in one
    assert hit["event"] == event
    assert "score" in dict(hit)
    np.testing.assert_array_equal(event["vector"], event.vector)
