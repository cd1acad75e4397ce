"""The formulas of the source documents, with numbers worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.memory import Memory
from cvx.recall import Pipeline, Weighting
from cvx.recall.presets import composite, posterior, stream
from cvx.scoring import bayesian_score
from cvx.scoring.formulas import Decay, importance
from cvx.types import Cue, Hit
from tests.recall.rooms import Axes, apart, at, axis, room

DAY_S = 86_400
DAY = DAY_S * 1_000_000


def asked(now: int) -> Cue:
    return Cue(text="x", vector=axis("x"), timestamp=now)


def texts(hits: list[Hit]) -> list[str]:
    return [hit.event.text for hit in hits if hit.event]


@pytest.mark.requirement("R3", "X1")
def test_recency_halves_every_seven_days() -> None:
    week = Decay.of_half_life(7 * DAY_S)
    assert week([0, 7 * DAY_S, 14 * DAY_S, -5]).tolist() == pytest.approx([1.0, 0.5, 0.25, 1.0])


@pytest.mark.requirement("X1", "W18")
def test_one_decay_says_what_the_documents_say_in_four_ways() -> None:
    # A half-life in seconds, on a clock of microseconds.
    week = Decay.of_half_life_s(7 * DAY_S, "microseconds")
    assert week(7 * DAY).item() == pytest.approx(0.5)
    # exp(-0.02 * ticks) of the stream, exp(-0.01 * age) of RFC-013.
    assert Decay(0.02)(50).item() == pytest.approx(exp(-1.0))
    assert Decay(0.01)(100).item() == pytest.approx(exp(-1.0))
    # What matters fades more slowly: at importance 0.5 at half the rate, at 1 not at all.
    assert Decay(0.02).slowed([0.0, 0.5, 1.0], 50).tolist() == pytest.approx(
        [exp(-1), exp(-0.5), 1]
    )
    with pytest.raises(InvalidInputError, match="a turn is no number of seconds"):
        Decay.of_half_life_s(60, "turn")
    with pytest.raises(InvalidInputError, match="half_life is 0"):
        Decay.of_half_life(0)


@given(st.floats(1e-3, 1e6), st.floats(0, 1e6))
def test_a_half_life_is_a_rate(half_life: float, age: float) -> None:
    assert Decay.of_half_life(half_life)(age).item() == pytest.approx(0.5 ** (age / half_life))


@pytest.mark.requirement("R4")
def test_the_composite_score_of_a_memory_is_worked_out_by_hand() -> None:
    # 0.6 * 0.8 + 0.25 * 0.5 + 0.15 * 1.0 = 0.48 + 0.125 + 0.15
    memory = room()
    memory.add("a", vector=at(0.8), timestamp=0, salience=1.0)
    (hit,) = memory.recall(asked(7 * DAY), pipeline=composite())
    assert hit.score == pytest.approx(0.755, abs=1e-6)
    assert [(f.name, f.weight) for f in hit.factors] == [
        ("similarity", 0.6),
        ("recency", 0.25),
        ("salience", 0.15),
    ]
    assert [f.value for f in hit.factors] == pytest.approx([0.8, 0.5, 1.0], abs=1e-6)


@pytest.mark.requirement("R7")
def test_what_is_fresh_and_salient_but_has_nothing_to_do_with_the_cue_is_not_recalled() -> None:
    memory = room()
    # The hole of the formula: 0.6 * 0 + 0.25 * 1 + 0.15 * 1 = 0.40, above its floor of 0.35.
    memory.add("beside the point", vector=at(0.0), timestamp=0, salience=1.0)
    assert memory.recall(asked(0), pipeline=composite()) == []
    without = replace(composite(), floor=replace(composite().floor, similarity=None))
    assert texts(memory.recall(asked(0), pipeline=without)) == ["beside the point"]


@pytest.mark.requirement("R7")
def test_the_floor_drops_before_anything_is_cut() -> None:
    memory = room()
    for n in range(30):
        memory.add(f"weak {n}", vector=at(0.1), timestamp=0, salience=0.0)
    memory.add("strong", vector=at(0.7), timestamp=0, salience=0.0)
    hits = memory.recall(asked(14 * DAY), 5, pipeline=composite())
    # 0.6 * 0.7 + 0.25 * 0.25 = 0.4825; the others have 0.1225.
    assert texts(hits) == ["strong"]
    assert hits[0].score == pytest.approx(0.4825, abs=1e-6)
    assert hits.trace.below_floor == hits.trace.candidates - 1


@pytest.mark.requirement("R13")
def test_a_fresh_and_salient_memory_beats_a_stale_one_that_is_slightly_more_similar() -> None:
    memory = room()
    memory.add("stale", vector=at(0.95), timestamp=0, salience=0.1)
    memory.add("fresh", vector=at(0.90), timestamp=60 * DAY, salience=0.9)
    assert texts(memory.recall(asked(60 * DAY), pipeline=composite())) == ["fresh", "stale"]


@pytest.mark.requirement("R5", "R3")
def test_what_is_returned_is_warm_again_and_the_rest_cools_down() -> None:
    memory = room()
    memory.add("a", vector=at(0.9), timestamp=0, salience=0.5)
    memory.add("b", vector=at(0.8), timestamp=0, salience=0.5)
    later = 14 * DAY
    memory.context(asked(later), k=1, pipeline=composite())
    hits = memory.recall(asked(later), pipeline=composite())
    recency = {h.event.text: h.factors[1].value for h in hits if h.event}
    assert recency == pytest.approx({"a": 1.0, "b": 0.25})


@pytest.mark.requirement("R5", "X16")
@pytest.mark.parametrize("preset", [composite, stream])
def test_what_a_recall_returns_is_warm_again_where_its_preset_says_so(
    tmp_path: Path, preset: Callable[[], Pipeline]
) -> None:
    later = 14 * DAY
    first, second = (Memory.open(tmp_path / "m", embedder=Axes()) for _ in range(2))
    for name, cosine in (("a", 0.9), ("b", 0.8)):
        first.add(name, vector=at(cosine), timestamp=0, salience=0.5)
    assert texts(first.recall(asked(later), 1, pipeline=preset())) == ["a"]
    # It stands beside what is written down, and is written down with what comes next.
    for memory in (first, second):
        (hit,) = memory.recall(asked(later), 1, pipeline=preset())
        assert [f.value for f in hit.factors if f.name == "recency"] == [1.0]
        first.close()
    # The default says that a recall by itself, of which nothing is rendered, is no use.
    second.recall(asked(9 * later))
    second.close()
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        used = {event: last for event, (_, last) in memory.record.used([1, 2]).items()}
    assert used == {1: later, 2: None}


@pytest.mark.requirement("R5")
def test_of_eight_memories_the_five_that_are_returned_are_warm_again() -> None:
    memory = room()
    for n in range(8):
        memory.add(f"memory {n}", vector=at(0.9 - n / 100), timestamp=0, salience=0.5)
    later = 7 * DAY
    assert texts(memory.recall(asked(later), 5, pipeline=composite())) == [
        f"memory {n}" for n in range(5)
    ]
    hits = memory.recall(asked(later), 8, pipeline=composite())
    recency = {hit.text: f.value for hit in hits for f in hit.factors if f.name == "recency"}
    assert recency == pytest.approx({f"memory {n}": 1.0 if n < 5 else 0.5 for n in range(8)})


@pytest.mark.requirement("R5")
def test_the_net_is_thirty_wide_for_five_hits() -> None:
    memory = room()
    # The less similar, the more salient: the last in the net is its best, what is beyond better.
    for n in range(40):
        memory.add(f"memory {n}", vector=at(0.9 - n / 1000), timestamp=0, salience=n / 40)
    hits = memory.recall(asked(0), 5, pipeline=composite())
    assert texts(hits) == [f"memory {n}" for n in (29, 28, 27, 26, 25)]
    assert (hits.trace.candidates, len(hits)) == (30, 5)
    # More hits than a third of it widen the net: three candidates for each.
    assert memory.recall(asked(0), 11, pipeline=composite()).trace.candidates == 33


@pytest.mark.requirement("R2", "R5")
def test_the_preset_looks_for_the_raw_words_beside_the_cue_and_joins_both_by_rank() -> None:
    memory = room()
    for n in range(40):
        memory.add(f"memory {n}", vector=at(0.9 - n / 1000), timestamp=0, salience=0.5)
    memory.add("error E1234", vector=at(0.0), timestamp=0, salience=0.5)
    told = Cue(text="E1234", vector=axis("x"), timestamp=0)
    hits = memory.recall(told, 5, pipeline=composite(floor=0.0))
    assert [(one.name, one.found) for one in hits.trace.sources] == [("dense", 30), ("lexical", 1)]
    # One net for both: the exact word takes the place of the thirtieth look-alike.
    assert hits.trace.candidates == 30
    found = memory.recall(told, 41, pipeline=composite(floor=0.0))
    # What it is worth is the formula's: 0.6 * 0 + 0.25 * 1 + 0.15 * 0.5.
    (exact,) = [hit for hit in found if hit.text == "error E1234"]
    assert exact.score == pytest.approx(0.325, abs=1e-6)
    assert "error E1234" not in texts(memory.recall(told, 41, pipeline=composite()))


@pytest.mark.requirement("R6")
def test_the_weights_of_a_preset_are_measured_and_kept_with_the_store(tmp_path: Path) -> None:
    asks = Cue(text="x", vector=axis("x"), timestamp=30 * DAY)
    with Memory.open(tmp_path / "m", embedder=Axes(), preset="retrieval-augmented") as memory:
        memory.add("just now", vector=at(0.5), timestamp=30 * DAY, salience=0.0)
        wanted = memory.add("a stated preference", vector=at(0.5), timestamp=0, salience=1.0)
        assistant = {"recency": 0.1, "salience": 0.3}
        plain, fitted = (
            memory.learning.evaluate([(asks, wanted)], k=(1,), weights=weights)
            for weights in (None, assistant)
        )
        assert (plain.metrics["recall@1"].mean, fitted.metrics["recall@1"].mean) == (0.0, 1.0)
        memory.learning.recall_with(assistant)
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        expected = {"similarity": 0.6, "recency": 0.1, "salience": 0.3}
        assert dict(memory.learning.pipeline.weighting.weights) == expected
        assert texts(memory.recall(asks, 1)) == ["a stated preference"]
        with pytest.raises(InvalidInputError, match="weights name mood"):
            memory.learning.recall_with({"mood": 1.0})


@pytest.mark.requirement("R6")
def test_the_weights_of_a_preset_are_tuned_to_questions_and_kept_with_the_store(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=Axes(), preset="retrieval-augmented") as memory:
        asks = []
        # In each place something fresh, and a stated preference of long ago, which is wanted.
        for name in "abcd":
            near = at(0.5)
            memory.add(f"{name} just now", vector=near, timestamp=30 * DAY, salience=0.1)
            wanted = memory.add(f"{name} wish", vector=near, timestamp=0, salience=0.9)
            asks.append((Cue(text=name, vector=axis("x"), timestamp=30 * DAY), wanted))
        tuning = memory.learning.tune(asks, 2)
        assert tuning.weights.keys() == {"similarity", "recency", "salience"}
        assert sum(map(abs, tuning.weights.values())) == pytest.approx(1.0, abs=1e-3)
        assert tuning.weights["salience"] > tuning.weights["recency"]
        assert tuning.after.metrics["mrr"].mean > tuning.before.metrics["mrr"].mean
        tuning.apply()
        kept = memory.learning.weights
    with Memory.open(tmp_path / "m", embedder=Axes()) as memory:
        assert memory.learning.weights == kept == tuning.weights
        assert memory.recall(asks[0][0], 1)[0].event.salience == 0.9  # type: ignore[union-attr]
        memory.learning.recall_with()
        assert memory.learning.weights == composite().weighting.weights


@pytest.mark.requirement("R3", "R10")
@pytest.mark.parametrize(("clock", "unit"), [("turns", "turn"), ("ticks", "tick")])
def test_on_a_clock_of_turns_recency_halves_every_twenty_and_a_block_names_turns(
    clock: str, unit: Any
) -> None:
    memory = Memory(embedder=Axes(), clock=clock, preset="retrieval-augmented")
    for turn in (20, 40):
        memory.add(f"x at {turn}", vector=apart(0.9, turn // 20), timestamp=turn)
    hits = memory.recall(Cue(text="x", vector=axis("x"), timestamp=40))
    recency = {
        hit.timestamp: hit.factors[at].value
        for hit in hits
        for at in (0, 1)
        if hit.factors[at].name == "recency"
    }
    assert recency == pytest.approx({20: 0.5, 40: 1.0})
    slow = composite(half_life=40, clock=unit)
    for plan in (None, composite(clock=unit), slow):
        block = memory.context("x", pipeline=plan)
        assert {f"[{unit} 20]", f"[{unit} 40]"} <= {*block.split("\n")}
    memory.learning.pipeline = slow
    assert f"[{unit} 40]" in memory.context("x")


@pytest.mark.requirement("R6")
def test_weights_fit_the_workload() -> None:
    memory = room()
    memory.add("just now", vector=at(0.5), timestamp=30 * DAY, salience=0.0)
    memory.add("a stated preference", vector=at(0.5), timestamp=0, salience=1.0)
    coding, assistant = composite((0.3, 0.6, 0.1)), composite((0.3, 0.1, 0.6))
    assert texts(memory.recall(asked(30 * DAY), 1, pipeline=coding)) == ["just now"]
    assert texts(memory.recall(asked(30 * DAY), 1, pipeline=assistant)) == ["a stated preference"]


@pytest.mark.requirement("T2", "T3", "T4", "T5")
def test_the_memory_stream_adds_relevance_recency_and_importance() -> None:
    memory = room()
    memory.add("a", vector=at(0.6), timestamp=10, salience=0.8)
    memory.add("behind", vector=at(-0.5), timestamp=60, salience=0.2)
    first, second = memory.recall(asked(60), pipeline=stream())
    # 0.6 + exp(-0.02 * 50) + 8 / 10; and for what points away 0 + 1 + 2 / 10.
    assert first.score == pytest.approx(0.6 + exp(-1.0) + 0.8, abs=1e-6)
    assert second.score == pytest.approx(1.2, abs=1e-6)


@pytest.mark.requirement("V11")
def test_the_posterior_pipeline_scores_as_the_formula_of_rfc_013() -> None:
    memory = room()
    event = memory.add("a", vector=at(0.7), timestamp=100, reward=1.0)
    block = memory.context(asked(200), pipeline=posterior())
    memory.feedback(block, followed=[event], outcome=1.0)
    (hit,) = memory.recall(asked(200), pipeline=posterior())
    # exp(-0.3) + 0.3 exp(-1) + 0.5 * 1 + 0.2 * 0 + 0.4 * 1 / (1 + 1)
    by_hand = exp(-0.3) + 0.3 * exp(-1.0) + 0.5 + 0.2
    assert hit.score == pytest.approx(by_hand, abs=1e-6)
    assert hit.score == pytest.approx(bayesian_score(exp(-0.3), 100, 1.0, False, 0.5), abs=1e-6)


@pytest.mark.requirement("V11")
def test_lying_in_the_region_of_the_cue_is_worth_its_weight() -> None:
    memory = room()
    for n in range(40):
        memory.add(f"e{n}", vector=at(n / 40), timestamp=0)
    level = max(memory.index.region_levels)
    hits = memory.recall(asked(0), 40, pipeline=posterior(level=level))
    nodes, regions = memory.index.region_assignments(level)
    home = dict(zip(nodes.tolist(), regions.tolist(), strict=True))
    own = memory.index.assign_region(axis("x").tolist(), level)
    for hit in hits:
        (match,) = [f for f in hit.factors if f.name == "region_match"]
        assert match.value == (home[hit.node] == own)
        assert match.share == pytest.approx(0.2 * match.value)


@pytest.mark.requirement("X13")
def test_a_score_is_a_sum_or_the_logarithm_of_a_product() -> None:
    memory = room()
    memory.add("a", vector=at(0.7), timestamp=0, reward=0.25)
    cue = asked(100)
    (summed,) = memory.recall(cue, pipeline=posterior((1, 1, 1, 0, 1)))
    (product,) = memory.recall(cue, pipeline=posterior((1, 1, 1, 0, 0), log_product=True))
    assert summed.score == pytest.approx(exp(-0.3) + exp(-1) + 0.25 + 0.0, abs=1e-6)
    assert product.score == pytest.approx(-0.3 - 1.0 + log(0.25), abs=1e-6)
    for hit in (summed, product):
        assert sum(f.share for f in hit.factors) == pytest.approx(hit.score)


@pytest.mark.requirement("W18")
def test_importance_is_what_a_goal_an_emotion_and_news_make_of_it() -> None:
    # 0.4 * 0.9 + 0.3 * 0.5 + 0.3 * 0.1 = 0.36 + 0.15 + 0.03
    assert importance(0.9, 0.5, 0.1) == pytest.approx(0.54)
    with pytest.raises(InvalidInputError, match=r"novelty is 1\.5"):
        importance(0, 0, 1.5)


def test_weights_that_do_not_fit_are_refused() -> None:
    memory: Memory = room()
    memory.add("x one")
    with pytest.raises(UnknownError, match="'simliarity'"):
        memory.recall("x", pipeline=replace(composite(), weighting=Weighting({"simliarity": 1.0})))
    with pytest.raises(InvalidInputError, match="'similarity' is nan"):
        composite((float("nan"), 0.0, 0.0))
    with pytest.raises(InvalidInputError, match="weights are empty"):
        Weighting({})


def test_a_negative_weight_is_evidence_against() -> None:
    memory = room()
    memory.add("old", vector=at(0.5), timestamp=0)
    memory.add("new", vector=at(0.5), timestamp=30 * DAY)
    nostalgic = composite((0.6, -0.25, 0.15), floor=-1.0)
    assert texts(memory.recall(asked(30 * DAY), pipeline=nostalgic)) == ["old", "new"]
