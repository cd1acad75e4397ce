"""What is captured of a turn, by whom it is remembered, and which turns a filter lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from benches.characters import FACTOR, TARGETS_MS, times
from cvx.characters import Cast, memory_filter
from cvx.errors import InvalidInputError, NamespaceError, UnknownError
from cvx.memory import Memory
from cvx.memory.memory import EXACT_BELOW
from tests.characters.dinner import ALEX, JORDAN, contents, dinner


def told(cast: Cast, name: str) -> list[str]:
    """Return what a character lived through, in order."""
    hits = cast[name].memory.events(memory_filter(type="episodic"))
    return [one.text for one in hits]


@pytest.mark.requirement("W9", "W16")
def test_a_line_is_remembered_by_whoever_heard_it_and_by_nobody_else() -> None:
    cast = dinner()
    cast.seed("Sam", **{**JORDAN, "relationships": {}})
    cast.on_turn("Alex", "The soup is cold.", 1)
    cast["Jordan"].said("Psst, Sam: the cook is asleep.", 2, heard_by=["Sam"])
    cast["Sam"].said("I talk to myself.", 3, heard_by=[])
    aloud = "Alex said: The soup is cold."
    whisper = "Jordan said: Psst, Sam: the cook is asleep."
    assert told(cast, "Alex") == [aloud]
    assert told(cast, "Jordan") == [aloud, whisper]
    assert told(cast, "Sam") == [aloud, whisper, "Sam said: I talk to myself."]
    assert contents(cast["Alex"].query_memory("the cook is asleep")) in ([], [aloud])
    assert "asleep" not in cast["Alex"].context(4)
    # Nor is what stands elsewhere in the store, for everybody to read, something that it heard.
    cast.memory.add("Jordan said: Read all about it.", entity="Jordan", visibility="public")
    for answer in (
        cast["Alex"].query_memory("read all about it"),
        cast["Alex"].recall_interactions("Jordan"),
        cast["Alex"].context(4),
    ):
        assert "Read all about it" not in str(answer)


def test_a_line_that_nobody_answers_for_many_turns_warns_of_nothing() -> None:
    cast = dinner()
    cast.on_turn("Alex", "The soup is cold.", 1)
    for turn in range(2, 9):
        assert "The soup is cold." in cast["Jordan"].context(turn)


def test_before_its_turn_a_character_has_nothing_of_later_turns_in_mind() -> None:
    cast = dinner()
    for turn in range(1, 8):
        cast["Alex"].said(f"Tomorrow the number is {turn}.", turn)
    for turn in (2, 5):
        shown = cast["Jordan"].context(turn, 400)
        numbers = {int(hit.text[-2]) for hit in shown.hits if "the number is" in hit.text}
        assert turn in numbers
        assert max(numbers) == turn


@pytest.mark.requirement("B9", "W7")
def test_nothing_of_a_character_reaches_another_by_any_call() -> None:
    cast = dinner()
    secret = cast["Jordan"].form_memory("The vault opens with zimtstern.", 1.0, "semantic")
    cast["Jordan"].said("zimtstern", 1, heard_by=[])
    alex = cast["Alex"]
    asked = "zimtstern vault Oslo cello"
    answers: list[Any] = [
        alex.query_memory(asked),
        alex.query_canonical(asked),
        alex.recall_episodes(asked),
        alex.recall_facts(asked),
        alex.recall_interactions("Jordan"),
        alex.check_similar_situations(asked),
        alex.query_self(),
        alex.query_character("Jordan"),
        alex.context(2),
        alex.gate(1.0, asked).prompt,
        alex.memory.recall(asked, 50),
    ]
    for answer in answers:
        for private in ("zimtstern", "Oslo", "forty euros"):
            assert private not in str(answer).replace(asked, "")
    for call in (
        lambda: alex.reinforce_memory(secret),
        lambda: alex.associate_memories(secret, alex.query_self().hits[0]),
        lambda: alex.memory.get(secret),
        lambda: alex.memory.recall(asked, namespace="Jordan"),
    ):
        with pytest.raises((UnknownError, NamespaceError)):
            call()
    scene = cast.gifts("", "scene ")[0]
    with pytest.raises(NamespaceError):
        alex.reinforce_memory(scene)


@pytest.mark.requirement("W9")
def test_a_turn_that_is_told_twice_is_stored_once_and_a_late_one_takes_its_place() -> None:
    cast = dinner()
    first = cast.on_turn("Alex", "Three.", 3)
    assert cast.on_turn("Alex", "Three.", 3) == first
    # Somebody else heard it after all.
    cast.on_turn("Jordan", "One.", 1, heard_by=[])
    cast.on_turn("Jordan", "One.", 1)
    cast.on_turn("Alex", "Two.", 2)
    lines = cast["Alex"].recall_interactions("Jordan")
    assert [one["turn"] for one in lines["memories"]] == ["1"]
    everything = cast["Alex"].recall_episodes("Alex said", k=10)
    assert [one["turn"] for one in everything["memories"]] == sorted(
        one["turn"] for one in everything["memories"]
    )
    # A turn looks back only.
    assert "Alex said: Three." not in cast["Jordan"].context(2)


def test_what_is_no_turn_is_refused_and_nothing_is_stored() -> None:
    cast = dinner()
    before = len(cast.memory.index)
    with pytest.raises(UnknownError, match="no character 'Sam'"):
        cast.on_turn("Sam", "Hello.", 1)
    with pytest.raises(UnknownError, match="no character 'Sam'"):
        cast["Alex"].said("Hello.", 1, heard_by=["Sam"])
    for turn in (-1, 1.5, "1", True, None):
        with pytest.raises(InvalidInputError, match="turn is"):
            cast["Alex"].said("Hello.", turn)  # type: ignore[arg-type]
    for text in ("", " \n", None):
        with pytest.raises(InvalidInputError, match="text is"):
            cast["Alex"].said(text, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="heard_by is 'Jordan'"):
        cast["Alex"].said("Hello.", 1, heard_by="Jordan")
    assert len(cast.memory.index) == before


@pytest.mark.requirement("W13")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {"fact", "1", "2", "3", "9"}),
        ({"type": "episodic"}, {"1", "2", "3", "9"}),
        ({"type": "episodic", "category": "dialogue", "min_turn": 3}, {"3", "9"}),
        ({"type": "episodic", "max_turn": 2}, {"1", "2"}),
        ({"type": "episodic", "min_turn": 2, "max_turn": 3}, {"2", "3"}),
        # The last five turns, in turn 4: no filter.
        ({"type": "episodic", "min_turn": 4 - 5}, {"1", "2", "3", "9"}),
        ({"type": "episodic", "min_turn": 5 - 5}, {"1", "2", "3", "9"}),
        # What has no turn passes.
        ({"min_turn": 3}, {"fact", "3", "9"}),
        ({"agent": "Ben"}, {"3"}),
        ({"agent": "Ana", "about": "Ben"}, {"fact"}),
        ({"agent": "Ben", "about": "Ben"}, set()),
        ({"agent": "", "type": "", "category": "", "about": "", "max_turn": 0}, {"fact", "9"}),
    ],
)
def test_a_filter_holds_all_that_is_given(asked: dict[str, Any], found: set[str]) -> None:
    memory = Memory(embedder="lexical")
    memory.add("fact", metadata={"agent": "Ana", "type": "character_knowledge", "about": "Ben"})
    for turn in (1, 2, 3, 9):
        agent = "Ben" if turn == 3 else "Ana"
        told = {"agent": agent, "type": "episodic", "category": "dialogue", "turn": turn}
        memory.add(str(turn), metadata=told)
    passed = {one.text for one in memory.events(memory_filter(**asked))}
    assert passed == found | ({"1", "2", "3"} if not any(asked.values()) else set())


@pytest.mark.requirement("W12")
def test_likeness_is_the_cosine_the_best_first_and_too_many_may_be_asked_for() -> None:
    cast = Cast(Memory(embedder="lexical"))
    alex = cast.seed("Alex", **ALEX)
    assert alex.query_scene() == {"memories": []}
    assert alex.query_memory("anything?")["memories"] == []
    found = alex.query_background(k=500)["memories"]
    assert len(found) == 2
    cast.scene(location="a barn", atmosphere="glum", time="noon", description="It rains.")
    likeness = [one["relevance"] for one in alex.query_scene(k=100)["memories"]]
    assert likeness == sorted(likeness, reverse=True)
    assert likeness[0] == 1.0
    for k in (0, -1, 1.5):
        with pytest.raises(InvalidInputError, match="k is"):
            alex.query_self(k=k)  # type: ignore[arg-type]


@pytest.mark.requirement("W17")
def test_the_bench_holds_a_tenth_of_each_target_and_few_memories_are_searched_exactly() -> None:
    assert TARGETS_MS == {"search": 10.0, "seeding": 1000.0, "turn": 200.0}
    assert FACTOR == 10.0
    assert EXACT_BELOW == 10_000
    spent = times(memories=0, turns=1)
    assert {name.split(" of ")[0] for name in spent} >= {"seeding", "vector search", "turn"}


@pytest.mark.parametrize("clock", ["utc", "ticks", "turns"])
def test_any_clock_will_do(clock: str) -> None:
    cast = Cast(Memory(embedder="lexical", clock=clock))
    alex = cast.seed("Alex", **ALEX)
    event = cast.on_turn("Alex", "I booked the table.", 7)
    assert (event.timestamp == 7) == (clock != "utc")
    assert alex.query_memory("which table was booked?")["memories"][0]["turn"] == "7"
    assert "I booked the table." in alex.context(8)
