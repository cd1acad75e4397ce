"""The columns in RAM say what the record says, whatever happened to it."""

import asyncio
import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.index.recall_columns import window
from cvx.memory import Memory
from cvx.recall import default_pipeline
from cvx.recall.corpus import Corpus
from cvx.recall.corpus_indexes import GrowingColumn, KeyTable, Timelines
from cvx.store.namespaces import space
from cvx.types import Event
from tests.recall.rooms import axis, room


def same(corpus: Corpus, memory: Memory) -> None:
    """The twin: every column read anew from the events themselves."""
    corpus.refresh()
    events = memory.record.events()
    assert corpus.event_ids.tolist() == [e.event_id for e in events]
    assert corpus.timestamps.tolist() == [e.timestamp for e in events]
    assert corpus.entities.tolist() == [e.entity_id for e in events]
    assert corpus.active.tolist() == [e.state == "active" for e in events]
    assert corpus.lengths.tolist() == [len(e.text) for e in events]
    assert corpus.asks.tolist() == ["?" in e.text for e in events]
    rewards = [np.nan if e.reward is None else e.reward for e in events]
    np.testing.assert_array_equal(corpus.rewards, rewards)
    for row, event in enumerate(events):
        visible = (space(event.namespace, event.visibility),)
        assert corpus.base_mask(visible, None)[row] == (event.state == "active")
    assert corpus.rows_of_nodes(corpus.nodes).tolist() == list(range(len(events)))
    assert corpus.texts(np.arange(len(events))) == [e.text for e in events]


def taken_back(memory: Memory, corpus: Corpus) -> None:
    with memory.admin.transaction():
        memory.add("x taken back")
        corpus.refresh()
        raise ZeroDivisionError


@pytest.mark.parametrize("seed", range(4))
def test_the_corpus_follows_every_change_of_the_record(seed: int) -> None:
    chance = random.Random(seed)
    memory = room()
    corpus = Corpus(memory.record)
    for _ in range(120):
        known = [row[0] for row in memory.record.query("SELECT event_id FROM events")]
        kind = chance.random()
        if kind < 0.5 or len(known) < 4:
            memory.add(
                f"{chance.choice('xyz')} {chance.random()}{chance.choice(['', '?'])}",
                namespace=chance.choice(["", "ana"]),
                visibility=chance.choice(["private", "public"]),
                entity=str(chance.randrange(3)),
                timestamp=chance.randrange(50),
                aliases=["w other"] if chance.random() < 0.1 else [],
            )
        elif kind < 0.6:
            memory.forget(chance.choice(known))
        elif kind < 0.7:
            memory.update(chance.choice(known), state="active")
        elif kind < 0.8:
            memory.update(chance.choice(known), reward=chance.random())
        elif kind < 0.84:
            memory.erase(chance.choice(known))
        elif kind < 0.9:
            with pytest.raises(ZeroDivisionError):
                taken_back(memory, corpus)
        if chance.random() < 0.5:
            same(corpus, memory)
    same(corpus, memory)


SAID = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from((None, "fact", "a", "b")), st.integers(0, 40)),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(SAID, st.lists(st.integers(1, 6), max_size=30), st.integers(1, 3))
def test_neighbours_are_those_of_the_sorted_session(
    said: list[tuple[int, str | None, int]], chunks: list[int], reach: int
) -> None:
    gap, lines, taken, readable = 5, Timelines(5), 0, np.ones(len(said), dtype=np.bool_)
    times = np.array([time for *_, time in said], dtype=np.int64)
    for size in (*chunks, len(said)):
        part = said[taken : taken + size]
        if not part:
            break
        taken += len(part)
        spaces = np.array([where for where, *_ in part])
        none = np.full(len(part), -1)
        sessions = [None if session == "fact" else session for _, session, _ in part]
        spoken = [session != "fact" for _, session, _ in part]
        lines.extend(spaces, sessions, spoken, none, times[:taken])
    if not said or taken < len(said):
        return
    # The twin: sort, cut where the session or a gap ends it.
    order = sorted(
        range(len(said)), key=lambda row: (said[row][0], str(said[row][1]), times[row], row)
    )
    runs: list[list[int]] = []
    for row in order:
        last = runs[-1][-1] if runs else None
        apart = (
            last is None
            or said[row][:2] != said[last][:2]
            or said[row][1] == "fact"
            or (said[row][1] is None and times[row] - times[last] > gap)
        )
        if apart:
            runs.append([row])
        else:
            runs[-1].append(row)
    for run in runs:
        assert len({int(lines.sessions[row]) for row in run}) == 1
        for place, row in enumerate(run):
            expected = [
                run[at] if 0 <= at < len(run) else -1
                for at in range(place - reach, place + reach + 1)
            ]
            around = window(np.array([row]), lines.before, lines.after, readable, reach)
            assert around[0].tolist() == expected
    assert len({int(lines.sessions[run[0]]) for run in runs}) == len(runs)


@pytest.mark.parametrize("count", [11, 12, 300])
def test_columns_read_in_parts_are_those_read_at_once(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, chance = room(), random.Random(count)
    for _ in range(count):
        said = {"speaker": chance.choice("ab"), "title": chance.choice("cd")}
        if chance.random() < 0.3:
            said["session"] = chance.choice("ef")
        memory.add(f"x {chance.random()}", timestamp=chance.randrange(9) * 10**10, metadata=said)
    whole = Corpus(memory.record)
    whole.refresh()
    monkeypatch.setattr("cvx.recall.corpus._AT_ONCE", 4)
    parts = Corpus(memory.record)
    parts.refresh()
    assert len(parts) == count
    same(parts, memory)
    for name in ("sessions", "before", "after"):
        assert getattr(parts.timelines, name).tolist() == getattr(whole.timelines, name).tolist()
    assert parts.naming.saved()["names"] == whole.naming.saved()["names"]
    for one, other in zip(parts.naming.titles.saved(), whole.naming.titles.saved(), strict=True):
        assert one.tolist() == other.tolist()
    memory.add("x the last", timestamp=10**11, metadata={"session": "e"})
    for corpus in (whole, parts):
        corpus.refresh()
    assert parts.timelines.before.tolist() == whole.timelines.before.tolist()


def test_a_name_in_one_namespace_is_none_in_another() -> None:
    memory = room()
    memory.add("x one", namespace="ana", entity="1", metadata={"speaker": "Ann Lee"})
    memory.add("x two", namespace="bob", entity="1", metadata={"name": "Zoe"})
    corpus = Corpus(memory.record)
    corpus.refresh()
    assert corpus.names((space("ana", "private"),)) == {
        "ann": frozenset({1}),
        "lee": frozenset({1}),
    }
    assert corpus.names((space("bob", "private"),)) == {"zoe": frozenset({1})}


def test_a_name_a_title_and_a_session_given_later_are_known_to_the_next_recall() -> None:
    memory = room()
    first = memory.add("x one", entity="1", timestamp=1, metadata={"speaker": "Ann"})
    memory.add("y two", entity="1", timestamp=2, metadata={"session": "b"})
    corpus = Corpus(memory.record)
    corpus.refresh()
    assert corpus.timelines.sessions[0] != corpus.timelines.sessions[1]
    given = {"name": "Zoe", "title": "Red River", "session": "b"}
    memory.update(first, metadata={"speaker": None, **given})
    corpus.refresh()
    assert corpus.names((space("", "private"),)) == {"zoe": frozenset({1})}
    assert corpus.naming.titles.numbers("red river") == [0]
    assert corpus.timelines.sessions[0] == corpus.timelines.sessions[1]


def test_threads_recall_while_others_write() -> None:
    memory = room()
    memory.add("x zero", vector=axis("x"))
    failures: list[BaseException] = []

    def guarded(work: object) -> None:
        try:
            for n in range(30):
                work(n)  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    def write(n: int) -> None:
        memory.add(f"x number {n}", again=True)

    def read(n: int) -> None:
        assert memory.recall(f"x number {n}", 3)

    threads = [
        threading.Thread(target=guarded, args=(work,)) for work in (write, read, read, write)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(memory) == 61


def test_a_recall_does_not_block_the_event_loop() -> None:
    free, seen = threading.Event(), list[str]()

    class Slow:
        def embed(self, texts: list[str]) -> object:
            free.wait()
            return np.stack([axis("x") for _ in texts])

        def info(self) -> dict[str, object]:
            return {"id": "axes", "dim": 4, "semantic": False}

    memory = Memory(embedder=Slow())  # type: ignore[arg-type]
    memory.add_many([Event(timestamp=0, text="x one", vector=axis("x"))])

    async def both() -> None:
        hits = asyncio.ensure_future(memory.aio.recall("x"))
        block = asyncio.ensure_future(memory.aio.context("x", 200))
        # The loop turns while both wait for the embedder.
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append("turned")
        assert not hits.done()
        free.set()
        assert len(await hits) == len((await block).hits) == 1

    asyncio.run(both())
    assert seen == ["turned"]


def test_weights_and_floor_are_kept_with_the_memory() -> None:
    from cvx.recall.floor import Answerable

    memory = room()
    memory.add("x one")
    floor = Answerable((1.0, 1.0, 1.0, 1.0), -99.0, 0.5)
    memory.learning.pipeline = default_pipeline({"dense": 2.0, "bm25": 2.0}, floor)
    assert memory.recall("x") == []
    twin = memory.as_of(10**17)
    assert dict(twin.learning.pipeline.weighting.weights) == {"dense": 0.5, "bm25": 0.5}
    hits = twin.recall("x")
    assert hits == []
    assert hits.trace.answerable == pytest.approx(0.0, abs=1e-9)
    memory.learning.recall_with()
    assert len(memory.recall("x")) == 1


def test_a_weight_of_no_signal_is_refused_and_nothing_is_stored() -> None:
    memory = room()
    before = memory.learning.pipeline.weighting.weights
    with pytest.raises(InvalidInputError, match="weights name dence: give some of dense"):
        memory.learning.recall_with({"dence": 1.0, "bm25": 1.0})
    assert memory.as_of(10**17).learning.pipeline.weighting.weights == before


@given(st.lists(st.lists(st.integers(-9, 9), max_size=9), max_size=12))
def test_a_growing_column_is_what_joining_makes_and_leaves_what_was_handed_out(
    parts: list[list[int]],
) -> None:
    column, every = GrowingColumn(np.int64), list[int]()
    handed_out = []
    for part in parts:
        every.extend(part)
        handed_out.append((column.extend(part), list(every)))
    assert all(rows.tolist() == expected for rows, expected in handed_out)


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdé\ud800"), st.integers(0, 99)))))
def test_a_table_of_keys_is_the_same_whenever_it_was_saved(
    parts: list[list[tuple[str, int]]],
) -> None:
    table, plain = KeyTable(), dict[str, list[int]]()
    for part in parts:
        for key, number in part:
            table.add(key, number)
            plain.setdefault(key, []).append(number)
        for key in "abcdé\ud800f":
            assert sorted(table.numbers(key)) == sorted(plain.get(key, []))
        assert bool(len(table)) == bool(plain)
        table, saved = KeyTable(), table.saved()
        table.restore(saved)


def test_masks_of_namespaces_that_lie_in_blocks_or_are_mixed_are_those_of_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cvx.recall.corpus._BLOCK", 4)
    memory, chance = room(), random.Random(5)
    corpus, names = Corpus(memory.record), list[str]()
    for turn in range(60):
        names.append("abc"[turn // 20] if turn % 7 else chance.choice("abcd"))
        memory.add(f"x {turn}", namespace=names[-1])
        if chance.random() < 0.3:
            memory.forget(chance.randrange(turn + 1) + 1)
        if chance.random() < 0.4:
            restored = Corpus(memory.record)
            corpus.refresh()
            restored.restore(corpus.saved(), corpus.seq)
            corpus = restored
        corpus.refresh()
        for asked in ("a", "bd", "e", "abcd"):
            spaces = tuple(space(one, "private") for one in asked)
            wanted = [name in asked for name in names] & corpus.active
            assert corpus.base_mask(spaces, None).tolist() == wanted.tolist()
