"""A memory bound to a namespace: the same verbs, and nothing of anybody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import (
    InvalidInputError,
    NamespaceError,
    StoreError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Cue, Event
from tests.store.facade import memory

__all__ = ["memory"]

SHARED = 1
"""The first event of a store."""


@pytest.mark.requirement("B3")
def test_what_is_bound_writes_and_reads_in_its_own_name(memory: Memory) -> None:
    ana, bob = memory.within("ana"), memory.within("bob", also=["ana"])
    key = ana.add("the spare key is under the green pot", key="key")
    shared = ana.add("the shed key hangs in the hall", visibility="shared")
    (batch,) = ana.add_many([Event(timestamp=1, text="the key of the safe")])
    assert {event.namespace for event in (key, shared, ana.get(batch))} == {"ana"}
    assert ana.get(key="key") == key
    assert [event.id for event in ana.events()] == [batch, key.id, shared.id]
    assert (len(ana), len(bob), len(memory)) == (3, 1, 3)
    assert [hit.event for hit in bob.recall("where is the key?")] == [shared]
    assert bob.get(shared) == shared
    assert "shed" in bob.context("where is the key?")
    assert memory.within("bob").recall("where is the key?") == []
    assert memory.recall("shed key", namespace="ana")[0].event == shared
    assert ana.within("ana").get(key) == key
    assert repr(ana).endswith(", within 'ana'>")
    ana.close()
    assert ana.get(key) == key


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    "call",
    [
        lambda bob: bob.recall("key", namespace="ana"),
        lambda bob: bob.context("key", namespace="ana"),
        lambda bob: bob.events(namespace="ana"),
        lambda bob: bob.why(SHARED, namespace="ana"),
        lambda bob: bob.add("x", namespace="ana"),
        lambda bob: bob.add_many([Event(timestamp=1, text="x", namespace="ana")]),
        lambda bob: bob.get(key="key", namespace="ana"),
        lambda bob: bob.update(SHARED, metadata={"a": 1}),
        lambda bob: bob.link(SHARED, bob.add("x")),
        lambda bob: bob.forget(SHARED),
        lambda bob: bob.erase([SHARED]),
        lambda bob: bob.within("ana"),
        lambda bob: bob.within("bob", also=["eve"]),
        lambda bob: bob.admin,
        lambda bob: bob.frames,
        lambda bob: bob.learning.loop(),
        lambda bob: bob.learning.active,
        lambda bob: bob.record,
        lambda bob: bob.index,
        lambda bob: bob.causes.graph().link(SHARED, 2),
        lambda bob: bob.learning.recall_with({"dense": 1.0}),
        lambda bob: bob.learning.calibration(),
        lambda bob: bob.learning.logged_choices(["dense"]),
        lambda bob: bob.learning.candidates("key", namespace="ana"),
        lambda bob: bob.causes.graph(namespace="ana"),
        lambda bob: bob.causes.propose(SHARED),
        lambda bob: bob.causes.observe(SHARED, SHARED),
        lambda bob: bob.causes.reflect(namespace="ana"),
    ],
)
def test_what_is_bound_can_name_nobody_else(
    memory: Memory, call: Callable[[Memory], object]
) -> None:
    shared = memory.add("the key", key="key", namespace="ana", visibility="shared")
    memory.add("another key", namespace="ana", visibility="shared")
    with pytest.raises(NamespaceError, match="bound to 'bob'"):
        call(memory.within("bob", also=["ana"]))
    assert memory.get(SHARED) == shared
    assert {event.namespace for event in memory.events(namespace="ana")} == {"ana"}


@pytest.mark.requirement("B3")
def test_what_is_private_is_unknown_to_others(memory: Memory) -> None:
    ana, bob = memory.within("ana"), memory.within("bob")
    secret, flood = ana.add("it rained all night"), ana.add("the cellar is under water")
    ana.link(secret, flood)
    block = ana.context("rain", k=2)
    assert block.decision is not None
    number = block.decision
    loop = memory.learning.loop(namespace="ana")
    run = loop.begin("dry the cellar")
    decision = loop.recall(Cue(step="the cellar"))
    loop.act(decision, "pump")
    loop.close(run, 1.0)
    unknown: list[Callable[[], object]] = [
        lambda: bob.get(secret),
        lambda: bob.why(flood),
        lambda: bob.consequences(secret),
        lambda: bob.forget(secret),
        lambda: bob.erase(secret),
        lambda: bob.update(secret, metadata={"a": 1}),
        lambda: bob.link(secret, flood),
        lambda: bob.learning.decisions_with(secret),
        lambda: bob.causes.propose(flood),
    ]
    for call in unknown:
        with pytest.raises(UnknownError):
            call()
    undecided: list[Callable[[], object]] = [
        lambda: bob.feedback(block, helped=True),
        lambda: bob.feedback(number, helped=True),
        lambda: bob.learning.attribution(number),
        lambda: bob.learning.attribution(decision),
    ]
    for call in undecided:
        with pytest.raises(UnknownError, match="there is no decision"):
            call()
    assert ana.learning.attribution(decision).outcome == 1.0
    ana.feedback(number, helped=True)
    assert [edge.event for edge in ana.why(flood).steps] == [secret]


def test_within_holds_for_the_past_and_for_what_is_awaited(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder(16)) as memory:
        mine = memory.within("ana").add("a mug")
        memory.add("a mug", namespace="bob")
        past = memory.within("ana").as_of(memory.record.now())
        assert [event.id for event in past.events()] == [mine.id]
        past.close()
        with pytest.raises(StoreError):
            past.events()
        past = memory.within("ana").as_of(memory.record.now())
        with pytest.raises(NamespaceError):
            past.events(namespace="bob")
        with pytest.raises(InvalidInputError, match="also is 'bob'"):
            memory.within("ana", also="bob")
