"""A LangGraph store over a memory does what LangGraph's own store in memory does."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from cvx.errors import InvalidInputError
from cvx.memory import Memory

pytest.importorskip("langgraph")

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from cvx.integrations.langgraph import MemoryStore

PARTS = ("ana", "bob", "notes", "été")
WORDS = ("peanut", "harbour", "violin", "snow", "ledger", "lantern")


def told(found: Any) -> Any:
    """Return what does not depend on clocks, scores and the order of equals."""
    if isinstance(found, Item):
        return found.namespace, found.key, found.value
    if isinstance(found, list):
        return sorted((told(one) for one in found), key=repr)
    return found


def path(rng: random.Random, least: int = 1) -> tuple[str, ...]:
    return tuple(rng.choices(PARTS, k=rng.randint(least, 3)))


def value(rng: random.Random) -> dict[str, Any]:
    words = " ".join(rng.choices(WORDS, k=3))
    return {"text": words, "n": rng.randint(0, 5), "in": {"list": [rng.randint(0, 2), None, words]}}


def operation(rng: random.Random) -> Op:
    drawn = rng.random()
    if drawn < 0.45:
        new = None if rng.random() < 0.2 else value(rng)
        index: Any = rng.choice([None, None, False, ["text"], ["in.list[*]"], ["missing"]])
        return PutOp(path(rng), rng.choice("abc"), new, index)
    if drawn < 0.6:
        return GetOp(path(rng), rng.choice("abc"))
    if drawn < 0.75:
        ways = (
            None,
            MatchCondition("prefix", (rng.choice(PARTS),)),
            MatchCondition("suffix", ("*", rng.choice(PARTS))),
        )
        chosen = rng.choice(ways)
        depth = rng.choice([None, 1, 2])
        return ListNamespacesOp(None if chosen is None else (chosen,), depth, 100, 0)
    asked = rng.choice(
        [
            None,
            {"n": rng.randint(0, 5)},
            {"n": {"$gte": 2, "$lt": 5}},
            {"n": {"$ne": 3}, "in": {"list": [1, None, {"$ne": "x"}]}},
            {"text": "no such text"},
        ]
    )
    return SearchOp(path(rng, least=0), asked, 100, 0, rng.choice([None, rng.choice(WORDS)]))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_random_batches_agree_with_the_store_in_memory(asynchronous: bool, tmp_path: Path) -> None:
    rng, twin = random.Random(7), InMemoryStore()
    memory = Memory.open(tmp_path / "store", embedder="lexical")
    store = MemoryStore(memory)
    answered = 0
    for number in range(60):
        batch = [operation(rng) for _ in range(rng.randint(1, 6))]
        ours = asyncio.run(store.abatch(batch)) if asynchronous else store.batch(batch)
        for op, one in zip(batch, ours, strict=True):
            if not isinstance(op, PutOp):
                # Its list of namespaces names some that hold nothing.
                for gone in [name for name, items in twin._data.items() if not items]:
                    del twin._data[gone]
                assert told(one) == told(twin.batch([op])[0]), op
                answered += bool(one)
        twin.batch([op for op in batch if isinstance(op, PutOp)])
        if number % 20 == 19:
            memory.close()
            memory = Memory.open(tmp_path / "store")
            store = MemoryStore(memory)
    memory.close()
    assert answered > 40


def test_what_is_asked_for_in_words_comes_first() -> None:
    store = MemoryStore(Memory(embedder="lexical"), fields=["text"])
    for number, word in enumerate(WORDS):
        store.put(("users", "ana"), str(number), {"text": f"about the {word}", "secret": "harbour"})
    store.put(("users", "ana"), "unsearched", {"text": "snow snow snow"}, index=False)
    found = store.search(("users",), query="snow", limit=3)
    assert (found[0].value["text"], len(found)) == ("about the snow", 3)
    assert (found[0].score or 0.0) > (found[1].score or 0.0)
    assert store.search(("users",), query="harbour", limit=1)[0].value["text"].endswith("harbour")
    every = store.search(("users",), query="snow", limit=50)
    assert (every[-1].key, every[-1].score, len(every)) == ("unsearched", None, 7)
    pages = [
        one.key
        for at in range(0, 8, 2)
        for one in store.search((), query="snow", limit=2, offset=at)
    ]
    assert pages == [one.key for one in store.search((), query="snow", limit=8)]


def test_an_item_keeps_when_it_was_made_and_forgets_its_old_words() -> None:
    store = MemoryStore(Memory(embedder="lexical"))
    store.put(("a",), "k", {"text": "the harbour"})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"other": "the violin"}, index=False)
    second = store.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert (second.created_at, second.value) == (first.created_at, {"other": "the violin"})
    assert second.updated_at > first.updated_at
    assert not store.memory.recall("the harbour")
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert store.search(("a",)) == []
    store.put(("a",), "k", {"text": "again"})
    assert [one.value for one in store.search(("a",))] == [{"text": "again"}]


def test_two_stores_of_two_namespaces_of_one_memory_see_nothing_of_each_other() -> None:
    memory = Memory(embedder="lexical")
    ours, theirs = (MemoryStore(memory.within(name)) for name in ("ours", "theirs"))
    ours.put(("a",), "k", {"text": "the harbour"})
    assert theirs.get(("a",), "k") is None
    assert theirs.search((), query="the harbour") == [] == theirs.list_namespaces()


def test_what_cannot_be_kept_is_refused_and_nothing_of_its_batch_is_written() -> None:
    store = MemoryStore(Memory(embedder="lexical"))
    with pytest.raises(InvalidInputError):
        store.batch([PutOp(("a",), "k", {"x": 1}), PutOp(("a",), "l", {"x": object()})])
    assert store.list_namespaces() == []
    store.put(("a",), "k", {"x": 1})
    with pytest.raises(InvalidInputError, match=r"\$near"):
        store.search(("a",), filter={"x": {"$near": 1}})
    with pytest.raises(InvalidInputError, match="Memory"):
        MemoryStore({})  # type: ignore[arg-type]
