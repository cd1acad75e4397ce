"""Sources stand side by side: one that fails does not silence the others."""

import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from cvx.errors import EmbedderWarning, InvalidInputError
from cvx.memory import Memory
from cvx.time_limits import LONGEST_PAUSE_S, MOST_AT_ONCE, Calls
from cvx.types import Cue, Event, Hit, Source, Vector
from tests.recall.rooms import EVERYTHING, Axes, Down, at, axis, room


def ids(hits: list[Hit]) -> list[int]:
    return [hit.event.event_id for hit in hits if hit.event and hit.event.event_id]


@pytest.mark.requirement("R2")
def test_the_dense_arm_follows_the_state_and_the_lexical_one_the_raw_words() -> None:
    memory = room()
    state = memory.add("x plans", vector=axis("x")).id
    literal = memory.add("y E1234", vector=axis("y")).id
    memory.add("z nothing", vector=axis("z"))
    cue = Cue(goal="x", text="E1234", vector=axis("x"))
    assert set(ids(memory.recall(cue))) == {state, literal}
    assert ids(memory.recall(cue, sources=["dense"])) == [state]
    assert ids(memory.recall(cue, sources=["lexical"])) == [literal]


def test_aliases_lead_to_their_event() -> None:
    memory = Memory(embedder=Axes())
    event = memory.add("x a guard of the gate", aliases=["y the sentry", "z watchman"]).id
    memory.add("y another thing")
    found = memory.recall("y who", sources=["aliases"])
    assert ids(found) == [event]
    assert found[0].similarity == 1.0


def test_the_graph_brings_what_the_similar_is_linked_to() -> None:
    memory = room()
    near, far = memory.add("x rain").id, memory.add("y flood").id
    memory.link(near, far, "caused", why="the drain is too small")
    hits = memory.recall("x", sources=["dense", "graph"], floor=EVERYTHING)
    walked = {hit.event.event_id: hit.path for hit in hits if hit.event}
    assert [edge.why for edge in walked[far]] == ["the drain is too small"]


def test_the_newest_are_a_source_and_the_future_is_not() -> None:
    memory = room()
    numbers = [memory.add(f"y {n}", timestamp=n).id for n in (5, 1, 9, 3)]
    found = memory.recall(Cue(text="x", timestamp=6), sources=["recent"], floor=EVERYTHING)
    assert ids(found) == [numbers[0], numbers[3], numbers[1]]


def test_a_callable_of_the_user_is_a_source() -> None:
    memory = room()
    events = [memory.add(f"y {n}").id for n in range(3)]
    asked: list[Cue] = []

    def mine(cue: Cue) -> list[Hit]:
        asked.append(cue)
        hits = memory.recall("y", floor=EVERYTHING)
        return [hit for hit in hits if hit.event and hit.event.event_id == events[2]]

    hits = memory.recall("x", sources={"mine": mine}, floor=EVERYTHING)
    assert ids(hits) == [events[2]]
    assert asked == [Cue(text="x")]


@pytest.mark.requirement("X17")
def test_a_callable_cannot_bring_in_what_the_asker_may_not_see() -> None:
    memory = room()
    secret = memory.add("x secret", namespace="ana").id
    stolen = memory.recall("x", namespace="ana")
    assert ids(stolen) == [secret]
    assert memory.recall("x", sources={"thief": lambda _: list(stolen)}, floor=EVERYTHING) == []


def test_a_source_that_raises_leaves_the_others_answering() -> None:
    memory = room()
    event = memory.add("x one").id

    def broken(cue: Cue) -> list[Hit]:
        raise OSError("the other memory is gone")

    hits = memory.recall("x", sources={"dense": None, "broken": broken})
    assert ids(hits) == [event]
    assert hits.trace.sources[1].problem == "OSError: the other memory is gone"
    assert hits.trace.degraded
    assert "broken: OSError: the other memory is gone" in str(hits.trace)


# With a vector of its own: no embedder has to answer in the short time that a source is given.
CUE = Cue(text="x", vector=axis("x"))


def test_a_source_that_hangs_leaves_the_others_answering() -> None:
    memory = room()
    event = memory.add("x one").id
    memory.learning.pipeline = replace(memory.learning.pipeline, timeout_s=0.05)
    released = threading.Event()

    def hanging(cue: Cue) -> list[Hit]:
        released.wait()
        return []

    hits = memory.recall(CUE, sources={"dense": None, "hanging": hanging})
    memory.close()
    released.set()
    assert ids(hits) == [event]
    assert hits.trace.sources[1].problem.startswith("no answer within")
    assert hits.trace.degraded


def test_a_source_that_hangs_again_and_again_holds_few_threads_and_is_asked_again_later() -> None:
    memory = room()
    event = memory.add("x one").id
    released = threading.Event()
    asked: SimpleQueue[threading.Thread] = SimpleQueue()

    def problem(timeout_s: float) -> str:
        def hanging(cue: Cue) -> list[Hit]:
            asked.put(threading.current_thread())
            released.wait()
            return []

        memory.learning.pipeline = replace(memory.learning.pipeline, timeout_s=timeout_s)
        sources = {"dense": None, "hanging": hanging}
        hits = memory.recall(CUE, sources=sources, floor=EVERYTHING)
        assert ids(hits) == [event]
        return hits.trace.sources[1].problem

    said = [problem(0.01) for _ in range(3 * MOST_AT_ONCE)]
    assert [one.startswith("no answer within") for one in said] == [
        number < MOST_AT_ONCE for number in range(3 * MOST_AT_ONCE)
    ]
    assert said[-1] == f"not asked: {MOST_AT_ONCE} earlier calls have not come back yet"
    holding = [asked.get() for _ in range(MOST_AT_ONCE)]
    assert asked.empty()
    assert all(one.daemon for one in holding)
    released.set()
    for one in holding:
        one.join()
    assert problem(60.0) == ""


def test_a_source_that_hangs_silences_neither_its_like_nor_another_memory() -> None:
    released = threading.Event()

    def made(waits: bool) -> Source:
        def ask(cue: Cue) -> list[Hit]:
            if waits:
                released.wait()
            return []

        return ask

    one, other = room(), room()
    for memory in (one, other):
        memory.add("x one")
    one.learning.pipeline = replace(one.learning.pipeline, timeout_s=0.01)
    for _ in range(MOST_AT_ONCE + 1):
        said = one.recall(CUE, sources={"a": made(waits=True)}).trace.sources[0].problem
    assert said.startswith("not asked")
    one.learning.pipeline = replace(one.learning.pipeline, timeout_s=60.0)
    asked = (one, {"b": made(waits=False)}), (other, {"a": made(waits=False)})
    assert [m.recall(CUE, sources=s).trace.sources[0].problem for m, s in asked] == ["", ""]
    released.set()


def test_an_embedder_that_hangs_in_one_memory_is_asked_in_another() -> None:
    released = threading.Event()

    class Stuck(Axes):
        def embed(self, texts: Sequence[str]) -> Vector:
            released.wait()
            return super().embed(texts)

    stuck, other = Memory(embedder=Stuck()), room()
    for memory in (stuck, other):
        memory.add("x one", vector=axis("x"))
    stuck.learning.pipeline = replace(stuck.learning.pipeline, timeout_s=0.01)
    with pytest.warns(EmbedderWarning, match=r"no answer within 0\.01 s"):
        stuck.recall("x")
    for _ in range(MOST_AT_ONCE):
        (said,) = stuck.recall("x").trace.problems
    assert said.startswith("embedder: not asked")
    assert other.recall("x").trace.problems == []
    released.set()


def test_an_embedder_that_hung_is_told_of_once_and_asked_again() -> None:
    now, released = 0.0, threading.Event()

    class Hung(Axes):
        hangs = True

        def embed(self, texts: Sequence[str]) -> Vector:
            if self.hangs:
                released.wait()
            return super().embed(texts)

    memory = Memory(embedder=(embedder := Hung()))
    event = memory.add("x one", vector=axis("x")).id
    memory._shared.calls = Calls(clock=lambda: now)
    plan = replace(memory.learning.pipeline, timeout_s=0.01)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hung = [memory.recall("x", pipeline=plan) for _ in range(MOST_AT_ONCE + 2)]
        block = memory.context("x", pipeline=plan)
    assert [one.category for one in told] == [EmbedderWarning]
    assert "by words alone" in str(told[0].message)
    assert all(hits.trace.degraded and ids(hits) == [event] for hits in hung)
    assert block.trace.problems == hung[-1].trace.problems
    assert "words alone were searched" in block.trace.problems[0]
    # Its threads still hang, and it would answer.
    embedder.hangs = False
    now += LONGEST_PAUSE_S
    hits = memory.recall("x")
    assert hits.trace.problems == []
    assert hits[0].similarity == pytest.approx(1.0)
    released.set()


def test_a_source_that_wants_to_end_the_process_is_reported_at_once() -> None:
    memory = room()
    event = memory.add("x one").id

    def leaving(cue: Cue) -> list[Hit]:
        raise SystemExit("no licence")

    hits = memory.recall("x", sources={"dense": None, "leaving": leaving})
    assert ids(hits) == [event]
    assert hits.trace.sources[1].problem == "SystemExit: no licence"


def says(answer: Any, _: Cue) -> Any:
    return answer


def test_a_source_that_answers_with_nonsense_is_reported_too() -> None:
    memory = room()
    memory.add("x one")
    for nonsense in (3, ["a text"], None):
        hits = memory.recall("x", sources={"dense": None, "odd": partial(says, nonsense)})
        assert len(hits) == 1
        assert "TypeError" in hits.trace.sources[1].problem


def test_without_an_embedder_words_are_searched_and_it_is_said() -> None:
    memory = Memory(embedder=Down())
    event = memory.add_many([Event(timestamp=0, text="x the lantern", vector=axis("x"))])[0]
    with pytest.warns(EmbedderWarning, match="nobody listens to 1 texts"):
        hits = memory.recall("where is the lantern?")
    assert ids(hits) == [event]
    (problem,) = hits.trace.problems
    assert problem == (
        "embedder: ConnectionError: nobody listens to 1 texts: words alone were searched"
    )
    assert "words alone were searched" in str(memory.context("where is the lantern?").trace)


def test_a_word_without_direction_is_searched_as_a_word() -> None:
    class Nowhere(Axes):
        def embed(self, texts: Sequence[str]) -> Vector:
            return 0 * super().embed(texts)

    memory = Memory(embedder=Nowhere())
    memory.add("x one", vector=axis("x"))
    hits = memory.recall("x one")
    assert len(hits) == 1
    # The embedder answers: that is no failure to warn of.
    assert hits.trace.problems[0].startswith("embedder: InvalidVectorError: the vector is zero")


def test_what_is_no_source_is_refused() -> None:
    memory = room()
    with pytest.raises(InvalidInputError, match="sources name 'denes'"):
        memory.recall("x", sources=["denes"])
    with pytest.raises(InvalidInputError, match="sources are empty"):
        memory.recall("x", sources=[])
    with pytest.raises(InvalidInputError, match="give a callable"):
        memory.recall("x", sources={"mine": 3})  # type: ignore[dict-item]


@pytest.mark.requirement("X14")
def test_a_hit_carries_score_and_distance_each_under_its_own_name() -> None:
    memory = room()
    memory.add("x near", vector=at(0.9))
    memory.add("x far", vector=at(0.2))
    near, far = memory.recall("x", sources=["dense"])
    assert near.score > far.score
    assert near.distance == pytest.approx(0.1, abs=1e-6)
    assert far.distance == pytest.approx(0.8, abs=1e-6)
    assert near.similarity == pytest.approx(1.0 - near.distance)
