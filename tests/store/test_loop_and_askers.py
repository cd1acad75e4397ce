"""What a loop recalls, counts and renders comes from what the asker may read."""

from __future__ import annotations

import pytest

from cvx.active import ActiveMemory
from cvx.memory import Memory
from cvx.types import Cue, Filter
from tests.store.facade import memory

__all__ = ["memory"]

KITCHEN = [("a kitchen", "take cup"), ("a sink", "use tap")]
POISON = [("a kitchen", "open gas"), ("a sink", "heat stove")]


def advised(loop: ActiveMemory, step: str = "a kitchen") -> set[str | None]:
    return {hit.action for hit in loop.recall(Cue(step=step), distinct=None).hits}


@pytest.mark.requirement("B3")
def test_a_poisoned_demonstration_is_found_by_its_source_and_taken_back(memory: Memory) -> None:
    loop = memory.active
    loop.add_demonstration("clean the cup", KITCHEN, "clean", source="ana")
    loop.add_demonstration("clean the cup", POISON, "clean", source="web", trust=0.4)
    run = memory.begin("clean the cup", "clean", source="ana", trust=0.9)
    loop.step(run, "a kitchen", "go to sink")
    memory.close(run, 1.0)
    found = memory.audit("web")
    assert [event.action for event in found] == ["open gas", "heat stove"]
    assert {event.trust for event in found} == {0.4}
    assert [event.trust for event in memory.audit("ana")] == [1.0, 1.0, 0.9]
    assert "open gas" in advised(loop)
    assert memory.quarantine("web") == [event.event_id for event in found]
    assert advised(loop) == {"take cup", "use tap", "go to sink"}
    memory.release("web")
    assert "open gas" in advised(loop)
    memory.roll_back("web")
    assert advised(loop) == {"take cup", "use tap", "go to sink"}


@pytest.mark.requirement("B9", "X17")
def test_an_episode_is_as_visible_as_it_was_begun(memory: Memory) -> None:
    loop = memory.active
    for visibility in ("private", "shared", "public"):
        loop.add_demonstration(
            "clean", [("a kitchen", f"look {visibility}")], namespace="ana", visibility=visibility
        )
    spaces = [memory.index.namespace(node) for node in range(3)]
    memory._store.replica.rebuild()
    assert [memory.index.namespace(node) for node in range(3)] == spaces
    assert [
        hit.event.action for hit in memory.recall("a kitchen", namespace="bob") if hit.event
    ] == ["look public"]


@pytest.mark.requirement("B9", "X17")
def test_a_filter_of_namespaces_only_narrows_what_the_asker_may_see(memory: Memory) -> None:
    loop, ana = memory.active, memory.loop(namespace="ana", also=["bob"])
    for namespace in ("ana", "bob"):
        for visibility in ("private", "shared", "public"):
            loop.add_demonstration(
                "clean",
                [("a kitchen", f"{namespace} {visibility}")],
                namespace=namespace,
                visibility=visibility,
            )
            memory.add("a kitchen", namespace=namespace, visibility=visibility, action=namespace)

    def seen(asker: ActiveMemory, *names: str) -> set[str | None]:
        where = Filter(namespaces=names) if names else None
        return {hit.action for hit in asker.recall(Cue(step="a kitchen"), where, distinct=None).hits}

    public, shared = {"ana public", "bob public", "ana", "bob"}, {"bob shared"}
    own = {"ana private", "ana shared"}
    assert seen(loop) == public
    assert seen(loop, "bob") == {"bob public", "bob"}
    assert seen(ana) == public | shared | own
    assert seen(ana, "bob") == {"bob public", "bob shared", "bob"}
    assert seen(ana, "nobody") == set()
    # The namespace of an episode asks, whoever's the loop is.
    loop.begin("clean", namespace="bob")
    assert seen(loop) == public | {"bob private", "bob shared"}
    assert seen(loop, "ana") == {"ana public", "ana"}
