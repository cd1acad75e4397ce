"""Nothing crosses from one namespace to another that is not meant to."""

import os
import random
from collections.abc import Callable

import numpy as np
import pytest

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.types import Cue, Event, Filter
from tests.store.processes import embedder

NAMES = ("", "ana", "bob", "eve")
WORDS = ("lamp", "door", "cat", "rain", "key")


def may_see(event: Event, own: str, also: list[str]) -> bool:
    """What visibility means, in three lines."""
    if event.namespace == own or event.visibility == "public":
        return True
    return event.visibility == "shared" and event.namespace in also


@pytest.mark.requirement("X17", "B9")
def test_random_operations_never_cross_a_namespace() -> None:
    # 3,000 operations a memory; nightly 102,000 over 34 of them.
    memories = 34 if "CVX_NIGHTLY" in os.environ else 1
    calls = sum(operate_at_random(seed) for seed in range(11, 11 + memories))
    print(f"{calls:,} recalls among {3_000 * memories:,} operations, no leak")
    assert calls > 1_000 * memories


def operate_at_random(seed: int) -> int:
    """Add, put away, restore and recall; return how many recalls there were."""
    rng = random.Random(seed)
    vectors = np.random.default_rng(seed).normal(size=(64, 16)).astype(np.float32)
    calls = 0
    with Memory(embedder()) as memory:
        events: dict[int, Event] = {}
        for _ in range(3000):
            kind = rng.random()
            if kind < 0.3 or len(events) < 20:
                words = " ".join(rng.choices(WORDS, k=2))
                event = memory.add(
                    words,
                    namespace=rng.choice(NAMES),
                    visibility=rng.choice(["private", "private", "shared", "public"]),
                    vector=vectors[rng.randrange(64)],
                    entity_id=rng.randrange(4),
                    timestamp=rng.randrange(100),
                    reward=rng.choice([None, 0.0, 0.5, 1.0]),
                    again=True,
                )
                events[event] = memory.get(event)
            elif kind < 0.36:
                event = rng.choice(list(events))
                memory.forget(event)
                events[event] = memory.get(event)
            elif kind < 0.4:
                event = rng.choice(list(events))
                memory.restore(event)
                events[event] = memory.get(event)
            else:
                calls += 1
                own, k = rng.choice(NAMES), rng.choice([1, 1, 5, 5, 20, 400])
                also = rng.sample(NAMES, rng.randrange(3))
                where = random_filter(rng)
                sources = rng.choice([["dense"], ["lexical"], ["dense", "lexical"]])
                # A cue with a vector of its own needs no embedder, which works in a thread.
                given = None if rng.random() < 0.05 else vectors[rng.randrange(64)]
                hits = memory.recall(
                    Cue(text=rng.choice(WORDS), vector=given),
                    k,
                    namespace=own,
                    also=also,
                    where=where,
                    sources=sources,
                    outcome=rng.choice(["success", "any"]),
                    floor=-2.0,
                )
                allowed = {
                    number
                    for number, event in events.items()
                    if may_see(event, own, also)
                    and event.state == "active"
                    and passes(event, where)
                }
                found = [hit.event.event_id for hit in hits if hit.event]
                assert set(found) <= allowed
                assert len(found) == len(set(found))
                if "dense" in sources:
                    # The filter is inside the search: k results whenever k events match.
                    assert len(found) == min(k, len(allowed))
    return calls


def random_filter(rng: random.Random) -> Filter:
    since = rng.choice([None, rng.randrange(60)])
    return Filter(
        since=since,
        until=rng.choice([None, 61 + rng.randrange(40)]),
        entities=rng.choice([None, None, [rng.randrange(4)], [0, 1, 2]]),
        min_reward=rng.choice([None, None, 0.5]),
    )


def passes(event: Event, where: Filter) -> bool:
    return (
        (where.since is None or event.timestamp >= where.since)
        and (where.until is None or event.timestamp < where.until)
        and (where.entities is None or event.entity_id in list(where.entities))
        and (
            where.min_reward is None
            or (event.reward is not None and event.reward >= where.min_reward)
        )
    )


@pytest.mark.requirement("X17")
def test_private_shared_and_public_mean_what_they_say() -> None:
    with Memory(embedder()) as memory:
        for visibility in ("private", "shared", "public"):
            memory.add(f"a {visibility} thought", namespace="ana", visibility=visibility)

        def seen(own: str, also: tuple[str, ...] = ()) -> set[str]:
            hits = memory.recall("a thought", namespace=own, also=also)
            return {hit.event.text.split()[1] for hit in hits if hit.event}

        assert seen("ana") == {"private", "shared", "public"}
        assert seen("bob") == {"public"}
        assert seen("bob", ("ana",)) == {"shared", "public"}
        assert seen("") == {"public"}


@pytest.mark.requirement("X17")
def test_a_walk_does_not_enter_what_the_asker_may_not_see() -> None:
    with Memory(embedder()) as memory:
        hidden = memory.add("a private cause", namespace="ana")
        open_cause = memory.add("a public cause", namespace="ana", visibility="public")
        effect = memory.add("what bob saw", namespace="bob")
        memory.link(hidden, effect)
        memory.link(open_cause, effect)
        memory.link(hidden, open_cause)
        assert [s.event.event_id for s in memory.why(effect, namespace="bob")] == [open_cause]


@pytest.mark.requirement("X17")
def test_one_string_is_no_list_of_namespaces() -> None:
    with Memory(embedder()) as memory:
        calls: list[Callable[[], object]] = [
            lambda: memory.recall("a thought", also="bob"),
            lambda: memory.context("a thought", also="bob"),
            lambda: memory.count(also="bob"),
            lambda: memory.graph(also="bob"),
        ]
        for call in calls:
            with pytest.raises(InvalidInputError, match="also is 'bob': give a list"):
                call()
