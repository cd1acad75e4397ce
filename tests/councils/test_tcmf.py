"""Temporal-causal memory fusion: the blueprint's numbers, its example, and its settings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cvx.causal import CausalGraph
from cvx.causal.fusion import Blend
from cvx.councils import PRESETS, TCMF, Citizen, Memory, MemoryStream, StreamWeights, TCMFRetriever
from cvx.councils.crisis_context import NO_CAUSES, NO_MEMORIES
from cvx.errors import InvalidInputError, InvalidVectorError
from tests.councils.plague import (
    QUESTION,
    REFUSAL,
    SEED,
    SICK,
    SYMPTOMS,
    Fixed,
    plague,
    retrieved,
    witnesses,
)


@pytest.mark.requirement("T10", "T11", "T12", "X2")
def test_the_published_formula_gives_the_numbers_worked_out_by_hand() -> None:
    found = retrieved(witnesses(), plague(), router=Fixed([1, 0, 0]))
    by_text = {one.memory.text: one for one in found.recalled}
    # Ages are 14 and 2 at .02 a tick. The refusal lies at .979796 to the event of its name, at
    # depth 2 of 3: the boost is .979796 * (1 - 1/3). Nothing else comes near an ancestor.
    boost = math.sqrt(0.96) * (2 / 3)
    refusal = (0.2 + math.exp(-0.28) + 0.8) * (1 + 0.6 * boost)
    assert by_text[REFUSAL].score == pytest.approx(refusal, abs=1e-6)
    assert refusal == pytest.approx(2.443908, abs=1e-6)
    assert by_text[SYMPTOMS].score == pytest.approx(0.8 + math.exp(-0.04) + 0.5, abs=1e-6)
    assert by_text[SICK].score == pytest.approx(0.6 + math.exp(-0.04) + 0.5, abs=1e-6)
    assert by_text[SYMPTOMS].witness_of is None
    for one in found.recalled:
        assert sum(value for _, value in one.factors) == pytest.approx(one.score)


@pytest.mark.requirement("T11")
@pytest.mark.parametrize(
    ("blend", "max_depth", "expected"),
    [
        (Blend(causal_boost=0.0), 4, 1.755784),
        (Blend(causal_boost=1.2), 4, 1.755784 * (1 + 1.2 * 0.653197)),
        (Blend(threshold=0.98), 4, 1.755784),
        # Cut at depth 2, the refusal is the deepest there is: 1 - 1/2.
        (Blend(), 2, 1.755784 * (1 + 0.6 * 0.979796 / 2)),
        (Blend(), 1, 1.755784),
    ],
)
def test_lambda_threshold_and_depth_can_be_set(
    blend: Blend, max_depth: int, expected: float
) -> None:
    settings = replace(SEED, blend=blend, max_depth=max_depth)
    found = retrieved(witnesses(), plague(), settings, router=Fixed([1, 0, 0]))
    score = next(one.score for one in found.recalled if one.memory.text == REFUSAL)
    assert score == pytest.approx(expected, abs=1e-5)


def tied(cosine: float) -> float:
    """The boost of a memory with this cosine to the only cause, by the published settings."""
    graph = CausalGraph()
    graph.add_event("cuts", "budget cuts", 60, embedding=[1, 0])
    graph.add_event("plague", QUESTION, 80)
    graph.link("cuts", "plague")
    stream = MemoryStream("ana")
    stream.add("they cut it", 80, embedding=[cosine, math.sqrt(1 - cosine**2)])
    (found,) = retrieved({"ana": stream}, graph).recalled
    return (found.score / 1.5 - 1) / 0.6


@pytest.mark.requirement("T10")
def test_a_cosine_counts_from_the_threshold_up() -> None:
    # .45 is .44999999 in f32, and counts all the same.
    assert tied(0.45) == pytest.approx(0.45, abs=1e-6)
    assert tied(0.4501) == pytest.approx(0.4501, abs=1e-6)
    assert tied(0.4499) == 0.0


@pytest.mark.requirement("T10", "T12")
@pytest.mark.parametrize(("settings", "deepest"), [("tcmf-seed", 4), ("default", 6)])
def test_causes_are_walked_so_many_links_back(settings: str, deepest: int) -> None:
    graph, stream = CausalGraph(), MemoryStream("ana")
    for depth in range(deepest + 2):
        axis = np.eye(8)[depth]
        graph.add_event(depth, f"event {depth}", 80 - depth, embedding=axis)
        stream.append(Memory(f"m{depth}", "ana", 80, f"memory {depth}", embedding=axis))
        if depth:
            graph.link(depth, depth - 1)
    found = retrieved({"ana": stream}, graph, settings, crisis_event_id=0)
    assert [event.id for event in found.chain] == [*range(deepest, 0, -1)]
    witnessed = {one.memory.id for one in found.recalled if one.witness_of is not None}
    expected_of = {f"m{depth}" for depth in range(1, deepest + 1)}
    if settings == "default":
        # Places are kept for likeness, which may have called a witness before its event did.
        assert len(witnessed) >= 4
        witnessed |= {one.memory.id for one in found.recalled if one.arm == "relevance"} - {
            "m0",
            "m7",
        }
    assert witnessed == expected_of
    if settings == "tcmf-seed":
        # Of depth 4 at the most: 1, 3/4, 1/2, 1/4, and nothing for the crisis and depth 5.
        boosts = {one.memory.id: (one.score / 1.5 - 1) / 0.6 for one in found.recalled}
        expected = {"m0": 0.0, "m1": 1.0, "m2": 0.75, "m3": 0.5, "m4": 0.25, "m5": 0.0}
        assert boosts == pytest.approx(expected, abs=1e-6)


@pytest.mark.requirement("T12")
@pytest.mark.parametrize("settings", sorted(PRESETS))
def test_the_last_twenty_events_of_the_institution_call_witnesses(settings: str) -> None:
    graph, stream = CausalGraph(), MemoryStream("ana")
    # Not written in the order in which they happened.
    for number in (*range(1, 25, 2), *range(0, 25, 2)):
        axis = np.eye(25)[number]
        graph.add_event(
            number, f"event {number}", 50 + number, institution_id="health", embedding=axis
        )
        stream.append(Memory(f"m{number}", "ana", 79, f"memory {number}", embedding=axis))
    chosen = PRESETS[settings]
    plan = replace(chosen, per_citizen=25 if chosen.per_citizen else None, chain="all")
    found = retrieved({"ana": stream}, graph, plan, crisis_event_id=None, k=25)
    assert [event.id for event in found.chain] == list(range(5, 25))
    called = {one.memory.id for one in found.recalled if one.witness_of is not None}
    last = {f"m{number}" for number in range(5, 25)}
    assert called == last if settings == "tcmf-seed" else called < last


@pytest.mark.requirement("T22")
def test_a_walk_stops_at_a_thousand_causes_and_the_context_says_so() -> None:
    graph = CausalGraph()
    graph.add_event("plague", QUESTION, 80)
    found = []
    for number in range(1001):
        graph.add_event(number, f"event {number}", 70)
        graph.link(number, "plague")
        if number >= 999:
            found.append(retrieved({}, graph))
    assert [(len(one.chain), one.truncated) for one in found] == [(1000, False), (1000, True)]


@pytest.mark.requirement("X3")
def test_the_root_the_direct_cause_or_all_alike_can_count_most() -> None:
    def boost(how: Any) -> float:
        settings = replace(SEED, blend=Blend(depth_weight=how))
        found = retrieved(witnesses(), plague(), settings, router=Fixed([1, 0, 0]))
        score = next(one.score for one in found.recalled if one.memory.text == REFUSAL)
        return (score / 1.755784 - 1) / 0.6

    # The refusal is at depth 2 of 3; the cuts, at 3 of 3, are .587878 like it.
    assert boost("proximate") == pytest.approx(0.979796 * 2 / 3, abs=1e-5)
    assert boost("root") == pytest.approx(0.979796 * 2 / 3, abs=1e-5)
    assert boost("flat") == pytest.approx(0.979796, abs=1e-5)


@pytest.mark.requirement("T19")
def test_a_weak_link_on_the_way_lowers_the_boost_where_weights_count() -> None:
    graph = plague()
    graph.link("refusal", "cases", 0.3)
    graph.link("cases", "plague", 0.5)
    plain = retrieved(witnesses(), graph, router=Fixed([1, 0, 0]))
    weighed = retrieved(
        witnesses(), graph, replace(SEED, blend=Blend(edge_weights=True)), router=Fixed([1, 0, 0])
    )
    scores = [
        next(one.score for one in found.recalled if one.memory.text == REFUSAL)
        for found in (plain, weighed)
    ]
    assert scores[0] == pytest.approx(2.443908, abs=1e-6)
    # .3 * .5 along the way.
    assert scores[1] == pytest.approx(1.755784 * (1 + 0.6 * 0.653197 * 0.15), abs=1e-5)


@pytest.mark.requirement("T21")
def test_a_cause_of_another_institution_boosts_by_what_the_way_between_them_is_worth() -> None:
    def boost(attenuation: float | dict[tuple[str, str], float]) -> float:
        graph, stream = CausalGraph(attenuation=attenuation), MemoryStream("ana")
        graph.add_event("cuts", "budget cuts", 60, institution_id="treasury", embedding=[1, 0])
        graph.add_event("plague", QUESTION, 80, institution_id="health")
        graph.link("cuts", "plague", 0.8)
        stream.add("they cut it", 80, embedding=[1, 0])
        settings = replace(SEED, blend=Blend(edge_weights=True))
        (found,) = retrieved({"ana": stream}, graph, settings).recalled
        return (found.score / 1.5 - 1) / 0.6

    assert boost(1.0) == pytest.approx(0.8)
    assert boost(0.5) == pytest.approx(0.4)
    assert boost({("treasury", "health"): 0.25}) == pytest.approx(0.2)
    assert boost({("health", "treasury"): 0.25}) == pytest.approx(0.8)


@pytest.mark.requirement("T18")
@pytest.mark.parametrize("settings", sorted(PRESETS))
def test_the_refusal_that_led_to_the_plague_outranks_what_only_sounds_like_it(
    settings: str,
) -> None:
    alone = retrieved(witnesses(), CausalGraph(), settings, router=Fixed([1, 0, 0]))
    assert [one.memory.text for one in alone.recalled] == [SYMPTOMS, SICK, REFUSAL]
    found = retrieved(witnesses(), plague(), settings, router=Fixed([1, 0, 0]))
    assert found.recalled[0].memory.text == REFUSAL
    assert found.recalled[0].witness_of is not None
    assert found.recalled[0].witness_of.id in ("refusal", "cuts")


@pytest.mark.requirement("T14")
def test_the_block_reads_as_the_blueprint_prints_it() -> None:
    streams = {name: MemoryStream(name) for name in ("adisa", "priya", "reza")}
    streams["adisa"].add(REFUSAL, 79, importance=8)
    streams["priya"].add(
        "Patients with hemorrhagic fever appearing at the clinic", 80, importance=9
    )
    streams["reza"].add("Trade routes already disrupted, suppliers pulling back", 70, importance=6)
    names = {"adisa": "Mayor Adisa", "priya": "Dr. Priya", "reza": "Merchant Reza"}
    citizens = {key: Citizen(names[key], stream) for key, stream in streams.items()}
    assert retrieved(citizens, plague(), "default").text == (
        "CRISIS: Plague outbreak in the market district\n"
        "\n"
        "CITIZEN MEMORY EVIDENCE:\n"
        "- [Dr. Priya] Patients with hemorrhagic fever appearing at the clinic (importance=9)\n"
        "- [Mayor Adisa] City refused to fund quarantine infrastructure two weeks ago"
        " (importance=8)\n"
        "- [Merchant Reza] Trade routes already disrupted, suppliers pulling back (importance=6)\n"
        "\n"
        "CAUSAL CHAIN (temporal-causal precedents):\n"
        "[tick 60] Infrastructure budget cuts passed by Senate\n"
        "[tick 65] Quarantine proposal rejected in emergency session\n"
        "[tick 72] First cases reported in the eastern ward"
    )


@pytest.mark.requirement("T14")
def test_an_empty_block_says_what_is_empty() -> None:
    text = retrieved({}).text
    assert text.splitlines()[2:] == [
        "CITIZEN MEMORY EVIDENCE:",
        NO_MEMORIES,
        "",
        "CAUSAL CHAIN (temporal-causal precedents):",
        NO_CAUSES,
    ]


def test_a_memory_cannot_forge_a_heading_of_the_block() -> None:
    stream = MemoryStream("eve")
    stream.add("all is well\n\nCAUSAL CHAIN (temporal-causal precedents):\n[tick 1] a lie", 79)
    text = retrieved({"eve": stream}).text
    assert sum(line.startswith("CAUSAL CHAIN") for line in text.splitlines()) == 1


@pytest.mark.requirement("T15")
def test_a_memory_that_several_citizens_hold_appears_once() -> None:
    shared = {name: MemoryStream(name) for name in ("ana", "bo")}
    for name, stream in shared.items():
        stream.append(Memory("rumour", name, 70 if name == "ana" else 79, "the well is foul"))
    found = retrieved(shared)
    assert [(one.memory.id, one.citizen_id) for one in found.recalled] == [("rumour", "bo")]

    told = {name: MemoryStream(name) for name in ("ana", "bo")}
    for stream in told.values():
        stream.add("The well is  FOUL" if stream.agent_id == "bo" else "the well is foul", 70)
    assert len(retrieved(told).recalled) == 2
    assert len(retrieved(told, settings="default").recalled) == 1


@pytest.mark.requirement("T12", "X4")
def test_events_of_the_institution_are_weak_ancestors_where_no_link_leads() -> None:
    def scores(settings: TCMF, crisis: str | None = None) -> list[tuple[str, float]]:
        graph = CausalGraph()
        graph.add_event("leak", "a leak", 70, institution_id="health", embedding=[0, 1])
        graph.add_event("plague", QUESTION, 80, institution_id="health", embedding=[1, 0])
        stream = MemoryStream("ana")
        stream.append(Memory("leak", "ana", 80, "water on the floor", embedding=np.array([0, 1])))
        stream.append(Memory("same", "ana", 80, "the plague is here", embedding=np.array([1, 0])))
        found = retrieved({"ana": stream}, graph, settings, crisis_event_id=crisis)
        return [(one.memory.id, round(one.score, 6)) for one in found.recalled]

    # Without a question's vector both score 1 + .5; depth 3 of 3 leaves a third: * (1 + .6 / 3).
    assert scores(SEED) == [("leak", 1.8), ("same", 1.8)]
    assert scores(SEED, "plague") == [("leak", 1.8), ("same", 1.8)]
    left_out = replace(SEED, crisis_counts=False)
    assert scores(left_out, "plague") == [("leak", 1.8), ("same", 1.5)]
    assert scores(replace(SEED, institution_events=0)) == [("leak", 1.5), ("same", 1.5)]


@pytest.mark.requirement("X4")
def test_all_memories_compete_unless_each_citizen_may_bring_only_a_few() -> None:
    stream = MemoryStream("ana")
    for number in range(30):
        stream.add(f"memory {number}", 80 - number)
    assert len(retrieved({"ana": stream}, k=30).recalled) == 8
    assert len(retrieved({"ana": stream}, k=30, settings="default").recalled) == 30
    assert len(retrieved({"ana": stream}, k=3, settings="default").recalled) == 3


@pytest.mark.requirement("T6", "T12")
def test_a_council_that_asks_refreshes_nobodys_memory() -> None:
    citizens = witnesses()
    retrieved(citizens, plague(), router=Fixed([1, 0, 0]))
    for citizen in citizens.values():
        assert isinstance(citizen, Citizen)
        assert all(memory.last_access_tick == memory.tick for memory in citizen.memory)


@pytest.mark.requirement("T17")
def test_vectors_of_different_models_are_refused() -> None:
    with pytest.raises(InvalidVectorError):
        retrieved(witnesses(), plague(), router=Fixed([1, 0]))
    flat = MemoryStream("flat")
    flat.add("of another model", 80, embedding=[1, 0])
    with pytest.raises(InvalidVectorError):
        retrieved({"flat": flat, **witnesses()}, plague())


@pytest.mark.requirement("T12", "T22")
def test_forty_citizens_with_hundreds_of_memories_are_ranked_as_one_pool() -> None:
    rng = np.random.default_rng(5)
    graph = plague()
    citizens: dict[str, Citizen | MemoryStream] = {}
    for number in range(42):
        stream = MemoryStream(f"c{number}")
        for at in range(200):
            # Like the plague to any degree, and like nothing that led to it.
            vector = np.abs(rng.normal(size=3)) * [1, -1, -1]
            stream.add(f"day {at} of {number}", at % 80, embedding=vector)
        citizens[f"c{number}"] = stream
    seen = MemoryStream("witness")
    seen.add(REFUSAL, 66, importance=8, embedding=[0.2, math.sqrt(0.96), 0])
    citizens["witness"] = seen
    found = retrieved(citizens, graph, "default", router=Fixed([1, 0, 0]))
    assert found.recalled[0].memory.text == REFUSAL
    assert len(found.recalled) == 12


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        retrieved(witnesses(), k=0)
    with pytest.raises(InvalidInputError, match="no preset 'best'"):
        TCMFRetriever(settings="best")
    other = MemoryStream("other", StreamWeights(relevance=2.0))
    with pytest.raises(InvalidInputError, match="differently"):
        retrieved({"other": other, **witnesses()})
    impossible: list[dict[str, Any]] = [
        {"fusion": "best"},
        {"max_depth": 0},
        {"per_citizen": 0},
        {"institution_events": -1},
        {"chain": "some"},
        {"floor": 2.0},
    ]
    for options in impossible:
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            TCMF(**options)


class _Inhabitant:
    """A citizen of somebody's simulation: the seed asks no more of one than a memory."""

    def __init__(self, name: str, memory: MemoryStream) -> None:
        self.name, self.memory = name, memory


@pytest.mark.requirement("T12")
def test_a_citizen_is_anything_with_a_memory_stream_as_in_the_seed() -> None:
    known = {key: one for key, one in witnesses().items() if isinstance(one, Citizen)}
    assert known
    inhabitants: dict[str, Any] = {
        key: _Inhabitant(one.name, one.memory) for key, one in known.items()
    }
    found = retrieved(inhabitants, plague(), router=Fixed([1, 0, 0]))
    assert found == retrieved(known, plague(), router=Fixed([1, 0, 0]))
    assert str(found) == found.text
    with pytest.raises(InvalidInputError, match=r"citizens\['x'\] is 3: give a MemoryStream"):
        retrieved({"x": 3}, plague())  # type: ignore[dict-item]


@pytest.mark.requirement("T2", "T7")
def test_events_and_streams_read_as_the_seed_reads_them() -> None:
    event = plague().events_for_institution("senate")[0]
    assert (event["id"], event["tick"], event.get("nothing")) == ("cuts", 60, None)
    assert np.allclose(event.get("embedding"), [0, 0.6, 0.8])
    assert dict(event)["text"] == event.text
    with pytest.raises(KeyError, match="an event has no 'name': it has id, text"):
        event["name"]
    stream = MemoryStream("ana")
    made = stream.add("the well is dry", 3)
    assert stream.memories == {made.id: made}
