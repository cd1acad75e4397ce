"""Events that enter the graph as they happen."""

from __future__ import annotations

import pytest

from cvx.causal import CausalEvent, CausalGraph, EventLog
from cvx.embed import LexicalEmbedder
from cvx.errors import UnknownEventError


@pytest.mark.requirement("T23")
def test_crises_decisions_and_outcomes_are_logged_with_their_causes() -> None:
    graph = CausalGraph()
    log = EventLog(graph)
    cuts = log.decision("Budget cuts passed", 60, "senate")
    refusal = log.outcome("Quarantine refused", 65, "health", causes=[cuts])
    plague = log.crisis("Plague outbreak", 80, "health", causes=[refusal])
    assert graph.predecessors(plague) == {refusal: 1, cuts: 2}
    kinds = [event.kind for event in graph]
    assert kinds == ["decision", "outcome", "crisis"]
    assert [event.id for event in graph.events_for_institution("health")] == [refusal, plague]


@pytest.mark.requirement("T23")
def test_an_event_without_causes_is_linked_by_nearness_unless_that_is_off() -> None:
    embedder = LexicalEmbedder()

    def logged(window: int) -> int:
        graph = CausalGraph()
        log = EventLog(
            graph,
            embed=lambda text: embedder.embed([text])[0],
            window_ticks=window,
        )
        log.decision("The quarantine was refused", 60, "senate")
        log.decision("A statue was unveiled", 30, "senate")
        return len(graph.predecessors(log.crisis("The quarantine was missing", 63, "health")))

    assert logged(48) == 1
    assert logged(0) == 0


@pytest.mark.requirement("T23")
def test_listeners_hear_of_every_event_once_it_is_linked() -> None:
    graph = CausalGraph()
    log = EventLog(graph)
    heard: list[tuple[str, int]] = []

    def listener(event: CausalEvent) -> None:
        heard.append((event.text, len(graph.predecessors(event.id))))

    log.listen(listener)
    first = log.decision("one", 1, "senate")
    log.crisis("two", 2, "senate", causes=[first])
    assert heard == [("one", 0), ("two", 1)]


def test_a_cause_that_was_never_logged_is_refused_and_nothing_is_added() -> None:
    graph = CausalGraph()
    with pytest.raises(UnknownEventError, match="log it first"):
        EventLog(graph).crisis("Plague", 80, "health", causes=["rumour"])
    assert graph.size == 0
