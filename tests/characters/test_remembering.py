"""What is held firmly and what fades, what reinforces it, and memories of its own making."""

from __future__ import annotations

import pytest

from cvx.characters import TYPES, Cast
from cvx.characters.appraisal import Appraisal, feeling_in, held
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.types import Event
from tests.characters.dinner import ALEX, JORDAN, contents, dinner


def hold(event: Event) -> float:
    """Return how firmly a memory is held."""
    assert event.salience is not None
    return event.salience


@pytest.mark.requirement("W18")
def test_importance_is_that_of_the_document_and_worked_out_by_hand() -> None:
    # 0.4 * 0.5 + 0.3 * 1.0 + 0.3 * 0.2
    felt = Appraisal(goal_relevance=0.5, emotional_impact=1.0, novelty=0.2)
    assert felt.importance == pytest.approx(0.56)
    # 1 - 0.44 * 0.5
    assert felt.hold == pytest.approx(0.78)
    assert Appraisal(0.5, 0.0, 0.2).hold == pytest.approx(0.26)
    assert Appraisal(0.8, 0.0, 0.0).hold == 1.0
    assert held(0.3, 0.0) < held(0.3, 0.5) < held(0.3, 1.0) < held(0.9, 1.0)


@pytest.mark.requirement("W18")
def test_a_line_matters_by_the_hearers_goals_by_its_feeling_and_by_what_is_new() -> None:
    cast = dinner()
    # Word for word what Jordan wants, and nothing that Alex does.
    wanted = cast.on_turn("Alex", "Find a restaurant that serves Italian food.", 1)
    (jordans,) = [one for one in cast["Jordan"].memory.events() if one.key == wanted.key]
    assert hold(jordans) > hold(wanted)
    assert jordans.metadata["importance"] > wanted.metadata["importance"]
    plain = cast.on_turn("Alex", "The tram stops at the corner.", 2)
    moving = cast.on_turn("Alex", "I was terrified when grandmother died, and I wept!", 3)
    again = cast.on_turn("Alex", "The tram stops at the corner.", 4)
    assert hold(moving) > hold(plain) > hold(again)
    assert feeling_in("The tram stops at the corner.") == 0.0


@pytest.mark.requirement("W18")
def test_what_matters_fades_more_slowly_and_what_is_critical_never() -> None:
    cast = Cast(Memory(embedder="lexical", clock="turns"), half_life=10)
    alex = cast.seed("Alex", **ALEX)
    for importance in (0.0, 0.5, 1.0):
        alex.form_memory("A rider passed the gate.", importance, turn=1)
    cast.on_turn("Alex", "Nothing.", 101)
    hits = alex.query_memory("did a rider pass the gate?", 5).hits
    ages = {}
    for hit in hits:
        if "rider" in hit.text:
            (recency,) = [one for one in hit.factors if one.name == "recency"]
            ages[hit.metadata["importance"]] = recency.value
    # Ten half-lives, five, and none; asked for, each would be fresh again.
    assert ages == {
        0.0: pytest.approx(2**-10, rel=0.05),
        0.5: pytest.approx(2**-5, rel=0.05),
        1.0: 1.0,
    }


@pytest.mark.requirement("W18")
def test_being_called_up_makes_a_memory_fresh_again() -> None:
    cast = Cast(Memory(embedder="lexical", clock="turns"), half_life=10)
    alex = cast.seed("Alex", **ALEX)
    alex.form_memory("A rider passed the gate.", 0.0, turn=1)
    cast.on_turn("Alex", "Nothing.", 101)

    def recency() -> float:
        hits = alex.query_memory("did a rider pass the gate?").hits
        (hit,) = [one for one in hits if "rider" in one.text]
        return next(one.value for one in hit.factors if one.name == "recency")

    faded = recency()
    assert faded < 0.01
    assert recency() == pytest.approx(1.0)


@pytest.mark.requirement("W18", "W20")
def test_each_kind_of_reinforcement_holds_a_memory_more_firmly() -> None:
    alex = dinner()["Alex"]
    memory = alex.form_memory("The red door leads to the basement.", 0.5, "semantic")
    assert memory.salience == 0.5
    holds = []
    for how in ("retrieved", "influenced", "emotional"):
        memory = alex.reinforce_memory(memory.id, how)
        holds.append(memory.salience)
    # Of what is missing to 1, each time: a twentieth, a fifth, three tenths.
    assert holds == pytest.approx([0.525, 0.62, 0.734])
    assert memory.metadata["reinforced"] == 3
    assert memory.text == "The red door leads to the basement."
    assert contents(alex.recall_facts("red door basement", 1)) == [memory.text]
    with pytest.raises(InvalidInputError, match="how is 'loudly'"):
        alex.reinforce_memory(memory, "loudly")


@pytest.mark.requirement("W18")
def test_what_moves_now_reinforces_what_it_is_like() -> None:
    cast = dinner()
    before = cast.on_turn("Jordan", "My dog died in the fire and I wept with grief!", 1)
    cast.on_turn("Jordan", "My dog died in the fire and I wept with grief, and rage!", 2)
    after = cast["Jordan"].memory.get(before)
    assert hold(after) > hold(before)
    assert after.metadata["reinforced"] == 1


@pytest.mark.requirement("W19")
@pytest.mark.parametrize("kind", TYPES)
def test_each_type_of_memory_is_formed_and_found(kind: str) -> None:
    alex = dinner()["Alex"]
    event = alex.form_memory("The warehouse makes me anxious.", 0.4, kind, turn=2)
    lasting = kind in ("emotional", "procedural", "semantic")
    assert event.metadata["type"] == event.kind == (kind if lasting else "episodic")
    assert event.metadata["category"] == kind
    found = alex.memory.recall("warehouse", where={"metadata": {"category": kind}})
    assert [hit.id for hit in found] == [event.id]
    episodes = [hit.id for hit in alex.query_memory("anxious warehouse").hits]
    assert (event.id in episodes) == (not lasting)
    felt = kind in ("emotional", "emotional_response")
    assert event.salience == pytest.approx(
        held(0.4, 1.0 if felt else feeling_in("The warehouse makes me anxious."))
    )


@pytest.mark.requirement("W20")
def test_episodes_are_told_in_the_order_in_which_they_happened() -> None:
    cast = dinner()
    for turn, text in ((5, "The duck swam off."), (1, "A duck came."), (3, "The duck ate bread.")):
        cast.on_turn("Alex", text, turn)
    alex = cast["Alex"]
    assert [one["turn"] for one in alex.recall_episodes("duck")["memories"]] == ["1", "3", "5"]
    some = alex.recall_episodes("duck", (2, None))["memories"]
    assert [one["turn"] for one in some] == ["3", "5"]
    assert [one["turn"] for one in alex.recall_episodes("duck", (None, 3))["memories"]] == [
        "1",
        "3",
    ]
    alex.form_memory("The duck is the mayor's.", 0.95, "observation", turn=4)
    grave = alex.recall_episodes("duck", importance_threshold=0.9)["memories"]
    assert [one["turn"] for one in grave] == ["4"]
    for wrong in ((3, 1), (1,), "12", (-1, 2), (1.5, None)):
        with pytest.raises(InvalidInputError, match="time_range"):
            alex.recall_episodes("duck", wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="importance_threshold is 2"):
        alex.recall_episodes("duck", importance_threshold=2)


@pytest.mark.requirement("W20")
def test_facts_come_with_the_confidence_that_their_source_deserves() -> None:
    cast = dinner()
    alex = cast["Alex"]
    fact = alex.form_memory("The red door leads to the basement.", 0.5, "semantic")
    cast.on_turn("Jordan", "The red door is ugly.", 1)
    (first, *others) = alex.recall_facts("where does the red door lead?")["memories"]
    assert first["id"] == fact.id
    assert first["confidence"] == first["relevance"]
    assert all("ugly" not in one["content"] for one in others)
    alex.memory.update(fact, trust=0.5)
    answer = alex.recall_facts("where does the red door lead?", 10)
    (first,) = [one for one in answer["memories"] if one["id"] == fact.id]
    assert first["confidence"] == pytest.approx(first["relevance"] / 2, abs=1e-4)


@pytest.mark.requirement("W20")
def test_interactions_are_what_the_other_said_and_what_named_the_other() -> None:
    cast = dinner()
    cast.seed("Sam", **{**JORDAN, "relationships": {}})
    cast.on_turn("Jordan", "Shall we?", 1)
    cast.on_turn("Alex", "Yes, Jordan, at once.", 2)
    cast.on_turn("Sam", "I stay here.", 3)
    cast.on_turn("Alex", "As you like, Sam.", 4)
    told = cast["Alex"].recall_interactions("Jordan")
    assert contents(told) == ["Jordan said: Shall we?", "Alex said: Yes, Jordan, at once."]
    assert told["query"] == "Jordan"
    assert all(isinstance(one["id"], int) for one in told["memories"])


@pytest.mark.requirement("W20")
def test_a_similar_situation_is_told_with_what_came_of_it() -> None:
    cast = dinner()
    cast.on_turn("Alex", "The bridge is closed again, we need another way.", 1)
    cast.on_turn("Jordan", "We took the ferry, and were in time.", 2)
    (told, *_) = cast["Alex"].check_similar_situations("the bridge is closed")["memories"]
    assert told["content"].endswith("we need another way.")
    assert told["then"] == "Jordan said: We took the ferry, and were in time."
    last = cast["Alex"].check_similar_situations("we took the ferry", 1)["memories"][0]
    assert last["then"] is None


@pytest.mark.requirement("W20")
def test_associated_memories_call_each_other_up() -> None:
    alex = dinner()["Alex"]
    cellar = alex.form_memory("The cellar smells of smoke.", 0.5)
    song = alex.form_memory("Marit hummed an old tune.", 0.5)
    for number in range(200):
        alex.form_memory(f"Parcel {number} went to Ghent.", 0.1)
    asked = "what does the cellar smell of?"
    before = {hit.id for hit in alex.query_memory(asked, 200).hits}
    assert cellar.id in before
    alex.associate_memories(cellar, song, why="they happened on one night")
    weighed = alex.memory.learning.candidates(asked, pipeline=alex.memory.learning.pipeline)
    assert song.id in weighed.event_ids.tolist()
    assert not alex.memory.why(song)
    with pytest.raises(InvalidInputError):
        alex.associate_memories(cellar, cellar)


def test_what_is_no_memory_of_its_own_is_refused() -> None:
    alex = dinner()["Alex"]
    with pytest.raises(InvalidInputError, match="content is ''"):
        alex.form_memory("")
    with pytest.raises(InvalidInputError, match=r"importance is 1\.5"):
        alex.form_memory("x", 1.5)
    with pytest.raises(InvalidInputError, match="type is 'dream'"):
        alex.form_memory("x", 0.5, "dream")
    with pytest.raises(InvalidInputError, match="query is"):
        alex.query_memory("")
