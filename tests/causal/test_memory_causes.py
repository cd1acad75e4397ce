"""Causes over a memory's own events and links: what is walked, told, and kept from whom."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.errors import (
    EffectFirstWarning,
    InvalidInputError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Edge, Event
from tests.causal.graphs import Drawn, drawn_graphs, every_way


def memory() -> Memory:
    ticks = iter(range(10_000_000, 10_100_000))
    return Memory._opened(None, LexicalEmbedder(dim=16), now=ticks.__next__)


def flooded() -> tuple[Memory, int, int, int]:
    made = memory()
    rain = made.add("It rained all night.", timestamp=10).id
    flood = made.add("The cellar flooded.", timestamp=20).id
    mould = made.add("The books are mouldy.", timestamp=30).id
    made.link(rain, flood, weight=0.8, why="the drain is too small", evidence="the plumber")
    made.link(flood, mould, weight=0.5)
    return made, rain, flood, mould


@pytest.mark.requirement("X5", "T8", "T19")
@settings(max_examples=25)
@given(drawn_graphs(5), st.integers(1, 4), st.booleans())
def test_a_graph_over_a_memory_finds_what_trying_every_way_finds(
    drawn: Drawn, max_depth: int, backward: bool
) -> None:
    made = memory()
    events = [made.add(f"event {node}").id for node in range(drawn.nodes)]
    for (cause, effect), weight in drawn.links.items():
        made.link(events[cause], events[effect], weight=weight, effect_first="allow")
    found = made.causes.graph().walk(events[0], max_depth, backward=backward)
    expected = every_way(drawn, 0, max_depth, backward=backward)
    assert {events.index(int(r.id)): r.depth for r in found.found} == {
        event: depth for event, (depth, _) in expected.items()
    }
    for reached in found.found:
        assert reached.weight == pytest.approx(expected[events.index(int(reached.id))][1])
    ask = made.why if backward else made.consequences
    steps = ask(events[0], max_depth=max_depth).steps
    assert [step.event.event_id for step in steps] == [reached.id for reached in found.found]
    assert [step.weight for step in steps] == [reached.weight for reached in found.found]


def test_why_gives_the_steps_and_tells_them() -> None:
    made, rain, flood, mould = flooded()
    story = made.why(mould)
    steps = story.steps
    assert [(s.event.event_id, s.depth, s.weight) for s in steps] == [
        (flood, 1, 0.5),
        (rain, 2, 0.4),
    ]
    assert (steps[1].edge.why, steps[1].edge.evidence) == ("the drain is too small", "the plumber")
    assert steps[1].edge.recorded is not None
    assert str(story) == (
        "It rained all night, so the cellar flooded (the drain is too small). "
        "That is why the books are mouldy."
    )
    assert story.edges == [step.edge for step in steps]
    assert story.frame()["text"].to_list()[-1] == "The books are mouldy."
    assert str(made.consequences(rain)) == (
        "It rained all night.\nBecause of that, the cellar flooded (the drain is too small). "
        "That is why the books are mouldy."
    )
    both = made.causes.story(flood)
    assert [reached.id for reached in (*both.before, *both.after)] == [rain, mould]


@pytest.mark.requirement("T22")
def test_a_walk_that_was_cut_off_says_so() -> None:
    made = memory()
    end = made.add("the end", timestamp=10**9).id
    for number in range(4):
        made.link(made.add(f"cause {number}").id, end, weight=number / 4)
    told = made.causes.graph().story(end, after=0, max_nodes=2)
    assert [step.weight for step in told.before] == [0.75, 0.5]
    assert told.truncated
    assert not made.why(end).truncated


@pytest.mark.requirement("T22")
def test_a_walk_that_its_depth_ended_says_that_there_is_more() -> None:
    made = memory()
    events = [made.add(f"step {number}").id for number in range(8)]
    for cause, effect in pairwise(events):
        made.link(cause, effect)
    back, on = made.why(events[-1]), made.consequences(events[0])
    assert (back.deeper, on.deeper, back.truncated) == (True, True, False)
    assert str(back).endswith("There is more before that.")
    assert str(on).endswith("There is more after that.")
    for whole in (made.why(events[5]), made.consequences(events[2]), made.why(events[0])):
        assert not whole.deeper
        assert "There is more" not in str(whole)


@pytest.mark.requirement("T7")
def test_an_effect_before_its_cause_is_refused_flagged_or_allowed_as_chosen() -> None:
    made, rain, _, mould = flooded()
    with pytest.raises(InvalidInputError, match="happened at 10, before its cause"):
        made.link(mould, rain)
    with pytest.raises(InvalidInputError, match="give effect_first='allow'"):
        made.causes.graph().link(mould, rain)
    with pytest.raises(InvalidInputError, match="effect_first is 'perhaps'"):
        made.link(rain, mould, effect_first="perhaps")
    assert not made.why(rain)
    for kind in ("irrelevant", "reminded_of"):
        made.admin.declare_edge_kind(kind)
        made.link(mould, rain, kind)
    with pytest.warns(EffectFirstWarning, match="before its cause"):
        made.link(mould, rain, effect_first="flag")
    with pytest.warns(EffectFirstWarning, match="before its cause"):
        made.causes.graph(effect_first="flag").link(mould, rain)
    made.link(mould, rain, effect_first="allow")
    assert [step.event.event_id for step in made.why(rain).steps][:1] == [mould]


def test_links_that_say_nothing_of_causes_are_not_walked() -> None:
    made, rain, flood, _ = flooded()
    other = made.add("A cat slept.", timestamp=0).id
    made.admin.declare_edge_kind("mentions")
    for kind in ("irrelevant", "same_action_type", "region_transition", "mentions"):
        made.link(other, flood, kind)
    assert [step.event.event_id for step in made.why(flood).steps] == [rain]
    made.admin.declare_edge_kind("made_worse")
    made.link(other, flood, "made_worse")
    assert {step.event.event_id for step in made.why(flood).steps} == {rain, other}


@pytest.mark.requirement("B1")
def test_the_past_explains_by_what_was_known_then() -> None:
    made, rain, flood, _ = flooded()
    before = made.record.now()
    pump = made.add("The pump failed.", timestamp=15).id
    made.link(pump, flood, weight=0.9)
    made.link(rain, flood, weight=0.1)
    assert [step.event.event_id for step in made.why(flood).steps] == [pump, rain]
    past = made.as_of(before)
    assert [(s.event.event_id, s.weight) for s in past.why(flood).steps] == [(rain, 0.8)]
    graph = made.causes.graph().as_of(before)
    assert [(link.cause, link.weight) for link in graph.causes(flood)] == [(rain, 0.8)]
    assert pump not in graph


@pytest.mark.requirement("X17", "B9")
def test_a_namespace_is_shown_and_walked_through_only_what_it_may_see() -> None:
    made = memory()
    secret = made.add("a secret", namespace="ana").id
    shared = made.add("said to some", namespace="ana", visibility="shared").id
    known = made.add("known to all", namespace="ana", visibility="public").id
    root = made.add("bob's own root", namespace="bob").id
    effect = made.add("bob's effect", namespace="bob").id
    for cause, led_to in ((root, secret), (secret, effect), (known, effect), (shared, effect)):
        made.link(cause, led_to, effect_first="allow")
    assert {step.event.event_id for step in made.why(effect, namespace="bob").steps} == {known}
    graph = made.within("bob", also=["ana"]).causes.graph()
    assert set(graph.predecessors(effect)) == {known, shared}
    assert secret not in graph
    assert graph.size == 4
    with pytest.raises(UnknownError, match="name its namespace"):
        made.why(secret, namespace="bob")


def test_what_was_put_away_is_not_walked_through_but_can_be_asked_about() -> None:
    made, rain, flood, mould = flooded()
    made.forget(flood)
    assert made.why(mould) == []
    assert [step.event.event_id for step in made.why(flood).steps] == [rain]
    made.update(flood, state="active")
    assert len(made.why(mould)) == 2


def test_a_graph_over_a_memory_lists_events_by_time_and_by_entity() -> None:
    made = memory()
    late = made.add("late", timestamp=9, entity="7").id
    early = made.add("early", timestamp=3, entity="7").id
    made.add("other", timestamp=5, entity="8")
    graph = made.causes.graph()
    assert [event.id for event in graph.events_for_institution("7")] == [early, late]
    assert graph.events_for_institution("the senate") == []
    assert [event.text for event in graph.data.between(3, 9)] == ["early", "other"]
    assert len(list(graph)) == len(graph) == 3
    assert "late" not in graph


@pytest.mark.requirement("T9", "X5")
def test_links_drawn_on_the_graph_are_links_of_the_memory() -> None:
    made, rain, _, mould = flooded()
    graph = made.causes.graph()
    graph.link(rain, mould, 0.25, why="damp air")
    assert {
        (step.event.event_id, step.edge.why) for step in made.why(mould, max_depth=1).steps
    } >= {(rain, "damp air")}
    near = made.causes.graph().auto_link_predecessors(mould, window_ticks=15)
    assert {link.cause for link in near} <= {link.cause for link in graph.causes(mould)}
    for kind in ("irrelevant", "unheard_of"):
        with pytest.raises(UnknownError, match="caused"):
            graph.data.put([Edge(rain, mould, kind=kind)])
    with pytest.raises(InvalidInputError, match=r"memory\.add"):
        graph.add_event(None, "elsewhere", 3)


@pytest.mark.requirement("C10")
def test_a_chain_a_thousand_deep_explains_itself_without_recursion() -> None:
    made = memory()
    events = made.add_many(Event(timestamp=place, text=f"event {place}") for place in range(1001))
    nodes = [made.record.nodes_of_events([event])[event][0] for event in events]
    with made.record.transaction() as write:
        write.add_links(Edge(a, b, "caused") for a, b in pairwise(nodes))
    story = made.why(events[-1], max_depth=1000)
    assert len(story) == 1000
    assert str(story).count("led to") == 1000


def test_a_refused_order_is_told_in_dates_where_the_clock_is_of_dates() -> None:
    made = Memory(embedder=LexicalEmbedder())
    late, early = (made.add("text", timestamp=datetime(2026, 11, n, tzinfo=UTC)) for n in (21, 20))
    with pytest.raises(
        InvalidInputError, match=r"at 2026-11-20 00:00:00, before its cause 1 at 2026-11-21 00"
    ):
        made.link(late, early)


@pytest.mark.parametrize("words", ["[" * 100_000, '{"prior": 1}', "[1, 2]", "who knows"])
def test_whatever_a_person_writes_as_evidence_is_a_note(words: str) -> None:
    made = Memory(embedder=LexicalEmbedder())
    rain, mud = made.add("it rained"), made.add("the path is muddy")
    made.link(rain, mud, evidence=words)
    assert [event.id for event in made.why(mud)] == [rain.id]
    assert made.causes.observe(rain, mud, counters=1).weight < 1.0


def test_a_story_of_both_sides_is_told_by_str() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    rain, flood = memory.add("heavy rain"), memory.add("the river flooded")
    memory.link(rain, flood)
    told = memory.causes.story(flood)
    assert str(told) == told.narrative() == str(memory.why(flood))
