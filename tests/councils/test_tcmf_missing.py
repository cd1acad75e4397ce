"""Councils that lack something, or wait for it."""

from __future__ import annotations

import asyncio
import math
import threading
from itertools import combinations
from typing import Any

import pytest

from cvx.causal import CausalGraph
from cvx.causal.walk import Walk
from cvx.councils import (
    PRESETS,
    EmbedderRouter,
    MemoryStream,
    ScoredMemory,
    TCMFContext,
    TCMFRetriever,
)
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from tests.councils.plague import (
    QUESTION,
    REFUSAL,
    SEED,
    SICK,
    Fixed,
    plague,
    retrieved,
    witnesses,
)

MISSING = ("router", "graph", "crisis", "vectors")


@pytest.mark.requirement("T16")
@pytest.mark.parametrize("settings", sorted(PRESETS))
@pytest.mark.parametrize(
    "missing", [set(some) for n in range(5) for some in combinations(MISSING, n)]
)
def test_whatever_is_missing_there_is_an_answer_that_says_so(
    missing: set[str], settings: str
) -> None:
    citizens = witnesses()
    if "vectors" in missing:
        bare = MemoryStream("ana")
        bare.add(REFUSAL, 66, importance=8)
        citizens = {"ana": bare}
    found = retrieved(
        citizens,
        None if "graph" in missing else plague(),
        settings,
        router=None if "router" in missing else Fixed([1, 0, 0]),
        crisis_event_id=None if "crisis" in missing else "plague",
    )
    assert REFUSAL in found.text
    words = {"router": "no router", "graph": "no graph", "vectors": "no memory has a vector"}
    said = " ".join(found.degraded)
    for part, word in words.items():
        assert (word in said) == (part in missing)
    assert ("no crisis event" in said) == ("crisis" in missing and "graph" not in missing)


@pytest.mark.requirement("T16")
def test_a_crisis_that_the_graph_does_not_know_costs_only_the_causes() -> None:
    found = retrieved(witnesses(), plague(), crisis_event_id="flood", router=Fixed([1, 0, 0]))
    assert found.chain == ()
    assert "the graph has no event 'flood'" in found.degraded
    assert len(found.recalled) == 3


@pytest.mark.requirement("T16")
def test_without_a_crisis_what_is_yet_to_come_calls_no_witness() -> None:
    graph = CausalGraph()
    for name, tick, axis in (("cuts", 60, [1, 0, 0]), ("revolt", 95, [0, 1, 0])):
        graph.add_event(name, name, tick, institution_id="health", embedding=axis)
    stream = MemoryStream("ana")
    stream.add("nobody could pay", 61, embedding=[1, 0, 0])
    stream.add("they talk of a revolt", 62, embedding=[0, 1, 0])
    asking = TCMFRetriever(graph).retrieve(
        "revolt?", {"ana": stream}, 80, "health", k=1, router=Fixed([0, 0.6, 0.8])
    )
    (first,) = asyncio.run(asking).recalled
    assert first.witness_of == graph.get_event("cuts")


@pytest.mark.requirement("T13")
@pytest.mark.parametrize(("settings", "seen"), [("default", 2), ("tcmf-seed", 3)])
def test_a_replay_hears_only_what_was_remembered_by_then(settings: str, seen: int) -> None:
    stream = MemoryStream("ana")
    for tick in (79, 80, 81):
        stream.add(f"said at {tick}", tick)
    found = retrieved({"ana": stream}, settings=settings)
    assert {one.memory.tick for one in found.recalled} == set(range(79, 79 + seen))


class Raising:
    async def embed(self, texts: list[str], /) -> list[list[float]]:
        raise ConnectionError(f"no route to the model for {texts}")


@pytest.mark.requirement("T16")
def test_a_router_that_fails_or_answers_nonsense_costs_only_the_relevance() -> None:
    for router in (Raising(), Fixed([math.nan, 0, 0]), Fixed([])):
        found = retrieved(witnesses(), plague(), router=router)
        assert any("the router failed" in word for word in found.degraded)
        assert len(found.recalled) == 3
    assert "no route to the model" in retrieved(witnesses(), router=Raising()).degraded[0]


@pytest.mark.requirement("T16")
def test_a_router_that_hangs_costs_only_the_relevance() -> None:
    class Hanging(Fixed):
        async def embed(self, texts: list[str], /) -> list[list[float]]:
            await asyncio.Event().wait()
            return await super().embed(texts)

    retriever = TCMFRetriever(plague(), SEED, embed_timeout_s=0.01)
    asking = retriever.retrieve(
        QUESTION, witnesses(), 80, "health", "plague", router=Hanging([1, 0, 0])
    )
    found = asyncio.run(asking)
    assert found.degraded == ("the router failed: no answer within 0.01 s",)
    assert len(found.recalled) == 3
    with pytest.raises(InvalidInputError, match="embed_timeout_s is 0"):
        TCMFRetriever(embed_timeout_s=0)


@pytest.mark.requirement("T13")
def test_the_event_loop_goes_on_while_a_router_is_waited_for() -> None:
    async def meanwhile() -> tuple[TCMFContext, bool]:
        asked, answer = asyncio.Event(), asyncio.Event()

        class Slow(Fixed):
            async def embed(self, texts: list[str], /) -> list[list[float]]:
                asked.set()
                await answer.wait()
                return await super().embed(texts)

        retriever = TCMFRetriever(plague(), SEED)
        router = Slow([1, 0, 0])
        waiting = asyncio.create_task(
            retriever.retrieve(QUESTION, witnesses(), 80, "health", "plague", router=router)
        )
        await asked.wait()
        still_waiting = not waiting.done()
        answer.set()
        found = await waiting
        assert router.asked == [[QUESTION]]
        return found, still_waiting

    found, still_waiting = asyncio.run(meanwhile())
    assert still_waiting
    assert found.recalled[0].memory.text == REFUSAL


class Jumping(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next deadline where nothing else is left to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            self.now += timeout or 0.0
            return select(None if timeout is None else 0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


@pytest.mark.requirement("T13", "T16")
@pytest.mark.parametrize(("seconds", "answered"), [(1.999, True), (2.001, False)])
def test_a_router_is_waited_for_two_seconds(seconds: float, answered: bool) -> None:
    class Slow(Fixed):
        async def embed(self, texts: list[str], /) -> list[list[float]]:
            await asyncio.sleep(seconds)
            return await super().embed(texts)

    async def asking() -> tuple[TCMFContext, float]:
        found = await TCMFRetriever(plague()).retrieve(
            QUESTION, witnesses(), 80, "health", "plague", router=Slow([1, 0, 0])
        )
        return found, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=Jumping) as runner:
        found, ended = runner.run(asking())
    assert ended == pytest.approx(min(seconds, 2.0))
    assert found.degraded == (() if answered else ("the router failed: no answer within 2 s",))


class HeldStream(MemoryStream):
    held: Held

    def retrieve(self, now: int, **options: Any) -> list[ScoredMemory]:
        self.held.wait()
        return super().retrieve(now, **options)


class HeldGraph(CausalGraph):
    held: Held

    def walk(self, *given: Any, **options: Any) -> Walk:
        self.held.wait()
        return super().walk(*given, **options)


class Held:
    """Stops a reader until the event loop has noticed it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reached, self.go = asyncio.Event(), threading.Event()
        self.in_time: list[bool] = []

    def wait(self) -> None:
        self.loop.call_soon_threadsafe(self.reached.set)
        self.in_time.append(self.go.wait(10))


@pytest.mark.requirement("T13")
@pytest.mark.parametrize("part", ["memories", "links"])
def test_the_event_loop_goes_on_while_memories_and_links_are_read(part: str) -> None:
    async def meanwhile() -> tuple[TCMFContext, list[bool]]:
        held, stream, walked = Held(), HeldStream("eve"), HeldGraph()
        stream.held = walked.held = held
        citizens, graph = witnesses(), plague(walked if part == "links" else None)
        if part == "memories":
            citizens["eve"] = stream
        asking = TCMFRetriever(graph).retrieve(
            QUESTION, citizens, 80, "health", "plague", router=Fixed([1, 0, 0])
        )
        waiting = asyncio.create_task(asking)
        await held.reached.wait()
        held.go.set()
        return await waiting, held.in_time

    found, in_time = asyncio.run(meanwhile())
    assert in_time == [True]
    assert found.recalled[0].memory.text == REFUSAL


@pytest.mark.requirement("T13")
def test_what_another_thread_adds_meanwhile_breaks_no_answer() -> None:
    stream, graph = MemoryStream("eve"), plague()

    class Meanwhile(HeldGraph):
        def walk(self, *given: Any, **options: Any) -> Walk:
            stream.add("said meanwhile", 70)
            return CausalGraph.walk(self, *given, **options)

    stream.add("the well is foul", 70, embedding=[1, 0, 0])
    graph.__class__ = Meanwhile
    found = retrieved({"eve": stream}, graph, "default", institution_id="senate")
    assert {one.memory.text for one in found.recalled} == {"the well is foul", "said meanwhile"}
    assert len(stream) == 2


@pytest.mark.requirement("T13")
def test_an_embedder_of_cvx_can_be_the_router() -> None:
    embedder = LexicalEmbedder()
    stream = MemoryStream("ana")
    for text in (SICK, QUESTION):
        stream.add(text, 80, embedding=embedder.embed([text])[0])
    found = retrieved({"ana": stream}, router=EmbedderRouter(embedder))
    assert found.recalled[0].memory.text == QUESTION
    assert dict(found.recalled[0].factors)["similarity"] == pytest.approx(1.0)
