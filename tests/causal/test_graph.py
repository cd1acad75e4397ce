"""The causal graph: what is linked, what a walk finds, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.causal import CausalGraph
from cvx.errors import (
    EffectFirstWarning,
    InvalidInputError,
    InvalidVectorError,
    UnknownError,
)
from tests.causal.graphs import Drawn, built, drawn_graphs, every_way


def unrest() -> CausalGraph:
    """The chain of the blueprint: from a drought to riots."""
    graph = CausalGraph()
    chain = [
        ("drought", 20),
        ("rationing", 25),
        ("black-market", 30),
        ("unrest", 45),
        ("riots", 60),
    ]
    for name, tick in chain:
        graph.add_event(name, f"the {name}", tick, kind="crisis", institution_id="senate")
    for (cause, _), (effect, _) in pairwise(chain):
        graph.link(cause, effect, 0.9)
    return graph


@pytest.mark.requirement("T7")
def test_an_event_comes_back_as_it_was_added() -> None:
    graph = CausalGraph()
    graph.add_event("cuts", "budget cuts", 60, kind="policy", institution_id="treasury")
    event = graph.get_event("cuts")
    assert event is not None
    assert (event.text, event.tick, event.kind) == ("budget cuts", 60, "policy")
    assert (event.institution_id, event.embedding) == ("treasury", None)
    assert graph.get_event("nothing") is None
    assert graph.size == len(graph) == 1
    assert "cuts" in graph
    assert "nothing" not in graph


@pytest.mark.requirement("T7")
def test_an_event_without_a_name_gets_a_number_that_is_free() -> None:
    graph = CausalGraph()
    assert graph.add_event(1, "named by a number", 0) == 1
    assert [graph.add_event(None, "nameless", 0) for _ in range(2)] == [2, 3]


@pytest.mark.parametrize(("name", "text"), [(1.5, "x"), (("a",), "x"), ("a", None), ("a", 5)])
def test_an_event_without_a_name_or_text_that_can_be_one_is_refused(name: Any, text: Any) -> None:
    graph = CausalGraph()
    with pytest.raises(InvalidInputError, match=r"give a str"):
        graph.add_event(name, text, 1)
    assert len(graph) == 0


@pytest.mark.requirement("T7")
def test_events_of_an_institution_come_in_time_order() -> None:
    graph = CausalGraph()
    for name, tick, whose in [("c", 9, "health"), ("a", 3, "health"), ("b", 5, "military")]:
        graph.add_event(name, name, tick, institution_id=whose)
    assert [event.id for event in graph.events_for_institution("health")] == ["a", "c"]
    assert graph.events_for_institution("senate") == []


@pytest.mark.requirement("T7", "T8")
def test_the_chain_of_the_blueprint_is_walked_back_with_its_depths() -> None:
    graph = unrest()
    assert graph.predecessors("riots") == {
        "unrest": 1,
        "black-market": 2,
        "rationing": 3,
        "drought": 4,
    }
    assert graph.predecessors("riots", max_depth=1) == {"unrest": 1}
    assert graph.consequences("drought", max_depth=2) == {"rationing": 1, "black-market": 2}


@pytest.mark.requirement("T8")
def test_an_unknown_event_has_no_predecessors() -> None:
    assert unrest().predecessors("plague") == {}
    assert unrest().consequences("plague") == {}
    with pytest.raises(UnknownError, match="plague"):
        unrest().walk("plague")


@pytest.mark.requirement("T8", "T19")
@given(drawn_graphs(), st.integers(1, 5), st.booleans())
def test_a_walk_finds_what_trying_every_way_finds(
    drawn: Drawn, max_depth: int, backward: bool
) -> None:
    found = built(drawn).walk(0, max_depth, backward=backward)
    expected = every_way(drawn, 0, max_depth, backward=backward)
    assert {r.id: r.depth for r in found.found} == {e: depth for e, (depth, _) in expected.items()}
    for reached in found.found:
        assert reached.weight == pytest.approx(expected[int(reached.id)][1])
    assert not found.truncated
    further = every_way(drawn, 0, max_depth + 1, backward=backward)
    assert found.deeper == (len(further) > len(expected))
    assert [r.depth for r in found.found] == sorted(r.depth for r in found.found)


@pytest.mark.requirement("T8", "T19")
@given(drawn_graphs(), st.integers(1, 5))
def test_every_path_leads_from_the_start_to_what_was_found_and_makes_its_weight(
    drawn: Drawn, max_depth: int
) -> None:
    for reached in built(drawn).walk(0, max_depth).found:
        here, weight = 0, 1.0
        for link in reached.path:
            assert link.effect == here
            here = int(link.cause)
            weight *= drawn.links[here, int(link.effect)]
        assert here == reached.id
        assert weight == pytest.approx(reached.weight)
        assert reached.depth <= len(reached.path) <= max_depth


@pytest.mark.requirement("T8")
def test_a_cycle_ends_and_never_brings_the_start_back() -> None:
    graph = CausalGraph()
    for name in "abc":
        graph.add_event(name, name, 0)
    for cause, effect in ("ab", "bc", "ca"):
        graph.link(cause, effect)
    assert graph.predecessors("a", max_depth=50) == {"c": 1, "b": 2}


@pytest.mark.requirement("T22")
@given(drawn_graphs(), st.integers(1, 4))
def test_a_budget_keeps_the_nearest_and_says_that_there_is_more(
    drawn: Drawn, max_nodes: int
) -> None:
    graph = built(drawn)
    whole, cut = graph.walk(0), graph.walk(0, max_nodes=max_nodes)
    assert len(cut.found) == min(max_nodes, len(whole.found))
    assert cut.truncated == (len(whole.found) > max_nodes)
    depths = sorted(r.depth for r in whole.found)[:max_nodes]
    assert [r.depth for r in cut.found] == depths


@pytest.mark.requirement("T8", "T22")
def test_a_walk_goes_four_links_and_a_thousand_events_far_unless_told_otherwise() -> None:
    graph = CausalGraph()
    for tick in range(7):
        graph.add_event(tick, f"event {tick}", tick)
        if tick:
            graph.link(tick - 1, tick)
    assert graph.predecessors(6) == {5: 1, 4: 2, 3: 3, 2: 4}
    assert graph.consequences(0) == {1: 1, 2: 2, 3: 3, 4: 4}
    assert [reached.id for reached in graph.walk(6).found] == [5, 4, 3, 2]
    assert [event.id for event in graph.story(6).events.values()] == [6, 5, 4, 3, 2]
    wide = CausalGraph()
    wide.add_event("flood", "flood", 9)
    for tick in range(1000):
        wide.add_event(tick, f"event {tick}", 1)
        wide.link(tick, "flood")
    assert (len(wide.walk("flood").found), wide.walk("flood").truncated) == (1000, False)
    wide.add_event(1000, "one more", 1)
    wide.link(1000, "flood")
    assert (len(wide.walk("flood").found), wide.walk("flood").truncated) == (1000, True)
    assert len(wide.story("flood").events) == 1001


@pytest.mark.requirement("T22")
def test_a_walk_reaches_across_a_chain_a_thousand_deep() -> None:
    graph = CausalGraph()
    for tick in range(1001):
        graph.add_event(tick, f"event {tick}", tick)
        if tick:
            graph.link(tick - 1, tick)
    assert graph.predecessors(1000, max_depth=2000)[0] == 1000


@pytest.mark.requirement("T7")
def test_a_link_with_an_unknown_end_is_refused_or_passed_over_as_asked() -> None:
    graph = unrest()
    for cause, effect in (("plague", "riots"), ("riots", "plague")):
        with pytest.raises(UnknownError, match="plague"):
            graph.link(cause, effect)
        graph.link(cause, effect, lenient=True)
    assert graph.predecessors("riots", max_depth=1) == {"unrest": 1}
    assert graph.consequences("riots") == {}


@pytest.mark.requirement("T7", "T23")
@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan, math.inf])
def test_a_weight_outside_its_range_is_refused_and_changes_nothing(weight: float) -> None:
    graph = unrest()
    for lenient in (False, True):
        with pytest.raises(InvalidInputError, match="outside"):
            graph.link("drought", "riots", weight, lenient=lenient)
    assert [link.cause for link in graph.causes("riots")] == ["unrest"]


def test_a_link_to_itself_or_of_no_causal_kind_is_refused() -> None:
    graph = unrest()
    with pytest.raises(InvalidInputError, match="itself"):
        graph.link("riots", "riots")
    for kind in ("temporal", "irrelevant", "no_such_kind"):
        with pytest.raises(InvalidInputError, match="caused_success"):
            graph.link("drought", "riots", kind=kind)


def test_an_effect_before_its_cause_is_refused_flagged_or_allowed_as_chosen() -> None:
    with pytest.raises(InvalidInputError, match="happened at 20, before its cause"):
        unrest().link("riots", "drought")
    for chosen in ("allow", "flag"):
        graph = CausalGraph(effect_first=chosen)
        graph.add_event("late", "late", 9)
        graph.add_event("early", "early", 1)
        if chosen == "flag":
            with pytest.warns(EffectFirstWarning, match="before its cause 'late' at 9"):
                graph.link("late", "early")
        else:
            graph.link("late", "early")
        assert graph.predecessors("early") == {"late": 1}
    with pytest.raises(InvalidInputError, match="'refuse' or 'flag' or 'allow'"):
        CausalGraph(effect_first="perhaps")


def test_an_event_that_cannot_be_is_refused_and_changes_nothing() -> None:
    graph = CausalGraph()
    graph.add_event("a", "a", 0, embedding=[1, 0])
    with pytest.raises(InvalidInputError, match="'a' is in the graph"):
        graph.add_event("a", "again", 1)
    with pytest.raises(InvalidVectorError, match="3 dimensions"):
        graph.add_event("b", "b", 1, embedding=[1, 0, 0])
    with pytest.raises(InvalidVectorError):
        graph.add_event("b", "b", 1, embedding=[math.nan, 0])
    assert graph.size == 1
    impossible: list[dict[str, Any]] = [{"max_depth": 0}, {"max_nodes": 0}, {"min_weight": 2.0}]
    for options in impossible:
        with pytest.raises(InvalidInputError):
            graph.walk("a", **options)


def test_a_link_keeps_its_reason_and_the_same_link_again_replaces_it() -> None:
    graph = unrest()
    graph.link("unrest", "riots", 0.4, why="the police withdrew", evidence="a report")
    (link,) = graph.causes("riots")
    assert (link.weight, link.why, link.evidence) == (0.4, "the police withdrew", "a report")
    assert [found.effect for found in graph.effects("unrest")] == ["riots"]


@pytest.mark.requirement("T21")
def test_a_link_between_institutions_counts_less_as_chosen() -> None:
    def graph(attenuation: float | dict[tuple[str, str], float]) -> CausalGraph:
        made = CausalGraph(attenuation=attenuation)
        for name, tick, whose in [("cuts", 1, "treasury"), ("unpaid", 2, "military")]:
            made.add_event(name, name, tick, institution_id=whose)
        made.add_event("mutiny", "mutiny", 3, institution_id="military")
        made.link("cuts", "unpaid", 0.8)
        made.link("unpaid", "mutiny", 0.5)
        return made

    def weights(made: CausalGraph) -> dict[object, float]:
        return {r.id: round(r.weight, 6) for r in made.walk("mutiny").found}

    assert weights(graph(1.0)) == {"unpaid": 0.5, "cuts": 0.4}
    assert weights(graph(0.5)) == {"unpaid": 0.5, "cuts": 0.2}
    assert weights(graph({("treasury", "military"): 0.25})) == {"unpaid": 0.5, "cuts": 0.1}
    assert weights(graph({("military", "treasury"): 0.25})) == {"unpaid": 0.5, "cuts": 0.4}
    with pytest.raises(InvalidInputError, match=r"a factor of attenuation is 1\.5"):
        CausalGraph(attenuation=1.5)


@pytest.mark.requirement("B1")
def test_the_graph_of_a_time_knows_nothing_later() -> None:
    graph = unrest()
    graph.link("drought", "unrest", 0.2, recorded=50)
    graph.link("drought", "unrest", 0.7, recorded=80)
    past = graph.as_of(50)
    assert past.size == 4
    assert past.get_event("riots") is None
    assert {link.cause: link.weight for link in past.causes("unrest")} == {
        "black-market": 0.9,
        "drought": 0.2,
    }
    assert {link.cause: link.weight for link in graph.causes("unrest")}["drought"] == 0.7
    assert "drought" not in [link.cause for link in graph.as_of(49).causes("unrest")]


@pytest.mark.requirement("T7")
@given(drawn_graphs())
def test_networkx_gets_every_event_and_link(drawn: Drawn) -> None:
    copy = built(drawn).to_networkx()
    assert set(copy.nodes) == set(range(drawn.nodes))
    assert {ends: copy.edges[ends]["weight"] for ends in copy.edges} == drawn.links
    assert copy.nodes[0]["text"] == "event 0"
