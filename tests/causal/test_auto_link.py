"""Links that nobody has drawn: nearness in time and in meaning."""

from __future__ import annotations

from typing import Any

import pytest

from cvx.causal import CausalGraph
from cvx.errors import InvalidInputError, UnknownError


@pytest.mark.requirement("T9")
def test_what_came_shortly_before_is_linked_by_the_weight_worked_out_by_hand() -> None:
    graph = CausalGraph()
    # 0.5 exp(-0.05 * 10) + 0.5 * 0.6 = 0.303265... + 0.3
    graph.add_event("alike", "alike", 40, embedding=[3, 4])
    # 0.5 exp(-0.05 * 48) = 0.045: below 0.3 without meaning, and 0.545 with it.
    graph.add_event("far", "far", 2, embedding=[0, 1])
    graph.add_event("edge", "edge", 2, embedding=[1, 0])
    # 0.5 exp(-0.5) = 0.303: time alone is enough up to ten ticks.
    graph.add_event("mute", "mute", 40)
    graph.add_event("mute before", "mute before", 39)
    graph.add_event("too old", "too old", 1, embedding=[1, 0])
    graph.add_event("same time", "same time", 50, embedding=[1, 0])
    graph.add_event("against", "against", 20, embedding=[-1, 0])
    graph.add_event("crisis", "crisis", 50, embedding=[1, 0])
    made = graph.auto_link_predecessors("crisis")
    assert {link.cause: link.weight for link in made} == {
        "alike": 0.603,
        "edge": 0.545,
        "mute": 0.303,
    }
    assert {link.cause for link in graph.causes("crisis")} == {"alike", "edge", "mute"}


@pytest.mark.requirement("T9")
def test_the_threshold_acts_only_when_it_is_given() -> None:
    def linked(**options: Any) -> set[object]:
        graph = CausalGraph()
        graph.add_event("near", "near", 9)
        graph.add_event("alike", "alike", 8, embedding=[1, 0])
        graph.add_event("crisis", "crisis", 10, embedding=[1, 0])
        return {link.cause for link in graph.auto_link_predecessors("crisis", **options)}

    assert linked() == {"near", "alike"}
    assert linked(semantic_threshold=0.5) == {"alike"}
    assert linked(window_ticks=1) == {"near"}


@pytest.mark.requirement("T9")
def test_links_to_nothing_or_within_no_time_are_refused() -> None:
    graph = CausalGraph()
    graph.add_event("near", "near", 9)
    graph.add_event("crisis", "crisis", 10)
    with pytest.raises(UnknownError):
        graph.auto_link_predecessors("nothing")
    with pytest.raises(InvalidInputError, match="window_ticks is 0"):
        graph.auto_link_predecessors("crisis", window_ticks=0)
