"""Memories that deceive: the original is kept, what was distorted says so."""

from __future__ import annotations

import pytest

from cvx.characters import Distortion, DistortionFilter, Inverter
from cvx.errors import InvalidInputError
from cvx.types import Vector
from tests.characters.dinner import contents, dinner


class Paranoia:
    """Hears a threat in whatever is said."""

    def apply(self, text: str) -> str:
        return f"{text} (And it was meant as a threat.)"


class Gloom:
    """Takes the joy out of what it remembers."""

    def apply(self, text: str) -> str:
        return text.replace("wonderful", "tolerable")


class Reading:
    """Stands for a vec2text model: says how long the vector is."""

    def invert(self, vector: Vector) -> str:
        return f"a wonderful text of {len(vector)} numbers"


@pytest.mark.requirement("W23")
def test_what_is_formed_distorted_keeps_its_original_and_is_labelled() -> None:
    cast = dinner()
    alex = cast["Alex"]
    alex.distortion = Distortion(formation=Paranoia())
    cast.on_turn("Jordan", "The soup is ready.", 1)
    (told,) = alex.query_memory("is the soup ready?")["memories"]
    assert told["content"] == "Jordan said: The soup is ready. (And it was meant as a threat.)"
    assert told["distorted"] == "formation"
    event = alex.query_memory("is the soup ready?").hits[0].event
    assert event is not None
    assert event.metadata["original"] == "Jordan said: The soup is ready."
    assert event.source == "distortion"
    assert "source distortion" in alex.context(2)
    # Nobody else is deceived.
    (other,) = cast["Jordan"].query_memory("is the soup ready?")["memories"]
    assert other["content"] == "Jordan said: The soup is ready."
    assert "distorted" not in other


@pytest.mark.requirement("W23")
def test_what_is_recalled_distorted_is_stored_as_it_was_and_labelled() -> None:
    cast = dinner()
    jordan = cast["Jordan"]
    cast.on_turn("Alex", "What a wonderful evening.", 1)
    jordan.distortion = Distortion(retrieval=Gloom())
    (told,) = jordan.query_memory("what kind of evening?")["memories"]
    assert told["content"] == "Alex said: What a tolerable evening."
    assert told["distorted"] == "retrieval"
    block = jordan.context(2)
    assert "tolerable" in block
    assert "wonderful" not in block
    assert "source distortion" in block
    jordan.distortion = Distortion()
    (told,) = jordan.query_memory("what kind of evening?")["memories"]
    assert told["content"] == "Alex said: What a wonderful evening."
    assert "distorted" not in told


@pytest.mark.requirement("W23")
def test_a_trigger_links_what_is_heard_to_what_it_calls_up() -> None:
    cast = dinner()
    jordan = cast["Jordan"]
    jordan.distortion = Distortion(
        association=lambda heard, known: "door" in heard and "door" in known
    )
    cast.on_turn("Alex", "A car door broke it.", 1)
    cast.on_turn("Alex", "A spoon fell.", 2)
    cast.on_turn("Alex", "Somebody slammed a door.", 3)
    links = cast.memory.frames.links()
    kinds = set(links["kind"].to_list())
    assert kinds == {"mentions"}
    assert len(links) == 2
    assert cast.memory.as_of(cast.memory.record.now())


@pytest.mark.requirement("W23")
def test_a_search_may_distort_with_or_without_an_inverter() -> None:
    cast = dinner()
    alex = cast["Alex"]
    cast.on_turn("Jordan", "What a wonderful soup.", 1)
    (told,) = alex.search_with_distortion("how was the soup?", Gloom())["memories"]
    assert told["content"] == "Jordan said: What a tolerable soup."
    assert told["distorted"] == "retrieval"
    answer = alex.search_with_distortion("how was the soup?", Gloom(), inverter=Reading())
    assert contents(answer) == [f"a tolerable text of {cast.memory.dim} numbers"]
    assert answer.hits[0].text == "Jordan said: What a wonderful soup."
    for wrong in (None, {"min_turn": 1}):
        with pytest.raises(InvalidInputError, match=r"give an object with apply\(text\)"):
            alex.search_with_distortion("how was the soup?", wrong)  # type: ignore[arg-type]
    assert isinstance(Gloom(), DistortionFilter)
    assert isinstance(Reading(), Inverter)
    assert not isinstance(Gloom(), Inverter)
