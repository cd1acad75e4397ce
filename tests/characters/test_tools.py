"""What a character finds with each of its tools, and in what shape it is told."""

from __future__ import annotations

import json

import pytest

from cvx.characters import TOOLS
from cvx.characters.prompts import SYSTEM
from cvx.errors import UnknownError
from tests.characters.dinner import contents, dinner


@pytest.mark.requirement("W10", "W11")
def test_each_fixed_tool_returns_its_own_memories_and_no_others() -> None:
    cast = dinner()
    alex = cast["Alex"]
    (identity,) = contents(alex.query_self())
    assert identity.startswith("You are Alex, project manager. The pragmatist. You keep lists")
    assert any("Lyon" in one for one in contents(alex.query_background()))
    assert contents(alex.query_communication_style()) == [
        "How you communicate: Short sentences, and you ask for decisions."
    ]
    assert [*alex.query_self()] == ["memories"]
    assert [*alex.query_self()["memories"][0]] == ["content", "relevance"]
    # The question is one of its vectors.
    assert alex.query_self()["memories"][0]["relevance"] == 1.0


@pytest.mark.requirement("W6", "W10")
def test_the_scene_is_told_whole_its_place_first() -> None:
    told = contents(dinner()["Alex"].query_scene())
    assert told[0] == "Jordan's flat, the kitchen"
    assert {*told} == {
        "Jordan's flat, the kitchen",
        "warm and a little loud",
        "seven in the evening",
        "Three friends plan a dinner.",
    }


@pytest.mark.requirement("W7", "W10")
def test_another_character_is_known_by_what_can_be_seen_of_it() -> None:
    cast = dinner()
    assert contents(cast["Alex"].query_character("Jordan")) == [
        "Jordan: The host. A tall musician who laughs easily."
    ]
    own = contents(cast["Jordan"].query_character("Alex"))
    assert {*own} == {
        "Alex: The pragmatist. You keep lists and like things to be settled by eight.",
        "You and Alex: You owe Alex forty euros, and Alex does not know it.",
    }
    with pytest.raises(UnknownError, match=r"'Sam'.*the cast is 'Alex', 'Jordan'"):
        cast["Alex"].query_character("Sam")


@pytest.mark.requirement("W9", "W10", "W11", "X21")
def test_what_was_said_is_found_with_its_turn_as_a_string() -> None:
    cast = dinner()
    event = cast.on_turn("Jordan", "I love Italian food.", 3)
    assert event.text == "Jordan said: I love Italian food."
    asked = cast["Alex"].query_memory("what did Jordan say about food?")
    assert json.loads(json.dumps(asked)) == asked
    assert [*asked] == ["query", "memories"]
    assert asked["query"] == "what did Jordan say about food?"
    (told,) = asked["memories"]
    assert told["content"] == "Jordan said: I love Italian food."
    assert told["turn"] == "3"
    assert event.metadata["turn"] == 3


@pytest.mark.requirement("W16")
def test_a_simulation_gets_the_tools_of_each_character() -> None:
    tools = dinner().initialize()
    assert [*tools] == ["Alex", "Jordan"]
    assert {*tools["Alex"]} == {*TOOLS}
    assert "Lyon" in tools["Alex"]["query_background"]()["memories"][0]["content"]


@pytest.mark.requirement("W15")
def test_the_prompt_says_nothing_of_who_the_character_is() -> None:
    alex = dinner()["Alex"]
    assert alex.prompt == SYSTEM
    assert "Alex" not in alex.prompt
