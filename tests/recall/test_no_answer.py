"""No hits where nothing is known, and calibrated relevance of each hit."""

from collections.abc import Sequence

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.recall.floor import LEXICAL_FLOOR, SEMANTIC_FLOOR, RescaledFloor, shipped_floor
from cvx.recall.presets import composite
from cvx.types import Cue, Event, Vector

FACTS = (
    "The spare key is under the green pot.",
    "Ann is allergic to peanuts.",
    "The dentist appointment is on Friday at noon.",
)
FOREIGN = (
    "Do quantum zebras dream of electric fields?",
    "Who won the world cup in 1966?",
    "Which enzyme unwinds a double helix?",
)


def remembered(*texts: str, more: int = 0) -> Memory:
    """A memory of some facts among others that are made of common words."""
    memory = Memory(embedder=LexicalEmbedder())
    random = np.random.default_rng(0)
    words = [
        "house",
        "garden",
        "train",
        "bread",
        "river",
        "music",
        "paper",
        "winter",
        "friend",
        "window",
        "market",
        "story",
    ]
    memory.add_many(
        Event(
            f"We spoke of the {' and the '.join(random.choice(words, 3, replace=False))}.",
            timestamp=n,
        )
        for n in range(more)
    )
    for text in texts:
        memory.add(text)
    return memory


@pytest.mark.requirement("B14", "R7")
@pytest.mark.parametrize("more", [0, 30, 400])
def test_a_question_of_something_else_comes_back_empty_and_says_what_was_nearest(more: int) -> None:
    memory = remembered(*FACTS, more=more)
    for cue in FOREIGN:
        hits = memory.recall(cue)
        assert hits == []
        assert hits.trace.answerable is not None
        assert hits.trace.answerable < LEXICAL_FLOOR.threshold
        assert len(hits.nearest) == min(10, 3 + more)
        assert hits.nearest[0].relevance is not None
        assert memory.context(cue) == ""
    # The floor can be switched off for a call.
    assert memory.recall(FOREIGN[0], floor=-1.0)


@pytest.mark.requirement("B14")
@pytest.mark.parametrize(
    ("cue", "fact"),
    [
        ("Where is the key?", 0),
        ("Where did I hide the spare key?", 0),
        ("key", 0),
        ("what can Ann not eat?", 1),
        ("which food is Ann allergic to?", 1),
        ("when do I see the dentist?", 2),
        ("Is there anything on Friday?", 2),
        ("When is my appointment with the doctor?", 2),
    ],
)
def test_a_few_facts_answer_a_question_that_shares_a_word_with_one(cue: str, fact: int) -> None:
    for memory in (remembered(*FACTS), remembered(FACTS[fact])):
        hits = memory.recall(cue)
        assert hits[0].text == FACTS[fact]
        assert hits.nearest == []
        relevance = [hit.relevance or 0.0 for hit in hits]
        assert relevance == sorted(relevance, reverse=True)
        assert 0.15 < relevance[0] < 1.0


@pytest.mark.requirement("B14")
def test_that_questions_of_one_form_are_alike_is_no_sign_of_an_answer() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    things = [f"{first}{last}" for first in "bcdfgklmn" for last in ("ake", "oat", "ink", "amp")]
    memory.add_many(Event(f"How many kinds of {thing} are there?", timestamp=0) for thing in things)
    hits = memory.recall("How many kinds of wolkep are there?")
    assert hits == []
    # The nearest vector is near, and counts for nothing beside the word that nobody holds.
    assert (hits.nearest[0].similarity or 0.0) > 0.5
    table = memory.learning.candidates("How many kinds of wolkep are there?")
    table.add("dense", np.ones(len(table)))
    assert LEXICAL_FLOOR.probability(table.columns, len(things)) == hits.trace.answerable


@pytest.mark.requirement("B14")
def test_what_is_less_relevant_than_asked_for_is_left_out() -> None:
    memory = remembered(*FACTS)
    hits = memory.recall("Where is the key?", min_relevance=0.5)
    assert [hit.text for hit in hits] == [FACTS[0]]
    none = memory.recall("Where is the key?", min_relevance=0.99)
    assert (none, none.nearest[0].text) == ([], FACTS[0])
    assert memory.context("Where is the key?", min_relevance=0.99) == ""
    with pytest.raises(InvalidInputError, match="min_relevance"):
        memory.recall("Where is the key?", min_relevance=1.5)
    with pytest.raises(InvalidInputError, match="this pipeline knows no relevance"):
        memory.recall("Where is the key?", min_relevance=0.5, pipeline=composite())


@pytest.mark.requirement("B14")
def test_an_empty_namespace_says_so_and_names_no_other() -> None:
    memory = remembered(*FACTS)
    hits = memory.recall("Where is the key?", namespace="bob")
    assert (hits, hits.nearest, hits.trace.held) == ([], [], 0)
    assert "nothing is remembered in 'bob'" in str(hits.trace)
    assert memory.recall(FOREIGN[0]).trace.held == 3
    assert "nothing is remembered" not in str(memory.recall(FOREIGN[0]).trace)


def test_a_state_a_vector_and_a_cue_without_words_are_not_judged() -> None:
    memory = remembered(*FACTS)
    vector = LexicalEmbedder().embed(["peanuts"])[0]
    for cue in (Cue(goal="dream of electric zebras"), Cue(vector=vector), "?", Cue(text="where?")):
        assert memory.recall(cue).trace.answerable is None
    assert memory.recall(Cue(vector=vector))


class Turned:
    """Vectors of another scale: of two directions in common, and one that the text alone has."""

    def embed(self, texts: Sequence[str]) -> Vector:
        rows = LexicalEmbedder().embed(texts)
        return np.hstack([rows, np.full((len(texts), 1), 1.5, dtype=np.float32)])

    def info(self) -> dict[str, object]:
        return {"id": "turned", "dim": LexicalEmbedder().dim + 1, "semantic": True}


@pytest.mark.requirement("B14")
def test_the_floor_of_an_unknown_embedder_is_on_the_scale_of_its_own_vectors() -> None:
    memory = Memory(embedder=Turned())
    assert memory.learning.pipeline.floor.answerable == RescaledFloor()
    memory.add_many(Event(text, timestamp=n) for n, text in enumerate(FACTS))
    assert memory.recall(FOREIGN[0]).trace.answerable is None
    twin = remembered(*FACTS, more=100)
    memory.add_many(replace_vector(event) for event in twin.events())
    known = memory.recall("Where is the spare key?")
    foreign = memory.recall(FOREIGN[0])
    assert known.trace.answerable is not None
    assert foreign.trace.answerable is not None
    # All cosines are above .6, and still a stranger is told from an answer.
    assert min(hit.similarity for hit in foreign.nearest) > 0.6
    assert foreign.trace.answerable < SEMANTIC_FLOOR.threshold < known.trace.answerable


def replace_vector(event: Event) -> Event:
    return Event(event.text, timestamp=event.timestamp)


def test_each_shipped_embedder_has_its_floor() -> None:
    assert shipped_floor(str(LexicalEmbedder(dim=64).info()["id"])) is LEXICAL_FLOOR
    for name in ("local/384/mean/9977d53604db81fa9c4ebe0d5bd2157e", "ollama/all-minilm:latest"):
        assert shipped_floor(name) is SEMANTIC_FLOOR
    assert shipped_floor("another") == RescaledFloor()
    assert shipped_floor(None) is None


@pytest.mark.requirement("B14")
def test_a_name_and_a_word_of_the_same_stem_are_enough_in_a_new_memory() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("Ana is allergic to peanuts.")
    memory.add("Ana moved to Lisbon last spring.")
    assert memory.recall("Which allergies does Ana have?")[0].text == "Ana is allergic to peanuts."
    assert memory.recall("Where does Ana live?")[0].relevance is not None
    assert memory.recall(FOREIGN[0]) == []


OTHERS = (
    "Bob likes hiking in the mountains.",
    "The meeting is at ten on Monday.",
    "Ana works at a bakery in the old town.",
    "The printer is out of toner.",
    "Dana plays the cello in an orchestra.",
    "The doctor prescribed antibiotics for the infection.",
    "Hugo proposed a partnership to the town.",
    "The concert was cancelled.",
    "Jan organises the volunteers at the shelter.",
    "The recycling is collected on Fridays.",
    "Quinn speaks Portuguese and Danish.",
    "Lunch was late on Tuesday.",
)


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("others", [3, 12, 36])
@pytest.mark.parametrize(
    ("cue", "fact"),
    [
        ("Which allergies does Ana have?", "Ana is allergic to nuts."),
        ("What food allergies are there?", "Ana is allergic to nuts."),
        ("Are there any infectious diseases?", OTHERS[5]),
        ("Who could be a business partner?", OTHERS[6]),
        ("Is there a cancellation?", OTHERS[7]),
    ],
)
def test_a_small_memory_answers_what_has_a_root_in_common_with_it(
    cue: str, fact: str, others: int
) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add(fact, entity="Ana" if "Ana" in fact else None)
    around = [text for text in OTHERS if text != fact]
    for n in range(others):
        more = f" Note {n} of {around[n % 7]}" if n >= len(around) else ""
        memory.add(around[n % len(around)] + more)
    hits = memory.recall(cue)
    assert [hit.text for hit in hits[:1]] == [fact]
    for foreign in FOREIGN:
        assert memory.recall(foreign) == []
