"""Which earlier events a core looks at, who judges them, and what becomes of failures."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cvx.causal import CausalMemoryCore, CauseSearch, RuleJudge
from cvx.causal.memory_core import NOTHING_FOUND
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.types import Vector
from tests.causal.cores import START, Clock, Model, Words, core, no, rows, yes


@pytest.mark.requirement("C6")
def test_causes_are_the_most_similar_and_the_most_recent_in_turn() -> None:
    made = core(search=CauseSearch(most=4))
    for text in ("Rain.", "Rain and cat.", "A mayor.", "A storm.", "Books.", "Mould."):
        made.add_event(text)
    found = made._find_potential_causes(Words().embed("Rain, storm."))
    # Similar from .5 up: Rain. and A storm.; recent, last first: Mould., Books., A storm.
    assert {event.text for event in found[:2]} == {"Rain.", "Mould."}
    assert len(found) == 4
    assert {"A storm.", "Books."} <= {event.text for event in found}


@pytest.mark.requirement("C6")
def test_an_exact_repetition_is_no_cause() -> None:
    model = Model(yes)
    made = core(model)
    made.add_event("Rain.")
    made.add_event("Rain.")
    made.add_event("  Rain. ")
    assert model.asked == []
    assert [cause for _, cause, _ in rows(made)] == [None, None, None]


@pytest.mark.requirement("C6")
def test_what_is_old_or_far_back_comes_in_only_where_it_is_similar() -> None:
    clock = Clock()
    model = Model(no)
    made = CausalMemoryCore(
        ":memory:", model, Words(), clock=clock, search=CauseSearch(window=60_000_000, latest=2)
    )
    for text in ("Rain.", "A cat.", "The mayor.", "Books."):
        made.add_event(text)
    found = made._find_potential_causes(Words().embed("Rain and flood."))
    assert [event.text for event in found] == ["Rain.", "Books.", "The mayor."]
    clock.now += timedelta(hours=1)
    found = made._find_potential_causes(Words().embed("Rain and flood."))
    assert [event.text for event in found] == ["Rain."]
    impossible: list[dict[str, float]] = [
        {"most": 0}, {"threshold": 2}, {"window": -1}, {"latest": -1},
    ]  # fmt: skip
    for options in impossible:
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            CauseSearch(**options)  # type: ignore[arg-type]


class Axes:
    """Embeds "3 rain" as the third axis; "near N" has a cosine of N hundredths with the first."""

    def embed(self, text: str) -> list[float]:
        row = [0.0] * 64
        first, _, rest = text.partition(" ")
        if first == "near":
            row[0], row[63] = int(rest) / 100, math.sqrt(1 - (int(rest) / 100) ** 2)
        elif first == "half":
            row[:4] = [0.5] * 4  # exactly, also in f32
        else:
            row[int(first)] = 1.0
        return row


def timed() -> tuple[CausalMemoryCore, list[datetime]]:
    """A core with the defaults, and its clock, which stands still unless it is set."""
    now = [START]
    return CausalMemoryCore(":memory:", Model(no), Axes(), clock=lambda: now[0]), now


def candidates(made: CausalMemoryCore, text: str) -> list[str]:
    return [event.text for event in made._find_potential_causes(Axes().embed(text))]


@pytest.mark.requirement("C6")
def test_five_candidates_are_judged_unless_told_otherwise() -> None:
    made, _ = timed()
    for place in range(1, 9):
        made.add_event(f"{place} rain")
    asked = made.llm
    assert isinstance(asked, Model)
    asked.asked.clear()
    made.add_event("0 rain")
    assert [prompt.split("'")[1] for prompt in asked.asked] == [
        f"{place} rain" for place in (8, 7, 6, 5, 4)
    ]


@pytest.mark.requirement("C6")
def test_what_is_recent_is_at_most_24_hours_old() -> None:
    made, now = timed()
    made.add_event("1 rain")
    now[0] = START + timedelta(hours=24)
    assert candidates(made, "0 flood") == ["1 rain"]
    now[0] += timedelta(microseconds=1)
    assert candidates(made, "0 flood") == []


@pytest.mark.requirement("C6")
def test_what_is_similar_has_a_cosine_of_at_least_one_half() -> None:
    made, now = timed()
    for text in ("half rain", "near 49", "near 51"):
        made.add_event(text)
    now[0] += timedelta(days=2)
    assert candidates(made, "0 flood") == ["near 51", "half rain"]


@pytest.mark.requirement("C6")
def test_the_last_fifty_events_are_looked_through_for_recent_ones() -> None:
    made, _ = timed()
    made.add_event("1 rain")
    for _ in range(49):
        made.add_event("0 flood")
    assert candidates(made, "0 flood") == ["1 rain"]
    made.add_event("0 flood")
    assert candidates(made, "0 flood") == []


@pytest.mark.requirement("C8")
def test_the_private_helpers_do_what_the_blueprint_says() -> None:
    made = core(Model(lambda prompt: "No." if "cat" in prompt else "Yes. Water came in."))
    made._insert_event("Rain.", Words().embed("Rain."), None, None)
    made._insert_event("Flood.", Words().embed("Flood."), 1, "Water came in.")
    second = made._get_event_by_id(2)
    assert second is not None
    assert (second.id, second.text, second.cause_id) == (2, "Flood.", 1)
    assert second.relationship_text == "Water came in."
    assert second.embedding.tolist() == pytest.approx(Words().embed("Flood."))
    assert made._get_event_by_id(99) is None
    nearest = made._find_most_relevant_event(Words().embed("a flood"))
    assert nearest is not None
    assert nearest.id == 2
    assert made._judge_causality(second, "Mould.") == "Water came in."
    assert made._judge_causality(second, "A cat.") is None
    assert made._format_chain_as_narrative([]) == ""


@pytest.mark.requirement("C7", "C13")
def test_a_model_that_fails_leaves_no_link_and_is_asked_again_later() -> None:
    def broken(prompt: str) -> str:
        raise ConnectionError("no route")

    for answer in (
        broken,
        lambda _: "",
        lambda _: "page " * 500,
        lambda _: "ERROR 500",
        lambda _: "Nein",
    ):
        made = core(Model(answer))
        made.add_event("Rain.")
        made.add_event("Rain and flood.")
        assert rows(made)[1] == ("Rain and flood.", None, None)
        assert made.unjudged() == [(1, 2)]
        assert made.retry_unjudged() == 0
        assert made.unjudged() == [(1, 2)]
        assert made.retry_unjudged(Model(yes)) == 1
        assert rows(made)[1] == ("Rain and flood.", 1, "Water came in.")
        assert made.unjudged() == []
        assert made.get_context("flood") == (
            "Rain and flood. This was because of rain (water came in)."
        )


@pytest.mark.requirement("C7")
def test_a_retry_that_denies_settles_the_question() -> None:
    made = core()
    made.add_event("Rain.")
    made.add_event("Rain and flood.")
    assert made.unjudged() == [(1, 2)]
    assert made.retry_unjudged(Model(no)) == 0
    assert made.unjudged() == []
    assert rows(made)[1][1] is None


@pytest.mark.requirement("C7")
def test_of_several_open_candidates_the_first_that_a_retry_confirms_is_the_cause() -> None:
    made = core()
    for text in ("Rain.", "A storm.", "Rain and storm and flood."):
        made.add_event(text)
    asked = Model(yes)
    assert made.retry_unjudged(asked) == 2
    assert [cause for _, cause, _ in rows(made)] == [None, 1, 1]
    assert len(asked.asked) == 2


@pytest.mark.requirement("C13")
def test_it_works_without_a_language_model() -> None:
    made = CausalMemoryCore(":memory:", RuleJudge(), LexicalEmbedder())
    made.add_event("The drain was blocked.")
    made.add_event("A cat slept on the sofa.")
    made.add_event("The cellar flooded because the drain was blocked.")
    assert rows(made)[2][1] == 1
    assert "because the drain was blocked" in made.get_context("cellar")


@pytest.mark.requirement("C4")
def test_embedding_models_of_several_shapes_are_taken() -> None:
    class Encodes:
        def encode(self, text: str) -> Vector:
            return np.array([Words().embed(text)], dtype=np.float32)

    for model in (Words(), Encodes(), LexicalEmbedder(dim=32)):
        made = CausalMemoryCore(":memory:", None, model)
        made.add_event("It rained.")
        assert made.get_context("rain") == "It rained."


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("model", [None, object(), 7, Words])
def test_without_an_embedding_model_nothing_is_opened(tmp_path: Path, model: object) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot embed: give an object with embed"):
        CausalMemoryCore(tmp_path / "core.db", None, model)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_gives_no_vector_or_another_dimension_is_refused() -> None:
    class Odd:
        def __init__(self) -> None:
            self.next: object = [1.0, 0.0]

        def embed(self, text: str) -> object:  # noqa: ARG002
            return self.next

    model = Odd()
    made = CausalMemoryCore(":memory:", None, model)
    made.add_event("It rained.")
    for bad, error in (
        ([1.0, 0.0, 0.0], InvalidVectorError),
        ([0.0, 0.0, 0.0], InvalidVectorError),
        ([float("nan"), 0.0], InvalidVectorError),
        ("far", ValueError),
        ([], InvalidVectorError),
    ):
        model.next = bad
        with pytest.raises(error):
            made.add_event("It flooded.")
    assert len(made) == len(made.events()) == 1


def test_a_vector_without_direction_is_stored_and_never_near() -> None:
    class Zero:
        def embed(self, text: str) -> list[float]:
            return [0.0, 0.0] if "nothing" in text else [1.0, 0.0]

    made = CausalMemoryCore(":memory:", None, Zero())
    made.add_event("It rained.")
    made.add_event("nothing at all")
    assert len(made) == 2
    assert made.get_context("rain") == "It rained."
    assert made.get_context("nothing") == NOTHING_FOUND


@pytest.mark.requirement("C14")
def test_consequences_are_walked_forward_to_a_depth() -> None:
    made = core(Model(yes), search=CauseSearch(most=1, latest=1, threshold=1.0))
    for text in ("Rain.", "Flood.", "Mould.", "Books."):
        made.add_event(text)
    assert [cause for _, cause, _ in rows(made)] == [None, 1, 2, 3]
    assert [event.text for event in made.consequences(1)] == ["Flood.", "Mould."]
    assert [event.text for event in made.consequences(1, max_depth=9)] == [
        "Flood.",
        "Mould.",
        "Books.",
    ]
    assert made.consequences(4) == []
    with pytest.raises(InvalidInputError):
        made.consequences(1, max_depth=0)
