"""The causal memory core: the blueprint's two flowcharts, and what they leave open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

import cvx
from cvx.causal import (
    CausalMemoryCore,
    CauseSearch,
    RuleJudge,
)
from cvx.causal.core import NOTHING_FOUND
from cvx.embed import LexicalEmbedder
from cvx.errors import (
    CoreError,
    DimensionError,
    InvalidInputError,
    InvalidParameterError,
    InvalidVectorError,
)
from cvx.types import Vector

START = datetime(2026, 1, 1)  # the file's timestamps carry no zone


class Words:
    """An embedding model of the blueprint's shape: one text, one list; a dimension a word."""

    KNOWN: tuple[str, ...] = ("rain", "flood", "cellar", "mould", "books", "cat", "mayor", "storm")

    def embed(self, text: str) -> list[float]:
        low = text.lower()
        return [float(word in low) for word in self.KNOWN] + [0.05]


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Model:
    """A language model that answers by a rule, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def complete(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self.answer(prompt)


def core(llm: object = None, path: str = ":memory:", **options: object) -> CausalMemoryCore:
    return CausalMemoryCore(path, llm, Words(), clock=Clock(), **options)  # type: ignore[arg-type]


def yes(_prompt: str) -> str:
    return "Water came in."


def no(_prompt: str) -> str:
    return "No."


def rows(made: CausalMemoryCore) -> list[tuple[str, int | None, str | None]]:
    return [(e.effect_text, e.cause_id, e.relationship_text) for e in made.events()]


class TestRecording:
    """Flowchart 3.A."""

    @pytest.mark.requirement("C5")
    def test_without_potential_causes_an_event_is_a_root(self) -> None:
        model = Model(yes)
        made = core(model)
        made.add_event("It rained.")
        assert rows(made) == [("It rained.", None, None)]
        assert model.asked == []

    @pytest.mark.requirement("C5", "C7")
    def test_a_confirmed_link_is_recorded_with_its_relationship(self) -> None:
        model = Model(yes)
        made = core(model)
        made.add_event("Rain in the cellar.")
        made.add_event("Rain flooded the cellar.")
        assert rows(made)[1] == ("Rain flooded the cellar.", 1, "Water came in.")
        assert model.asked == [
            "Based on the preceding event: 'Rain in the cellar.', did it directly lead to the "
            "following event: 'Rain flooded the cellar.'? If yes, briefly explain the "
            "relationship. If no, simply respond with 'No.'"
        ]

    @pytest.mark.requirement("C5")
    def test_where_every_candidate_is_denied_an_event_is_a_root(self) -> None:
        model = Model(no)
        made = core(model)
        for text in ("Rain.", "A cat.", "The mayor.", "Rain and flood."):
            made.add_event(text)
        assert rows(made)[3] == ("Rain and flood.", None, None)
        assert len(model.asked) == 0 + 1 + 2 + 3

    @pytest.mark.requirement("C5")
    def test_the_first_confirmed_cause_wins_and_nobody_else_is_asked(self) -> None:
        model = Model(lambda prompt: "It did." if "event: 'The mayor" in prompt else "No.")
        made = core(model)
        for text in ("Rain.", "A cat.", "The mayor."):
            made.add_event(text)
        model.asked.clear()
        made.add_event("Rain and flood.")
        # Rain is the most similar and comes first, the mayor is the most recent and comes second.
        assert [("'Rain.'" in p, "'The mayor.'" in p) for p in model.asked] == [
            (True, False),
            (False, True),
        ]
        assert rows(made)[3][1:] == (3, "It did.")

    @pytest.mark.requirement("C7")
    def test_notably_is_not_no(self) -> None:
        made = core(Model(lambda _: "Notably, the drain was blocked."))
        made.add_event("Rain.")
        made.add_event("Rain and flood.")
        assert rows(made)[1][1:] == (1, "Notably, the drain was blocked.")

    @pytest.mark.requirement("C5")
    @pytest.mark.parametrize("text", ["", "  \n", None, 7])
    def test_an_event_without_words_is_refused(self, text: str) -> None:
        made = core()
        with pytest.raises(ValueError, match="say what happened"):
            made.add_event(text)
        assert len(made) == 0


class TestScrying:
    """Flowchart 3.B."""

    @pytest.mark.requirement("C9")
    def test_without_any_event_there_is_no_context(self) -> None:
        assert core().get_context("Why?") == "No relevant context found in memory."

    @pytest.mark.requirement("C9")
    def test_a_root_alone_is_a_chain_of_one(self) -> None:
        made = core()
        made.add_event("It rained.")
        assert made.get_context("rain?") == "It rained."

    @pytest.mark.requirement("C9", "C11")
    def test_the_chain_is_walked_to_its_root_and_told(self) -> None:
        made = core(Model(yes))
        made.add_event("Rain fell all night")
        made.add_event("Rain caused a flood in the cellar")
        made.add_event("The flood left mould on the books")
        told = made.get_context("What happened to the mouldy books?")
        assert told == (
            "The flood left mould on the books. "
            "This was because Rain caused a flood in the cellar (Water came in). "
            "That was a result of something earlier: Rain fell all night (Water came in)."
        )
        assert [event.event_id for event in made.chain(3)] == [1, 2, 3]
        # Another question enters the chain elsewhere.
        assert made.get_context("rain").startswith("Rain fell all night.")

    @pytest.mark.requirement("C9", "X19")
    def test_a_floor_turns_away_what_is_too_far(self) -> None:
        open_, strict = core(), core(floor=0.5)
        for made in (open_, strict):
            made.add_event("It rained.")
        assert open_.get_context("a cat") == "It rained."
        assert strict.get_context("a cat") == NOTHING_FOUND
        assert strict.get_context("rain") == "It rained."

    def test_an_empty_question_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="ask something"):
            core().get_context(" ")

    @pytest.mark.requirement("C9", "C10")
    def test_a_chain_a_thousand_deep_is_told(self, tmp_path: Path) -> None:
        path = str(tmp_path / "deep.db")
        core(path=path).close()
        db = duckdb.connect(path)
        for number in range(1, 1001):
            cause = None if number == 1 else number - 1
            how = None if cause is None else "so it goes"
            db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                [number, START, f"step {number} happened", [1.0] * 8 + [number / 1000], cause, how],
            )
        db.close()
        made = core(path=path)
        assert len(made.chain(1000)) == 1000
        told = made._format_chain_as_narrative(made.chain(1000))
        assert told.count("result of") == 998


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
        ":memory:", model, Words(), clock=clock, search=CauseSearch(window_s=60.0, latest=2)
    )
    for text in ("Rain.", "A cat.", "The mayor.", "Books."):
        made.add_event(text)
    found = made._find_potential_causes(Words().embed("Rain and flood."))
    assert [event.text for event in found] == ["Rain.", "Books.", "The mayor."]
    clock.now += timedelta(hours=1)
    found = made._find_potential_causes(Words().embed("Rain and flood."))
    assert [event.text for event in found] == ["Rain."]
    impossible: list[dict[str, float]] = [
        {"most": 0}, {"threshold": 2}, {"window_s": -1}, {"latest": -1},
    ]  # fmt: skip
    for options in impossible:
        with pytest.raises(InvalidParameterError, match=next(iter(options))):
            CauseSearch(**options)  # type: ignore[arg-type]


@pytest.mark.requirement("C8")
def test_the_private_helpers_do_what_the_blueprint_says() -> None:
    made = core(Model(lambda prompt: "No." if "cat" in prompt else "Water came in."))
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

    for answer in (broken, lambda _: "", lambda _: "page " * 500):
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
            "Rain and flood. This was because of Rain (Water came in)."
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
    with pytest.raises(InvalidParameterError, match="cannot embed"):
        CausalMemoryCore(":memory:", None, object()).add_event("It rained.")


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
        ([1.0, 0.0, 0.0], DimensionError),
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
    with pytest.raises(InvalidParameterError):
        made.consequences(1, max_depth=0)


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
