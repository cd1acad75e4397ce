"""What is known comes back: short facts, slips of the pen, weeks and months, what was taught."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from cvx.dates import DateNamed, read_dates
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.recall.floor import LEXICAL_FLOOR, SEMANTIC_FLOOR, fullness
from cvx.recall.question import spelt_alike
from cvx.types import Event, Vector
from tests.recall.test_no_answer import FOREIGN, remembered


def columns(nearness: float) -> dict[str, np.ndarray]:
    """Of a question that shares no word with the memory."""
    return {
        "dense": np.array([nearness]),
        **{name: np.zeros(1) for name in ("coverage", "coverage_store", "coverage_window")},
    }


@pytest.mark.requirement("B14")
def test_short_facts_are_answered_by_nearness_where_a_conversation_is_asked_for_words() -> None:
    for size in (8, 40, 1_000):
        # As near as questions about facts are, in other words, and as others are.
        assert SEMANTIC_FLOOR.probability(columns(0.3), size, 30.0) > SEMANTIC_FLOOR.threshold
        assert SEMANTIC_FLOOR.probability(columns(0.1), size, 30.0) < SEMANTIC_FLOOR.threshold
    assert SEMANTIC_FLOOR.probability(columns(0.3), 1_000, 140.0) < SEMANTIC_FLOOR.threshold
    assert fullness(1_000, 30.0) < fullness(1_000, 60.0) < fullness(1_000) == 1.0
    words = {name: np.full(1, 0.1) for name in LEXICAL_FLOOR.features}
    short, long = (LEXICAL_FLOOR.probability(words, 1_000, length) for length in (30.0, 140.0))
    assert short == long  # Nearness of spelling is none of meaning.


class OneWorld:
    """Vectors of which the first number says how near a text is to every question."""

    near = 0.3

    def embed(self, texts: Sequence[str]) -> Vector:
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            question = "?" in text
            row[0] = 1.0 if question else self.near
            row[1 + sum(text.encode()) % 63] = 0.0 if question else (1.0 - self.near**2) ** 0.5
        return rows

    def info(self) -> dict[str, object]:
        return {"id": "all-MiniLM-L6-v2, made up", "dim": 64, "semantic": True}


@pytest.mark.requirement("B14", "R7")
@pytest.mark.parametrize("others", [0, 400])
def test_a_fact_in_other_words_comes_back_and_is_not_called_unlikely(others: int) -> None:
    memory = Memory(embedder=OneWorld())
    memory.add("Mira's bike was stolen.")
    memory.add_many(Event(f"Oda repaired radio {n}") for n in range(others))
    hits = memory.recall("What got nicked?")
    assert hits
    assert (hits[0].relevance or 0.0) > 0.2
    talk = Memory(embedder=OneWorld())
    talk.add_many(
        Event(f"In letter {n} she wrote at length{' and more' * 14}.") for n in range(400)
    )
    assert talk.recall("What got nicked?") == []


@pytest.mark.requirement("B14")
@pytest.mark.parametrize(
    ("cue", "word"),
    [
        ("coconutt?", "coconut"),
        ("When is my dentst appointmnt?", "dentist"),
        ("Bitwardn", "Bitwarden"),
        ("the pasword managr", "password"),
    ],
)
def test_a_slip_of_the_pen_still_finds_the_word(cue: str, word: str) -> None:
    memory = remembered(
        "I can't have coconut, it gives me hives.",
        "My appointment with the dentist is on 16 September.",
        "I found the password manager, it is Bitwarden.",
        more=60,
    )
    assert word in memory.recall(cue)[0].text
    assert memory.recall(FOREIGN[0]) == []
    assert memory.recall("Who is the dervish?") == []


def test_what_is_spelt_alike_is_one_slip_away() -> None:
    assert spelt_alike("tyroid", "thyroid")
    assert not spelt_alike("password", "passport")
    assert not spelt_alike("house", "mouse")
    assert not spelt_alike("dental", "dentist")


NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)  # a Thursday
SAID = ("Deployed billing", "Disk alert", "The parcel arrived", "The dentist called")


def diary(*, without: int | None = None, embedder: LexicalEmbedder | None = None) -> Memory:
    memory = Memory(embedder=embedder or LexicalEmbedder())
    for back in range(60):
        if back != without:
            then = int((NOW - timedelta(days=back)).timestamp() * 1e6)
            memory.add(f"{SAID[back % 4]} ({back})", timestamp=then)
    return memory


def days_ago(memory: Memory, question: str, k: int) -> set[int]:
    from cvx.types import Cue

    hits = memory.recall(Cue(text=question, timestamp=int(NOW.timestamp() * 1e6)), k)
    return {int(hit.text.partition("(")[2].rstrip(")")) for hit in hits}


@pytest.mark.requirement("R2", "B14")
@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What happened last week?", 4, 10),
        ("What happened this week?", 0, 3),
        ("What happened in the last week?", 0, 7),
        ("What did we do over the past 3 days?", 0, 3),
        ("What happened two weeks ago?", 11, 17),
        ("What happened last month?", 26, 56),
        ("What did we talk about yesterday?", 1, 1),
        ("What was said yesterday?", 1, 1),
        ("What was new today?", 0, 0),
        ("Summarise yesterday.", 1, 1),
    ],
)
def test_a_week_or_a_month_is_all_of_its_days(question: str, first: int, last: int) -> None:
    memory = diary()
    assert days_ago(memory, question, last - first + 1) == {*range(first, last + 1)}


@pytest.mark.requirement("B14")
def test_a_day_without_events_empties_no_week() -> None:
    memory = diary(without=7)
    assert days_ago(memory, "What happened last week?", 6) == {4, 5, 6, 8, 9, 10}


def test_a_year_alone_is_looked_for_as_a_word() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add("The report of 2019 is in the attic.", timestamp=int(NOW.timestamp() * 1e6))
    memory.add("We met in Rome.", timestamp=int(NOW.timestamp() * 1e6) + 1)
    assert memory.recall("2019")[0].text == "The report of 2019 is in the attic."
    assert memory.recall("What happened on 7 May 2019?") == []


def test_times_up_to_now_are_read_and_what_may_be_something_else_is_not() -> None:
    now = int(NOW.timestamp() * 1e6)
    assert read_dates("What was there in the past two weeks?", now)[0] == [
        DateNamed(2026, 11, 12, 15)
    ]
    for text in (
        "the last day of school",
        "the last week of lessons",
        "the past",
        "the last year of it",
    ):
        assert read_dates(text, now)[0] == []
    assert read_dates("in the last 9999 years", now)[0] == []
    assert read_dates("last week", now)[0] == [DateNamed(2026, 11, 16, 7)]


@pytest.mark.requirement("B12", "B14")
def test_what_an_empty_answer_named_can_be_said_to_have_helped() -> None:
    memory = remembered("Mira drives a red Fiat.", "Tobias is a carpenter.", more=30)
    question = "Which automobile is parked outside?"
    empty = memory.recall(question, 40)
    assert empty == []
    wanted = next(hit for hit in empty.nearest if "Fiat" in hit.text)
    memory.feedback(empty, helped=[wanted])
    again = memory.recall(question)
    assert wanted.id in [hit.id for hit in again]
    assert "feedback" in [factor.name for hit in again for factor in hit.factors]
    assert "Fiat" in memory.context(question)
    assert memory.recall("Which automobile is parked outside today?")
    assert memory.recall(FOREIGN[0]) == []
    memory.learning.reset("recall")
    assert memory.recall(question) == []


@pytest.mark.requirement("B12")
def test_what_helped_with_the_floor_off_passes_it_afterwards() -> None:
    memory = remembered("Mira drives a red Fiat.", "Tobias is a carpenter.", more=30)
    question = "Which automobile is parked outside?"
    assert memory.recall(question) == []
    shown = memory.recall(question, 40, floor=False)
    assert shown.trace.answerable is not None
    memory.feedback(shown, helped=[hit for hit in shown if "Fiat" in hit.text])
    fiat = next(hit for hit in memory.recall(question) if "Fiat" in hit.text)
    memory.erase([fiat.id])
    assert memory.recall(question) == []


@pytest.mark.requirement("B12")
def test_an_error_of_feedback_names_what_was_said() -> None:
    memory = remembered("Mira drives a red Fiat.", more=30)
    other = memory.add("Tobias is a carpenter.")
    hits = memory.recall("Fiat", 1)
    with pytest.raises(InvalidInputError, match="is said to have helped, but decision"):
        memory.feedback(hits, helped=[other])
    with pytest.raises(InvalidInputError, match="was followed, but decision"):
        memory.feedback(hits, followed=[other])


@pytest.mark.requirement("B8")
def test_a_decision_that_followed_what_was_nearest_forgets_it_when_it_is_erased() -> None:
    memory = remembered("Mira drives a red Fiat.", more=30)
    empty = memory.recall("Which automobile is parked outside?", 40)
    wanted = next(hit for hit in empty.nearest if "Fiat" in hit.text)
    memory.feedback(empty, helped=[wanted])
    memory.erase([wanted.id])
    assert empty.decision is not None
    told = memory.learning.attribution(empty.decision)
    assert wanted.id not in (told.followed or ())


@pytest.mark.requirement("R7")
def test_false_as_a_floor_leaves_out_nothing() -> None:
    memory = remembered("Mira drives a red Fiat.", more=30)
    assert memory.recall(FOREIGN[0]) == []
    assert len(memory.recall(FOREIGN[0], 40, floor=False)) == 31
    assert memory.context(FOREIGN[0], floor=False)
