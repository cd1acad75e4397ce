"""Reflections: when it is time, what they say, and what they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from cvx.causal import CountingWriter, LLMWriter, ReflectionWriter, Reflector
from cvx.councils import Memory, MemoryStream
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory as CvxMemory
from cvx.types import Event


def dry_wells(days: int = 4, importance: float = 8.0) -> MemoryStream:
    stream = MemoryStream("ana")
    for day in range(days):
        stream.add(f"the well is dry on day {day}", day, importance=importance)
    return stream


def crises() -> list[Event]:
    told = [
        ("Plague in the eastern ward", "health"),
        ("Plague in the harbour", "health"),
        ("Plague among the merchants", "health"),
        ("The treasury is empty", "treasury"),
        ("Merchants flee the plague", "treasury"),
    ]
    return [
        Event(timestamp=10 * at, text=text, event_id=at, source=group)
        for at, (text, group) in enumerate(told)
    ]


@pytest.mark.requirement("T20")
def test_nothing_is_reflected_before_enough_has_happened() -> None:
    stream = dry_wells(3)
    assert stream.reflect(9, Reflector(threshold=24.1)) == []
    assert len(stream) == 3
    assert len(stream.reflect(9, Reflector(threshold=24.0))) == 1


@pytest.mark.requirement("T20")
def test_a_reflection_is_a_memory_that_cites_what_it_rests_on() -> None:
    stream = dry_wells()
    (made,) = stream.reflect(9, Reflector(threshold=20))
    assert (made.kind, made.tick, made.agent_id) == ("reflection", 9, "ana")
    assert made.sources == ("ana-0", "ana-1", "ana-2", "ana-3")
    assert made.text == (
        "4 memories of the kind observation, between 0 and 3, "
        "most often of day (4 times), dry (4 times), well (4 times)"
    )
    assert made.importance == 6.0
    assert made in list(stream)


@pytest.mark.requirement("T20")
def test_what_a_reflection_rests_on_is_not_reflected_on_again() -> None:
    stream, reflector = dry_wells(), Reflector(threshold=20)
    stream.reflect(9, reflector)
    assert stream.reflect(10, Reflector(threshold=0.1)) == []
    assert stream.reflect(10, reflector) == []
    for day in range(3):
        stream.add("the river is dry too", 10 + day, importance=9)
    (again,) = stream.reflect(13, reflector)
    assert again.sources == ("ana-5", "ana-6", "ana-7")


def of_source(event: Event) -> str:
    return event.source


@pytest.mark.requirement("T20")
def test_counts_are_by_kind_and_institution_and_period_and_by_word() -> None:
    insights = CountingWriter(group=of_source).write(crises())
    assert [insight.text for insight in insights] == [
        "4 memories speak of plague, between 0 and 40: 4 of the kind event",
        "3 memories of the kind event, of health, between 0 and 20, most often of plague (3 times)",
    ]
    assert insights[0].sources == (0, 1, 2, 4)
    assert insights[1].sources == (0, 1, 2)
    assert CountingWriter(least=5, group=of_source).write(crises()) == []
    assert len(CountingWriter(2, 1, of_source).write(crises())) == 1
    assert CountingWriter().write([]) == []


@pytest.mark.requirement("T20")
def test_a_language_model_is_asked_with_numbered_statements_and_must_cite() -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return (
            "Here are my insights:\n"
            "1. The plague spreads with trade (because of 3, 5)\n"
            "- The city is unprepared (because of 1, 2, 99)\n"
            "The end is near.\n"
            "Nothing supports this (because of 77)\n"
        )

    found = LLMWriter(model).write(crises())
    assert [(insight.text, insight.sources) for insight in found] == [
        ("The plague spreads with trade", (2, 4)),
        ("The city is unprepared", (0, 1)),
    ]
    assert "3. Plague among the merchants" in asked[0]
    assert "What 3 high-level insights" in asked[0]
    assert len(LLMWriter(model, count=1).write(crises())) == 1


@pytest.mark.requirement("T20")
def test_where_a_model_fails_or_cites_nothing_counts_are_written() -> None:
    def broken(prompt: str) -> str:
        raise ConnectionError(prompt)

    for client in (broken, lambda _: "All is well.", lambda _: 7):
        assert LLMWriter(client).write(crises()) == CountingWriter().write(crises())


@pytest.mark.requirement("T20")
def test_a_reflection_gets_a_vector_and_a_group_where_they_are_given() -> None:
    stream = dry_wells()
    reflector = Reflector(
        threshold=20,
        embed=lambda text: np.array([len(text), 1.0]),
        writer=CountingWriter(group=lambda event: event.namespace),
    )
    (made,) = stream.reflect(9, reflector)
    assert made.embedding is not None
    assert made.embedding.tolist() == [len(made.text), 1.0]
    assert ", of ana," in made.text


@pytest.mark.requirement("T20")
def test_a_memory_reflects_on_its_events_and_keeps_their_ids() -> None:
    made = CvxMemory(embedder=LexicalEmbedder(dim=64))
    events = [
        made.add(f"the well is dry, day {day}", timestamp=day, entity="1", salience=0.8).id
        for day in range(4)
    ]
    other = made.add("a quiet evening", timestamp=5, entity="2").id
    hidden = made.add("the well is dry, says ana", namespace="ana", timestamp=5).id
    (reflection,) = made.causes.reflect(Reflector(threshold=30), timestamp=9)
    found = made.get(reflection)
    assert found.kind == "reflection"
    assert found.metadata == {"sources": events}
    assert ", of 1," in found.text
    assert found.salience == pytest.approx(5 / 9)
    assert {other, hidden}.isdisjoint(found.metadata["sources"])
    assert made.causes.reflect(Reflector(threshold=30)) == []
    assert [
        hit.event.event_id for hit in made.recall("memories of the kind event", k=1) if hit.event
    ]


def test_a_reflector_that_cannot_be_is_refused() -> None:
    for call in (
        lambda: Reflector(threshold=0),
        lambda: Reflector(latest=0),
        lambda: CountingWriter(least=1),
        lambda: CountingWriter(most=0),
        lambda: LLMWriter(print, count=0),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert isinstance(CountingWriter(), ReflectionWriter)


def test_only_the_latest_are_looked_at() -> None:
    stream = MemoryStream("ana")
    for number in range(6):
        stream.append(Memory(f"m{number}", "ana", number, "the well is dry", importance=9.0))
    (made,) = stream.reflect(9, Reflector(threshold=10, latest=3))
    assert made.sources == ("m3", "m4", "m5")
