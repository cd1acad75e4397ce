"""Words that many hold: whose words they are decides whether they say too little."""

from __future__ import annotations

from cvx.memory import Memory
from cvx.recall.corpus import Corpus
from cvx.recall.scope import Asker, scope_of
from cvx.recall.view import MOST_HOLDERS, View
from cvx.types import Cue, Event
from tests.recall.rooms import axis, room


def held(memory: Memory, corpus: Corpus, namespace: str) -> list[int] | None:
    """The events that hold "lantern", as a namespace sees them."""
    scope = scope_of(corpus, Asker(namespace))
    rows = View(corpus, memory.index, scope, Cue("lantern"), 0, 5).postings("lantern")
    return None if rows is None else corpus.event_ids[rows].tolist()


def test_a_word_that_only_others_use_often_still_counts() -> None:
    memory = room()
    own = memory.add("x lantern", namespace="ana")
    memory.add_many(
        [
            Event(0, at, f"x lantern {at}", axis("x"), namespace="ben")
            for at in range(MOST_HOLDERS + 1)
        ]
    )
    corpus = Corpus(memory.record)
    corpus.refresh()
    for _ in range(2):
        assert held(memory, corpus, "ana") == [own]
        assert held(memory, corpus, "ben") is None
