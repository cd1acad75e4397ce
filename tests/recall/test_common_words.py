"""Words that many hold: only what an asker may know of decides whether they say too little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.memory import Memory
from cvx.recall import Pipeline, corpus_indexes
from cvx.recall.corpus import Corpus
from cvx.recall.corpus_indexes import MOST_HOLDERS
from cvx.recall.presets import default_pipeline
from cvx.recall.visible_events import Asker, VisibleEvents, scope_of
from cvx.types import Cue, Event
from tests.recall.rooms import EVERYTHING, axis, room

WORDS = ("lantern", "mug", "shelf", "ate", "eats", "eaten", "the", "灯笼", "灯", "笼子")
SAID = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


def told(memory: Memory, texts: Sequence[str], namespace: str) -> None:
    memory.add_many(
        Event(timestamp=at, text=f"x {text}", vector=axis("x"), namespace=namespace)
        for at, text in enumerate(texts)
    )


def held(memory: Memory, corpus: Corpus, namespace: str) -> list[int] | None:
    """The events that hold "lantern", as a namespace sees them."""
    scope = scope_of(corpus, Asker(namespace))
    rows = VisibleEvents(corpus, memory.index, scope, Cue(goal="lantern"), 0, 5, {}).postings(
        "lantern"
    )
    return None if rows is None else corpus.event_ids[rows].tolist()


@pytest.mark.requirement("W4")
@settings(max_examples=60, deadline=None)
@given(st.lists(SAID, min_size=1, max_size=8), st.lists(SAID, max_size=30), SAID, st.booleans())
def test_what_others_store_changes_no_answer_and_no_score(
    own: list[str], others: list[str], cue: str, first: bool
) -> None:
    alone, among = room(), room()
    told(alone, own, "ana")
    for namespace, texts in (("ben", others), ("ana", own))[:: 1 if first else -1]:
        told(among, texts, namespace)
    for pipeline in (default_pipeline(), Pipeline().looking_in(["lexical"])):
        answers = [
            [
                (hit.event.text, hit.score, str([factor.value for factor in hit.factors]))
                for hit in memory.recall(
                    f"x {cue}", 20, namespace="ana", floor=EVERYTHING, pipeline=pipeline
                )
                if hit.event
            ]
            for memory in (alone, among)
        ]
        assert answers[0] == answers[1]


def test_a_word_counts_however_often_others_use_it() -> None:
    memory = room()
    own = [memory.add(f"x lantern {number}", namespace="ana").id for number in range(3)]
    told(memory, ["lantern"] * 20_001, "ben")
    own.append(memory.add("x lantern at last", namespace="ana").id)
    corpus = Corpus(memory.record)
    corpus.refresh()
    for _ in range(2):
        assert held(memory, corpus, "ana") == own
        assert held(memory, corpus, "ben") is None
    hits = memory.recall("x lantern", 5, namespace="ana", sources=["lexical"])
    assert len(hits) == 4


@pytest.mark.parametrize("more", [0, 1])
def test_a_word_is_common_above_a_number_of_ones_own_events(more: int) -> None:
    memory = room()
    told(memory, ["lantern"] * (MOST_HOLDERS + more), "")
    told(memory, ["lantern"] * 50, "ben")
    corpus = Corpus(memory.record)
    corpus.refresh()
    found = held(memory, corpus, "")
    assert found is None if more else found == list(range(1, MOST_HOLDERS + 1))


@pytest.mark.parametrize("seed", range(3))
def test_the_holders_of_a_word_are_those_whose_text_holds_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = room()
    corpus = Corpus(memory.record)
    for _ in range(12):
        match rng.integers(5):
            case 0:
                known = memory.record.query("SELECT event_id FROM events WHERE state = 'active'")
                if known:
                    memory.forget(int(rng.choice([row[0] for row in known])))
            case 1:
                known = memory.record.query("SELECT event_id FROM events")
                if known:
                    memory.update(int(rng.choice([row[0] for row in known])), aliases=["x lantern"])
            case _:
                texts = rng.choice(["lantern", "mug"], int(rng.integers(1, 60))).tolist()
                told(memory, texts, str(rng.choice(["ana", "ben"])))
        corpus.refresh()
        for namespace in ("ana", "ben"):
            expected = memory.record.query(
                "SELECT event_id FROM events LEFT JOIN aliases USING (event_id)"
                " WHERE namespace = ? AND state = 'active'"
                " AND (events.text LIKE '%lantern%' OR aliases.text LIKE '%lantern%')"
                " GROUP BY event_id ORDER BY event_id",
                (namespace,),
            )
            assert held(memory, corpus, namespace) == [row[0] for row in expected]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(SAID, st.sampled_from("abc")), min_size=1, max_size=60),
    st.lists(st.tuples(SAID, st.sampled_from("abc")), max_size=20),
    st.sampled_from([1, 4, 16]),
)
def test_where_reading_begins_changes_no_answer(
    before: list[tuple[str, str]], after: list[tuple[str, str]], page: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        memory = room()
        found: dict[int, list[object]] = {page: [], 1 << 16: []}
        corpora = {size: Corpus(memory.record) for size in found}
        for some in (before, after):
            for text, namespace in some:
                told(memory, [text], namespace)
            for size, answers in found.items():
                patch.setattr(corpus_indexes, "_PAGE", size)
                corpora[size].refresh()
                answers += [held(memory, corpora[size], namespace) for namespace in "abcd"]
        assert found[page] == found[1 << 16]
