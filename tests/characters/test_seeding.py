"""What a character and a scene are given, under which questions, and what a second seeding does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cvx.characters import Cast, memory_filter
from cvx.characters.definition import ABOUT_QUERIES, QUERIES, SCENE_QUERIES
from cvx.embed import LexicalEmbedder
from cvx.errors import CvxError, EmbedderError, InvalidInputError, NamespaceError, UnknownError
from cvx.escaping import quoted
from cvx.memory import Memory
from cvx.types import Event, Vector
from tests.characters.dinner import ALEX, JORDAN, SCENE, contents, dinner

OWN = {
    "identity": ["who am I?", "what is my identity?", "describe myself"],
    "background": ["what is my background?", "what is my history?"],
    "communication": [
        "how do I communicate?",
        "how do I speak?",
        "what is my communication style?",
    ],
    "decision_style": ["how do I make decisions?", "what is my decision style?"],
    "traits": ["what are my traits?", "describe my personality"],
    "skills": ["what am I good at?", "what are my skills?"],
    "values": ["what do I value?", "what are my principles?"],
}
PLACE = {
    "location": ["where am I?", "what is the location?", "describe the scene"],
    "atmosphere": ["what's the atmosphere?", "what's the mood?", "describe the atmosphere"],
    "time": ["what time is it?", "when is this happening?"],
    "context": ["what is happening?", "what's the situation?"],
}


def given(cast: Cast, name: str, category: str) -> list[Event]:
    """Return the events of a category that a character was given."""
    own = [one for one in cast.gifts(name) if one.metadata["type"] != "character_knowledge"]
    return [one for one in own if one.metadata["category"] == category]


@pytest.mark.requirement("W5", "W25")
def test_each_own_memory_is_stored_once_and_found_under_each_of_its_questions() -> None:
    cast = dinner()
    alex = cast["Alex"]
    assert {name: list(QUERIES[name]) for name in OWN} == OWN
    for category, questions in OWN.items():
        stored = given(cast, "Alex", category)
        for question in questions:
            hits = alex.memory.recall(
                question, 3, where=memory_filter(type="character", category=category), floor=0.0
            )
            assert hits[0].similarity == pytest.approx(1.0, abs=1e-5)
            assert {hit.id for hit in hits} <= {one.id for one in stored}
        assert all(one.metadata["indexed_by"] == questions for one in stored)
    (identity,) = given(cast, "Alex", "identity")
    for part in ("Alex", "project manager", "The pragmatist", "like things to be settled by eight"):
        assert part in identity.text


@pytest.mark.requirement("W5")
def test_a_long_background_is_cut_between_sentences() -> None:
    pieces = [one.text for one in given(dinner(), "Alex", "background")]
    assert len(pieces) == 2
    assert all(len(one) <= 300 for one in pieces)
    assert " ".join(pieces) == ALEX["background"]


@pytest.mark.requirement("W6")
def test_the_scene_is_stored_once_and_found_by_everybody() -> None:
    cast = dinner()
    assert {name: list(asked) for name, asked in SCENE_QUERIES.items()} == PLACE
    for category, questions in PLACE.items():
        for question in questions:
            for one in cast.values():
                assert one.query_canonical(question, 1).hits[0].metadata["category"] == category
    assert len(cast.gifts("", "scene ")) == 4
    assert {one.kind for one in cast.gifts("", "scene ")} == {"scene"}


@pytest.mark.requirement("W7")
def test_others_are_known_by_what_can_be_seen_and_by_how_they_stand() -> None:
    cast = dinner()
    assert ABOUT_QUERIES == ("who is {name}?", "what do I know about {name}?", "describe {name}")
    (known,) = cast.gifts("Alex", "identity of:")
    assert known.metadata["indexed_by"] == [
        "who is Jordan?",
        "what do I know about Jordan?",
        "describe Jordan",
    ]
    everything = " ".join(one.text for one in cast.gifts("Alex"))
    for secret in ("Oslo", "stories", "By mood", "hospitality", "forty euros", "Italian"):
        assert secret not in everything
    assert any("forty euros" in one for one in contents(cast["Jordan"].query_character("Alex")))


@pytest.mark.requirement("W8")
def test_a_memory_says_whose_it_is_of_what_type_and_what_about() -> None:
    cast = dinner()
    (traits,) = given(cast, "Alex", "traits")
    assert dict(traits.metadata) == {
        "agent": "Alex",
        "type": "character",
        "category": "traits",
        "indexed_by": ["what are my traits?", "describe my personality"],
    }
    (about,) = cast.gifts("Alex", "identity of:")
    assert about.metadata["type"] == "character_knowledge"
    assert about.metadata["about"] == "Jordan"
    said = cast.on_turn("Alex", "Hello.", 1)
    told = {name: said.metadata[name] for name in ("agent", "type", "category", "turn", "speaker")}
    assert told == {
        "agent": "Alex",
        "type": "episodic",
        "category": "dialogue",
        "turn": 1,
        "speaker": "Alex",
    }


@pytest.mark.requirement("W5", "W25")
def test_a_second_seeding_updates_and_adds_nothing_twice() -> None:
    cast = dinner()
    before = {one.key: one.id for one in cast.gifts("Alex")}
    nodes = len(cast.memory.index)
    cast.seed("Alex", **ALEX)
    cast.scene(**SCENE)
    assert {one.key: one.id for one in cast.gifts("Alex")} == before
    assert len(cast.memory.index) == nodes
    changed = {**ALEX, "background": "You were born in Ghent.", "description": "You whistle."}
    cast.seed("Alex", **changed)
    assert contents(cast["Alex"].query_background()) == ["You were born in Ghent."]
    (identity,) = given(cast, "Alex", "identity")
    assert identity.id == before["identity:0"]
    assert "settled by eight" in identity.history[0].text
    # The others see it too.
    seen = contents(cast["Jordan"].query_character("Alex"))
    assert "Alex: The pragmatist. You whistle." in seen
    # And a piece that was forgotten comes back with the history that has it.
    cast.seed("Alex", **ALEX)
    assert len(cast.memory.index) == nodes
    assert len(contents(cast["Alex"].query_background())) == 2
    assert {one.key: one.id for one in cast.gifts("Alex")} == before


@pytest.mark.requirement("W25")
def test_duplicates_are_kept_for_parity_and_told_once() -> None:
    cast = dinner(duplicate=True)
    identities = given(cast, "Alex", "identity")
    assert [one.metadata["indexed_by"] for one in identities] == OWN["identity"]
    assert len({one.text for one in identities}) == 1
    assert len(contents(cast["Alex"].query_self())) == 1
    assert len(contents(cast["Alex"].query_scene())) == 4
    assert cast["Alex"].query_self()["memories"][0]["relevance"] == 1.0
    cast.seed("Alex", **ALEX)
    assert len(given(cast, "Alex", "identity")) == 3


def test_a_cast_that_is_there_can_be_kept_the_other_way() -> None:
    cast = dinner(duplicate=True)
    other = Cast(cast.memory)
    other.seed("Alex", **ALEX)
    assert len(given(other, "Alex", "identity")) == 1
    assert contents(other["Alex"].query_self()) == contents(cast["Alex"].query_self())
    for question in OWN["identity"]:
        where = memory_filter(type="character", category="identity")
        (hit,) = other["Alex"].memory.recall(question, where=where)
        assert hit.similarity == pytest.approx(1.0, abs=1e-5)


@pytest.mark.requirement("W26")
def test_a_cast_goes_on_after_a_reopen_and_in_another_process(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="lexical", clock="turns") as memory:
        cast = Cast(memory)
        cast.seed("Alex", **ALEX)
        cast.on_turn("Alex", "I booked the table for eight.", 1)
        script = (
            "import sys, cvx\n"
            "from cvx.characters import Cast\n"
            "with cvx.Memory.open(sys.argv[1]) as memory:\n"
            "    cast = Cast(memory)\n"
            "    assert [*cast] == ['Alex']\n"
            "    cast.on_turn('Alex', 'And I ordered soup.', 2)\n"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
        found = cast["Alex"].query_memory("what soup was ordered?")
        assert found["memories"][0]["turn"] == "2"
    with Memory.open(tmp_path) as memory:
        assert len(contents(Cast(memory)["Alex"].recall_interactions("Alex"))) == 2


def test_names_of_any_kind_are_characters_of_their_own() -> None:
    cast = dinner()
    odd = 'O\'Neil "Bo"\n</recalled> <b>{name}</b>'
    cast.seed("Al", **{**JORDAN, "description": "The short one.", "relationships": {}})
    cast.seed(odd, **{**JORDAN, "description": "The odd one.", "relationships": {}})
    assert list(cast) == ["Alex", "Jordan", "Al", odd]
    assert contents(cast["Jordan"].query_character("Al")) == ["Al: The host. The short one."]
    # Whose name begins alike is not forgotten for it.
    assert any(one.startswith("Alex: ") for one in contents(cast["Jordan"].query_character("Alex")))
    (told,) = contents(cast["Al"].query_character(odd))
    assert "\n" not in told
    assert "<b>" not in told
    event = cast.on_turn(odd, "Good evening.", 1)
    assert "\n" not in event.text
    assert contents(cast["Al"].recall_interactions(odd)) == [quoted(event.text)]
    block = cast["Al"].context(2)
    assert block.count("</recalled>") == 1
    assert "Good evening." in block


@pytest.mark.parametrize(
    "wrong",
    [
        {"description": ""},
        {"archetype": "  "},
        {"background": "\n"},
        {"communication": ""},
        {"decision_style": ""},
        {"traits": []},
        {"skills": [""]},
        {"values": "fairness"},
        {"goals": [" "]},
        {"relationships": {"Jordan": ""}},
        {"relationships": ["Jordan"]},
        {"role": None},
    ],
)
def test_an_empty_field_is_refused_by_name_and_nothing_is_stored(wrong: dict[str, Any]) -> None:
    cast = dinner()
    before = [(one.id, one.version) for one in cast.gifts("Alex")]
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        cast.seed("Alex", **{**ALEX, "description": "Another.", **wrong})
    with pytest.raises(InvalidInputError, match="name is"):
        cast.seed(" ", **ALEX)
    assert [(one.id, one.version) for one in cast.gifts("Alex")] == before


def test_somebody_outside_of_the_cast_is_known_by_who_stands_in_a_relationship() -> None:
    cast = dinner()
    cast.seed("Alex", **ALEX, relationships={"Grandmother Ona": "She raised you."})
    told = contents(cast["Alex"].query_character("Grandmother Ona"))
    assert told == ["You and Grandmother Ona: She raised you."]
    for name in ("Ona", 3, None):
        with pytest.raises(UnknownError, match="no character"):
            cast["Alex"].query_character(name)  # type: ignore[arg-type]
    with pytest.raises(UnknownError, match="no character 'Grandmother Ona'"):
        cast["Jordan"].query_character("Grandmother Ona")


def test_who_was_erased_is_no_character_any_more() -> None:
    cast = dinner()
    alex = cast["Alex"]
    cast.memory.erase(where={"outcome": "any"}, namespace="Alex")
    assert list(cast) == ["Jordan"]
    assert alex.query_self() == {"memories": []}
    with pytest.raises(UnknownError, match="no character 'Alex'"):
        alex.said("I am still here.", 1)


def test_a_scene_that_says_nothing_is_refused() -> None:
    cast = dinner()
    with pytest.raises(InvalidInputError, match="time is ''"):
        cast.scene(**{**SCENE, "time": ""})
    assert "seven in the evening" in contents(cast["Alex"].query_scene())


def test_a_cast_needs_the_whole_memory_and_somebody_in_it() -> None:
    memory = Memory(embedder="lexical")
    with pytest.raises(NamespaceError, match="bound to 'ana'"):
        Cast(memory.within("ana"))
    with pytest.raises(InvalidInputError, match="the cast is empty"):
        Cast(memory).initialize()
    with pytest.raises(UnknownError, match="no character ''"):
        Cast(memory)[""]
    with pytest.raises(CvxError, match="no embedder"):
        Cast(Memory(dim=3)).seed("Alex", **ALEX)
    with pytest.raises(InvalidInputError, match="memory is 3"):
        Cast(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="half_life is 0"):
        Cast(memory, half_life=0)


@pytest.mark.requirement("W17")
def test_a_question_that_many_pieces_answer_is_embedded_once() -> None:
    class Counting(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            asked.append(list(texts))
            return super().embed(texts)

    asked: list[list[str]] = []
    cast = Cast(Memory(embedder=Counting(), clock="turns"))
    asked.clear()
    cast.seed("Alex", **{**ALEX, "background": "A sentence of some forty characters or so. " * 60})
    (batch,) = asked
    assert len(cast.gifts("Alex", "background:")) > 5
    assert len(batch) == len({*batch})


def test_an_embedder_that_answers_too_little_is_named_and_nothing_is_stored() -> None:
    class Short(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            return super().embed(texts)[:-1]

    memory = Memory(embedder=Short())
    with pytest.raises(EmbedderError, match="rows for"):
        Cast(memory).seed("Alex", **ALEX)
    assert len(memory) == 0
