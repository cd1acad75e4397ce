"""The stream of one agent: what scores how, and what a retrieval changes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.causal.cosine import cosine
from cvx.councils import Memory, MemoryStream, StreamWeights
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
)


@pytest.mark.requirement("T1")
def test_a_memory_counts_as_accessed_when_it_is_made() -> None:
    memory = Memory("m", "ana", tick=7, text="rain")
    assert memory.last_access_tick == 7
    assert Memory("m", "ana", 7, "rain", last_access_tick=3).last_access_tick == 3
    for kind in ("observation", "conversation", "reflection", "event"):
        assert Memory("m", "ana", 7, "rain", kind).kind == kind


@pytest.mark.requirement("T1")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"importance": 0.5}, InvalidInputError),
        ({"importance": 10.5}, InvalidInputError),
        ({"importance": math.nan}, InvalidInputError),
        ({"kind": "dream"}, InvalidInputError),
        ({"embedding": [1.0, math.nan]}, InvalidVectorError),
        ({"embedding": []}, InvalidVectorError),
        ({"embedding": "far"}, InvalidVectorError),
    ],
)
def test_an_impossible_memory_is_refused(options: dict[str, object], error: type) -> None:
    with pytest.raises(error):
        Memory("m", "ana", 0, "rain", **options)  # type: ignore[arg-type]


@pytest.mark.requirement("T2", "T3", "T4", "T5", "T6")
def test_the_score_is_the_sum_worked_out_by_hand() -> None:
    weights = StreamWeights(relevance=2.0, recency=0.5, importance=1.5, decay=0.1)
    stream = MemoryStream("ana", weights)
    # cosine of (3, 4) and (1, 0) is 0.6; ten ticks at 0.1 are exp(-1); importance 8 of 10.
    stream.add("the well", tick=20, importance=8, embedding=[3, 4])
    (found,) = stream.retrieve(30, query_embedding=[1, 0])
    assert found.relevance == pytest.approx(0.6)
    assert found.recency == pytest.approx(math.exp(-1))
    assert found.importance == pytest.approx(0.8)
    assert found.score == pytest.approx(2 * 0.6 + 0.5 * 0.36787944 + 1.5 * 0.8)


@pytest.mark.requirement("T2")
def test_the_weights_are_one_each_unless_they_are_given() -> None:
    assert StreamWeights() == StreamWeights(1.0, 1.0, 1.0, 0.02)
    with pytest.raises(InvalidInputError, match="decay is -1"):
        StreamWeights(decay=-1)


@pytest.mark.requirement("T3")
def test_what_points_away_or_nowhere_has_no_relevance() -> None:
    stream = MemoryStream("ana")
    stream.add("against", 0, embedding=[-1, 0])
    stream.add("without", 0)
    stream.add("zero", 0, embedding=[0, 0])
    assert [f.relevance for f in stream.retrieve(0, query_embedding=[1, 0])] == [0, 0, 0]
    assert [f.relevance for f in stream.retrieve(0)] == [0, 0, 0]


@pytest.mark.requirement("T4")
def test_a_memory_accessed_in_the_future_is_fresh() -> None:
    stream = MemoryStream("ana")
    stream.append(Memory("m", "ana", 5, "later", last_access_tick=90))
    assert stream.retrieve(10, refresh=False)[0].recency == 1.0


@pytest.mark.requirement("T6")
def test_only_what_is_returned_is_refreshed() -> None:
    stream = MemoryStream("ana")
    kept, left = stream.add("kept", 0, importance=9), stream.add("left", 0, importance=1)
    stream.retrieve(40, k=1, refresh=False)
    assert [stream[one.id].last_access_tick for one in (kept, left)] == [0, 0]
    (found,) = stream.retrieve(40, k=1)
    assert found.memory.last_access_tick == 40
    assert [stream[one.id].last_access_tick for one in (kept, left)] == [40, 0]


@pytest.mark.requirement("T6")
def test_an_empty_stream_answers_with_nothing() -> None:
    assert MemoryStream("ana").retrieve(5, query_embedding=[1, 0]) == []


rows = st.lists(
    st.tuples(
        st.integers(0, 100),
        st.integers(1, 10),
        st.none() | st.tuples(*[st.integers(-3, 3)] * 3),
    ),
    max_size=12,
)


@pytest.mark.requirement("T6", "T17")
@given(rows, st.tuples(*[st.integers(-3, 3)] * 3), st.integers(0, 120), st.integers(1, 5))
def test_a_retrieval_ranks_as_a_loop_over_all_memories_would(
    memories: list[tuple[int, int, tuple[int, int, int] | None]],
    query: tuple[int, int, int],
    now: int,
    k: int,
) -> None:
    stream = MemoryStream("ana")
    naive = []
    for tick, importance, vector in memories:
        memory = stream.add("m", tick, importance=importance, embedding=vector)
        near = 0.0 if vector is None else max(0.0, cosine(vector, query))
        naive.append((memory.id, near + math.exp(-0.02 * max(0, now - tick)) + importance / 10))
    naive.sort(key=lambda pair: -pair[1])
    found = stream.retrieve(now, query_embedding=query, k=k, refresh=False)
    assert [f.score for f in found] == pytest.approx([score for _, score in naive[:k]])


@pytest.mark.requirement("T17")
def test_a_vector_of_another_dimension_is_refused_and_changes_nothing() -> None:
    stream = MemoryStream("ana")
    stream.add("flat", 0, embedding=[1, 0])
    with pytest.raises(InvalidVectorError, match="3 and 2 dimensions"):
        stream.add("deep", 0, embedding=[1, 0, 0])
    with pytest.raises(InvalidVectorError):
        stream.retrieve(0, query_embedding=[1, 0, 0])
    assert len(stream) == 1


def test_a_memory_comes_under_an_id_of_its_own() -> None:
    stream = MemoryStream("ana")
    shared = Memory("ana-1", "eve", 0, "told by eve")
    stream.append(shared)
    with pytest.raises(InvalidInputError, match="ana-1"):
        stream.append(shared)
    assert stream.add("own", 1).id not in {"ana-1"}
    assert stream["ana-1"] == replace(shared, agent_id="ana")
    assert "ana-1" in stream
    with pytest.raises(InvalidInputError):
        stream.retrieve(0, k=0)
