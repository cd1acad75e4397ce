"""What a recall says of itself: the trace adds up, and so do the shares of a score."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cvx.recall.presets import composite
from cvx.render.block import kind_of
from cvx.types import Cue, Event, Filter
from tests.recall.rooms import BY_SIMILARITY, apart, at, axis, room


@pytest.mark.requirement("R9", "R15", "R7")
def test_a_trace_reads_as_in_the_document_and_its_numbers_add_up() -> None:
    memory = room()
    said = (
        ("prod deploys gated on staging check", "fact", 0.9, 0.5),
        ("last migration rollback was turn 41", "event", 0.6, 0.3),
        ("migration apply checklist", "procedure", 0.5, 0.2),
    )
    for n, (text, kind, cosine, salience) in enumerate(said):
        memory.add(text, kind=kind, vector=apart(cosine, n), timestamp=0, salience=salience)
    for n in range(27):
        memory.add(f"beside the point {n}", vector=at(0.05), timestamp=0, salience=0.0)
    cue = Cue(text="deploy the tier migration", vector=axis("x"), timestamp=14 * 86_400_000_000)
    block = memory.context(cue, 420, pipeline=composite())
    assert str(block.trace).split("\n") == [
        'recall("deploy the tier migration")',
        "candidates: 30 (dense 30, lexical 30)",
        "after composite scoring + floor(similarity 0, 0.35): 3 survive",
        "  [sem] prod deploys gated on staging check                          0.68",
        "  [epi] last migration rollback was turn 41                          0.47",
        "  [proc] migration apply checklist                                    0.39",
        "27 below floor, dropped",
        f"3 memories, {block.used_tokens} tok of 420: no compaction",
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 100)), max_size=25),
    st.integers(1, 8),
    st.integers(0, 300),
    st.floats(-1, 1),
)
@pytest.mark.requirement("R9")
def test_every_candidate_is_accounted_for(
    said: list[tuple[str, int]], k: int, tokens: int, floor: float
) -> None:
    memory = room()
    for word, cosine in said:
        memory.add(f"x {word}", vector=at(cosine / 100), again=True)
    block = memory.context("x", tokens, k=k, pipeline=BY_SIMILARITY, floor=floor)
    trace = block.trace
    assert trace.candidates == trace.below_floor + trace.merged + trace.beyond_k + len(trace.hits)
    assert len(trace.hits) == len(block.hits) + trace.left_out
    hits = memory.recall("x", k, pipeline=BY_SIMILARITY, floor=floor)
    assert hits.trace.candidates == hits.trace.below_floor + hits.trace.beyond_k + len(hits)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.text("abc xyz?", min_size=1, max_size=20), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    )
)
@pytest.mark.requirement("B2", "B3")
def test_the_shares_of_a_hit_add_up_to_its_score(said: list[tuple[str, float, float]]) -> None:
    memory = room()
    for text, cosine, trust in said:
        memory.add(text, vector=at(cosine), trust=trust, again=True)
    for pipeline in (memory.learning.pipeline, BY_SIMILARITY):
        for hit in memory.recall(Cue(text="a b c", vector=axis("x")), pipeline=pipeline):
            assert sum(factor.share for factor in hit.factors) == pytest.approx(hit.score)
            for factor in hit.factors:
                assert factor.share == pytest.approx(factor.value * factor.weight)


@pytest.mark.requirement("B2")
def test_an_explanation_prints_shares_that_add_up_and_the_edges_walked() -> None:
    memory = room()
    rain, flood = memory.add("x rain").id, memory.add("y flood").id
    memory.link(rain, flood, "caused", weight=0.8, why="the drain is too small")
    hits = memory.recall("x", sources=["dense", "graph"], floor=-2.0)
    for hit in hits:
        said = hit.explain()
        printed = [float(number) for number in re.findall(r"= +(-?\d+\.\d+)", said)]
        assert sum(printed) == pytest.approx(hit.score, abs=1e-3 * len(printed))
    (walked,) = [hit.explain() for hit in hits if hit.event and hit.event.event_id == flood]
    assert walked.endswith("walked 1 -caused 0.80-> 2: the drain is too small")


@pytest.mark.requirement("B2")
def test_an_explanation_names_the_filters_and_floors_that_were_passed() -> None:
    memory = room()
    memory.add("x one", namespace="ana", timestamp=5)
    hits = memory.within("ana", also=["bob"]).recall("x", where=Filter(since=3), floor=0.25)
    assert hits[0].explain(hits.trace).split("\n")[-1] == (
        "  passed: visible to 'ana', with what 'bob' shares; may advise; since 3; "
        "floor similarity 0.25"
    )


@pytest.mark.requirement("R15")
def test_kinds_of_memory_are_read_off_the_label_of_an_event() -> None:
    def kind(label: str) -> str:
        return kind_of(Event(timestamp=0, kind=label))

    assert [kind(label) for label in ("fact", "Trait", "reflection")] == ["semantic"] * 3
    assert [kind(label) for label in ("event", "observation", "anything")] == ["episodic"] * 3
    assert [kind(label) for label in ("procedure", "skill")] == ["procedural"] * 2
    assert kind_of(None) == "episodic"


@pytest.mark.requirement("X19")
def test_the_floor_is_on_by_default_and_can_be_switched_off() -> None:
    memory = room()
    memory.add("y nothing to do with it", vector=at(-0.2))
    assert memory.recall("x") == []
    assert len(memory.recall("x", floor=-2.0)) == 1
