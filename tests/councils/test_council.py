"""A council over a memory: what is logged, with which causes, and what it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cvx.councils import Council, MemoryStream, TCMFRetriever
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError, UnknownError
from cvx.memory import Memory
from cvx.types import Event
from tests.councils.plague import QUESTION, REFUSAL, SICK, SYMPTOMS


def council(window_ticks: int = 48, settings: str = "default") -> Council:
    return Council(Memory(embedder=LexicalEmbedder()), settings, window_ticks=window_ticks)


@pytest.mark.requirement("T23")
def test_crises_decisions_and_outcomes_are_logged_with_their_causes() -> None:
    made = council()
    cuts = made.decision("Budget cuts passed", 60, "senate")
    refusal = made.outcome("Quarantine refused", 65, "health", causes=[cuts])
    plague = made.crisis("Plague outbreak", 80, "health", causes=[refusal])
    assert made.graph.predecessors(plague) == {refusal: 1, cuts: 2}
    assert [event.kind for event in made.graph] == ["decision", "outcome", "crisis"]
    assert [e.id for e in made.graph.events_for_institution("health")] == [refusal, plague]
    assert [e.institution_id for e in made.graph] == ["senate", "health", "health"]
    assert made.graph.events_for_institution("treasury") == []


def test_a_crisis_that_nobody_logged_is_refused() -> None:
    with pytest.raises(UnknownError, match="no event 999 in the graph"):
        asyncio.run(council().context("What now?", crisis=999))


@pytest.mark.requirement("T9", "T23")
def test_as_published_an_event_without_causes_is_linked_by_nearness_unless_that_is_off() -> None:
    def logged(window: int) -> int:
        made = council(settings="tcmf-seed", window_ticks=window)
        made.decision("The quarantine was refused", 60, "senate")
        made.decision("A statue was unveiled", 30, "senate")
        return len(made.graph.predecessors(made.crisis("The quarantine was missing", 63, "health")))

    assert logged(48) == 1
    assert logged(0) == 0


@pytest.mark.requirement("B13", "T23")
def test_an_event_without_causes_is_linked_to_what_is_likely_and_to_nothing_else() -> None:
    made = council()
    refused = made.decision("The quarantine was refused", 60, "senate")
    made.decision("A statue was unveiled", 61, "senate")
    plague = made.crisis("The plague spread because the quarantine was refused", 63, "health")
    (link,) = made.graph.causes(plague)
    assert (link.cause, link.state) == (refused, "judged")
    assert made.graph.causes(made.crisis("A lorry fell over", 64, "health")) == []
    off = council(window_ticks=0)
    off.decision("The quarantine was refused", 60, "senate")
    assert off.graph.causes(off.crisis("It spread because it was refused", 63, "health")) == []


@pytest.mark.requirement("T23")
def test_a_cause_that_cannot_be_is_refused_and_nothing_is_added() -> None:
    made = council()
    with pytest.raises(UnknownError, match="log it first"):
        made.crisis("Plague", 80, "health", causes=[5])
    late = made.decision("Too late", 90, "health")
    with pytest.raises(InvalidInputError):
        made.crisis("Plague", 80, "health", causes=[late])
    assert len(made.graph) == len(made.memory) == 1


@pytest.mark.requirement("T12", "T18")
def test_a_council_hears_the_refusal_before_what_only_sounds_like_the_plague() -> None:
    made = council()
    refused = made.decision("Quarantine proposal refused: no infrastructure", 65, "senate")
    plague = made.crisis(QUESTION, 80, "health", causes=[refused])
    made["Mayor Adisa"].saw(REFUSAL, 66, importance=8)
    for text in (SYMPTOMS, SICK, "Plague is all the market district talks of"):
        made["Merchant Reza"].saw(text, 78)
    found = asyncio.run(made.context(QUESTION, crisis=plague, k=2))
    assert found.recalled[0].name == "Mayor Adisa"
    assert found.recalled[0].witness_of is not None
    assert found.recalled[0].witness_of.id == refused
    assert [event.tick for event in found.chain] == [65]
    assert found.degraded == ()
    told = asyncio.run(made.context(QUESTION))
    assert told.recalled[0].memory.text != REFUSAL
    assert len(told.recalled) == 4
    assert "no crisis event" in told.degraded[0]


@pytest.mark.requirement("T2", "T12")
def test_a_council_is_found_again_in_its_folder(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
        made = Council(memory)
        plague = made.crisis(QUESTION, 80, "health", causes=[made.decision("Cuts", 60, "senate")])
        made["ana"].saw(REFUSAL, 66, importance=8)
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
        again = Council(memory)
        (seen,) = again["ana"]
        assert (seen.text, seen.tick, seen.importance) == (REFUSAL, 66, 8.0)
        assert [*again.citizens()] == ["ana"]
        found = asyncio.run(again.context(QUESTION, crisis=plague))
        assert [one.memory.text for one in found.recalled] == [REFUSAL]
        assert [event.text for event in found.chain] == ["Cuts"]


@pytest.mark.requirement("T2")
def test_what_a_citizen_saw_is_an_event_of_the_memory_and_nobody_elses() -> None:
    made = council()
    made["ana"].saw("the well is dry", 10, importance=8)
    made["bo"].saw("a quiet morning", 11)
    (told,) = made.memory.add_many([Event(timestamp=3, text="bo was told", namespace="bo")])
    assert made["bo"][str(told)].text == "bo was told"
    assert str(told) not in made["ana"]
    (hit,) = made.memory.recall("the well", namespace="ana")
    assert hit.event is not None
    assert (hit.event.text, hit.event.importance, hit.event.timestamp) == ("the well is dry", 8, 10)
    found = made["bo"].retrieve(12)
    assert [one.memory.text for one in found] == ["a quiet morning", "bo was told"]
    assert len(made.graph) == 0


@pytest.mark.requirement("T12")
def test_streams_alone_and_streams_of_a_memory_are_ranked_alike() -> None:
    embedder = LexicalEmbedder()
    made = council()
    alone = {name: MemoryStream(name) for name in ("ana", "bo")}
    for at, text in enumerate((REFUSAL, SYMPTOMS, SICK, "a quiet morning")):
        name = ("ana", "bo")[at % 2]
        made[name].saw(text, 60 + at, importance=at + 1)
        alone[name].add(text, 60 + at, importance=at + 1, embedding=embedder.embed([text])[0])
    question = embedder.embed([QUESTION])[0]

    def scores(streams: dict[str, MemoryStream]) -> list[tuple[str, float]]:
        found = [streams[n].retrieve(80, query_embedding=question, refresh=False) for n in streams]
        return [(one.memory.text, round(one.score, 5)) for each in found for one in each]

    assert scores(alone) == scores(made.citizens())
    assert TCMFRetriever().settings == made.retriever.settings


def test_a_citizen_without_a_name_is_refused_and_is_not_the_world() -> None:
    made = council()
    for name in ("", 7, None):
        with pytest.raises(InvalidInputError, match="the name of a citizen"):
            made[name].saw("They cut the budget", 61)  # type: ignore[index]
    assert len(made.memory) == 0


@pytest.mark.parametrize("clock", ["utc", "ticks", "turns"])
def test_a_tick_that_is_no_number_is_refused_by_name(clock: str) -> None:
    council = Council(Memory(embedder=LexicalEmbedder(), clock=clock))
    council.decision("Budget cuts passed", 1, "senate")
    with pytest.raises(InvalidInputError, match="timestamp is '6'"):
        council.crisis("Plague", "6", "health")  # type: ignore[arg-type]
