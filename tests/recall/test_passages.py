"""A memory of passages is ranked by what each says, whatever stands beside it."""

from __future__ import annotations

import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.recall.ranking_signals import DEFAULT_WEIGHTS, PASSAGE_WEIGHTS

FILLER = "It was built of brick and has been repaired several times since, as the records say. " * 3


def remembered(n: int, **told: object) -> Memory:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add_many(
        {
            "text": f"The lighthouse number {at} stands at cape {at}. {FILLER}",
            "timestamp": at,
            **told,
        }
        for at in range(n)
    )
    return memory


def weighed(memory: Memory) -> set[str]:
    hits = memory.recall("Which lighthouse stands at cape 7?", floor=-1.0)
    return {factor.name for hit in hits for factor in hit.factors}


@pytest.mark.parametrize("told", [{}, {"metadata": {"title": "Lighthouses"}}])
def test_long_texts_that_nobody_said_are_weighed_as_passages(told: dict[str, object]) -> None:
    memory = remembered(40, **told)
    assert not weighed(memory) & (set(DEFAULT_WEIGHTS) - set(PASSAGE_WEIGHTS))
    assert memory.recall("Which lighthouse stands at cape 7?", floor=-1.0)[0].id == 8
    # What feedback is about has the columns that were weighed.
    hits = memory.recall("Which lighthouse stands at cape 9?", floor=-1.0)
    memory.feedback(hits, helped=[hits[0]])


def test_a_conversation_few_texts_and_own_weights_are_not() -> None:
    assert "session_best" in weighed(remembered(40, metadata={"speaker": "Ann"}))
    assert "session_best" in weighed(remembered(20))
    memory = remembered(40)
    memory.learning.recall_with({"dense": 1.0, "length": 1.0})
    assert "bm25" not in weighed(memory)


def test_a_memory_that_becomes_a_conversation_is_weighed_as_one() -> None:
    memory = remembered(40)
    assert "session_best" not in weighed(memory)
    memory.add("Who was there?", metadata={"speaker": "Ann"})
    assert "session_best" in weighed(memory)
