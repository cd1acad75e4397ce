"""Words: any text can be asked for, and what holds the word is found."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.store.fulltext import pairs
from tests.store.processes import embedder

ALSO = st.sampled_from(
    ["AND", "OR", "NOT", "NEAR(", '"', "'", "*", "foo.bar", "a:b", "^x", "-y", "{", ")", "東"]
)
ANYTHING = st.lists(
    st.one_of(ALSO, st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)),
    max_size=6,
).map(" ".join)
LONE = st.text(st.characters(categories=["Cs"]), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(embedder=embedder()) as made:
        for number in range(20):
            made.add(f"plain text {number} about foo.bar and 東京都")
        yield made


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.one_of(ANYTHING, LONE))
def test_no_text_raises_when_it_is_asked_for(memory: Memory, text: str) -> None:
    hits = memory.recall(text, 5, sources=["lexical"])
    assert len(hits) <= 5


@settings(max_examples=150, deadline=None)
@given(text=ANYTHING.filter(str.strip))
def test_a_stored_text_is_found_by_each_of_its_words(text: str) -> None:
    with Memory(embedder=embedder()) as memory:
        event = memory.add(text).id
        assert memory.get(event).text == text
        words = [word for word in text.split() if word.isascii() and word.isalnum()]
        for word in words:
            hits = memory.recall(word, sources=["lexical"])
            assert [hit.event.event_id for hit in hits if hit.event] == [event]
        assert memory.admin.check() == []


def test_lone_surrogates_are_refused_with_a_reason_and_nothing_is_stored() -> None:
    with Memory(embedder=embedder()) as memory:
        with pytest.raises(InvalidInputError, match="surrogate"):
            memory.add("broken \ud800 text")
        with pytest.raises(InvalidInputError, match="surrogate"):
            memory.add("fine", aliases=["broken \ud800 alias"])
        assert len(memory) == 0
        assert memory.add("whole text").id == 1


def test_words_of_scripts_without_spaces_are_found_inside_a_sentence(memory: Memory) -> None:
    with Memory(embedder=embedder()) as other:
        other.add("我喜欢猫和狗")
        other.add("今天下雨")
        other.add("ฉันรักแมว")
        for word, event in (("喜欢", 1), ("猫", 1), ("下雨", 2), ("แมว", 3)):
            hits = other.recall(word, sources=["lexical"])
            assert [hit.event.event_id for hit in hits if hit.event] == [event], word
    assert pairs("no such script") == []


def test_a_word_in_every_event_does_not_hide_the_rare_one() -> None:
    with Memory(embedder=embedder()) as memory:
        from cvx.types import Event

        vectors = embedder().embed(["x"])
        memory.add_many(
            Event(
                entity_id=0, timestamp=n, text=f"the common word and number{n}", vector=vectors[0]
            )
            for n in range(1500)
        )
        hits = memory.recall("the common number77", 3, sources=["lexical"])
        assert [hit.event.event_id for hit in hits if hit.event] == [78]
        # With nothing rare in it: the newest that hold them all.
        assert memory.record.newest_holding(["common", "word"], 3, "true", []) == [1500, 1499, 1498]


def test_a_word_is_found_in_its_other_forms() -> None:
    with Memory(embedder=embedder()) as memory:
        event = memory.add("she exercises every morning").id
        memory.add("a chair")
        for word in ("exercise", "exercising", "Exercises", "mornings"):
            hits = memory.recall(word, sources=["lexical"])
            assert [hit.event.event_id for hit in hits if hit.event] == [event], word


def test_the_events_that_hold_a_word_are_named() -> None:
    with Memory(embedder=embedder()) as memory:
        for text in ("a lamp", "two lamps", "a door", "我喜欢猫", "'); DROP TABLE events; --"):
            memory.add(text)
        for word, events in (
            ("lamp", [1, 2]),
            ("doo*", [3]),
            ("doo", []),
            ("喜欢", [4]),
            ("window", []),
            ("*", []),
            ("", []),
        ):
            assert memory.record.holders(word, most=9).tolist() == events
            assert memory.record.holding(word, np.arange(1, 6)).tolist() == events
        assert memory.record.holders("lamp", most=1).tolist() == [1]
        assert memory.record.holders("lamp", after=1, most=9).tolist() == [2]
        assert memory.record.holding("lamp", np.array([2, 3, 9])).tolist() == [2]


def test_an_event_is_found_by_the_words_of_its_aliases() -> None:
    with Memory(embedder=embedder()) as memory:
        event = memory.add("the mug is on the table", aliases=["porcelain vessel", "喜欢"]).id
        other = memory.add("a chair").id

        def found(words: str) -> list[int | None]:
            hits = memory.recall(words, sources=["lexical"])
            return [hit.event.event_id for hit in hits if hit.event]

        for words in ("mug", "vessel", "喜欢"):
            assert found(words) == [event]
        memory.update(event, aliases=["drinking gear"])
        memory.update(other, aliases=["seating gear"])
        assert set(found("gear")) == {event, other}
        for words in ("mug", "vessel", "喜欢"):
            assert found(words) == [event]
        memory.erase(event)
        assert found("gear") == [other]
        assert found("vessel") == []
        assert memory.admin.check() == []
