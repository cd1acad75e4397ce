"""A core among others: as a graph, closed, and shared by threads."""

from __future__ import annotations

import threading
from datetime import UTC, timedelta

import pytest

import cvx
from cvx.causal import CausalMemoryCore
from cvx.errors import CoreError
from tests.causal.cores import START, Model, core, no, yes


@pytest.mark.requirement("X5")
def test_a_core_becomes_a_causal_graph_with_its_stories() -> None:
    made = core(Model(yes))
    made.add_event("Rain fell.")
    made.add_event("Rain flooded the cellar.")
    graph = made.graph()
    assert graph.predecessors(2) == {1: 1}
    assert graph.story(2).narrative() == (
        "Rain flooded the cellar. This was because Rain fell (Water came in)."
    )
    first = graph.get_event(1)
    assert first is not None
    assert first.tick == round((START + timedelta(seconds=1)).replace(tzinfo=UTC).timestamp() * 1e6)


def test_a_closed_core_says_so() -> None:
    with core() as made:
        made.add_event("Rain.")
    made.close()
    for call in (lambda: made.add_event("Flood."), made.events, lambda: made.chain(1)):
        with pytest.raises(CoreError, match="closed"):
            call()


def test_threads_share_a_core() -> None:
    made = core(Model(no))

    def work(number: int) -> None:
        for at in range(5):
            made.add_event(f"Rain {number} {at}.")
            made.get_context("rain")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.event_id for event in made.events()] == list(range(1, 21))


def test_the_core_is_found_at_the_top() -> None:
    assert cvx.CausalMemoryCore is CausalMemoryCore
