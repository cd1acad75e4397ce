from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.dates import DateNamed, read_dates, relative_dates
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.recall.question import read_question, two_sides
from cvx.recall.ranking_signals import Neighbourhood, date_signals
from cvx.render import Renderer, entries_of
from cvx.types import Clock, Cue, Event
from tests.recall.plain_view import PlainView, Said, candidates

DAYS = st.dates(date(1950, 1, 1), date(2080, 12, 31))
FORMS = ("%d %B %Y", "%B %d,%Y", "%d %b %Y", "%B %d, %Y", "%b %d %Y", "%d %B, %Y", "%Y-%m-%d")


def microseconds(day: date) -> int:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (midnight - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(DAYS, st.sampled_from(FORMS))
def test_a_whole_date_is_read_in_every_form_and_taken_out(day: date, form: str) -> None:
    found, left = read_dates(f"What did she paint on {day.strftime(form)} at the lake?")
    assert found == [DateNamed(day.year, day.month, day.day)]
    assert left == "What did she paint on at the lake?"


@given(DAYS)
def test_a_month_with_its_year_is_read(day: date) -> None:
    assert read_dates(f"Where was she in {day:%B %Y}?")[0] == [DateNamed(day.year, day.month, None)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Did it rain in May?", [DateNamed(None, 5, None)]),
        ("May I march to the second door?", []),
        ("What happened on the 3rd of June?", [DateNamed(None, 6, 3)]),
        ("What came of 2022?", [DateNamed(2022, None, None)]),
        ("Room 2022.5 or 12,2022,3?", []),
        ("Model w2015 or PS2015?", []),
        ("What about 31 February 2020?", []),
        ("On 2023-13-01?", []),
        ("What was yesterday?", []),
    ],
)
def test_what_may_be_no_date_is_none(text: str, named: list[DateNamed]) -> None:
    assert read_dates(text)[0] == named


@given(DAYS, st.integers(1, 400))
def test_days_ago_are_counted_from_now(day: date, back: int) -> None:
    then = day - timedelta(days=back)
    found, _ = read_dates(f"What did I say {back} days ago?", microseconds(day))
    assert found == [DateNamed(then.year, then.month, then.day)]


@given(
    st.text(max_size=300) | st.just("What did I say 3 weeks ago, or yesterday?"),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_any_text_is_read_at_any_time(text: str, now: int | None) -> None:
    for named in read_dates(text, now)[0]:
        assert named.month is None or 1 <= named.month <= 12
        assert named.day is None or named.month is not None


@given(DAYS, st.lists(DAYS, min_size=1, max_size=8))
def test_nearness_month_and_year_are_those_of_the_calendar(asked: date, days: list[date]) -> None:
    view = PlainView([Said("x", timestamp=microseconds(day)) for day in days])
    question = read_question(f"What was painted on {asked:%d %B %Y}?", view)
    columns = date_signals(Neighbourhood(question, candidates(np.arange(len(days))), view))
    for row, day in enumerate(days):
        # Noon of the day asked for, from midnight of the day it happened.
        apart = abs((day - asked).days - 0.5)
        assert columns["date_near"][row] == pytest.approx(np.exp(-apart / 4))
        assert columns["date_month"][row] == ((day.year, day.month) == (asked.year, asked.month))
        assert columns["date_year"][row] == (day.year == asked.year)


def test_a_day_without_a_year_is_that_of_the_events_own_year() -> None:
    view = PlainView([Said("x", timestamp=microseconds(date(year, 6, 3))) for year in (2019, 2021)])
    question = read_question("What was painted on 3 June?", view)
    columns = date_signals(Neighbourhood(question, candidates(np.arange(2)), view))
    assert columns["date_near"][0] == columns["date_near"][1] > 0.8
    assert columns["date_year"].tolist() == [0.0, 0.0]


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@given(DAYS, st.sampled_from(WEEKDAYS))
def test_the_last_friday_is_the_nearest_before_the_day_it_is_said(day: date, name: str) -> None:
    said = f"We met last {name}, meet this {name} and next {name}."
    last, after = relative_dates(said, microseconds(day))
    assert f"{last.day:%A}" == f"{after.day:%A}" == name
    assert 1 <= (day - last.day).days <= 7
    assert 1 <= (after.day - day).days <= 7


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("It was yesterday.", "2024-03-30"),
        ("the day before  yesterday", "2024-03-29"),
        ("two weeks ago", "week of 2024-03-11"),
        ("A couple of days ago", "2024-03-29"),
        ("a month ago", "2024-02"),
        ("13 months ago", "2023-02"),
        ("Last year", "2023"),
        ("next month", "2024-04"),
        ("last year's trip", "2023"),
        ("This month at work", "2024-03"),
        ("It was 2024, two years ago", "2022"),
        ("I left. 2 years ago", "2022"),
        ("two weeks ago, in the last week of May", "week of 2024-03-11"),
        ("Last night", "2024-03-30"),
        ("YE\u017fTERDAY", "2024-03-30"),
        ("tonight", "2024-03-31"),
        ("this Morning", "2024-03-31"),
        ("This afternoon", "2024-03-31"),
        ("this evening", "2024-03-31"),
        ("TOMORROW", "2024-04-01"),
        ("next Friday", "2024-04-05"),
    ],
)
def test_what_is_said_on_a_day_means_a_date(said: str, meant: str) -> None:
    (found,) = relative_dates(said, microseconds(date(2024, 3, 31)))
    assert str(found) == meant


@pytest.mark.parametrize(
    "said",
    [
        "thirty-two years ago",
        "thirty two years ago",
        "twenty-one days ago",
        "one hundred and two days ago",
        "2.5 years ago",
        "1,000 days ago",
        "1 000 days ago",
        "1/2 years ago",
        "half a year ago",
        "a quarter of a year ago",
        "two or three years ago",
        "2\u20133 years ago",
        "a year and two months ago",
        "one year, two months ago",
        "last week of May",
        "the last week of May",
        "the last year of the war",
        "Next year at school",
        "last month in Rome",
        "over the last year",
        "the last Friday in May",
        "last Friday of May",
        "this Monday",
        "last weekend",
        "this weekend",
        "a last week-long trip",
    ],
)
def test_what_may_be_meant_otherwise_is_resolved_to_nothing(said: str) -> None:
    now = microseconds(date(2023, 5, 10))
    assert relative_dates(said, now) == []


def test_a_week_of_a_month_is_no_second_date() -> None:
    asked = "What rained in the last week of May 2022?"
    now = microseconds(date(2023, 5, 10))
    assert read_dates(asked, now)[0] == [DateNamed(2022, 5, None)]
    # The month is read before the words around it are taken out.
    assert read_dates("last week of May", now)[0] == [DateNamed(None, 5, None)]
    assert read_dates("On 3 yesterday May", now)[0][-1] == DateNamed(2023, 5, 9)


@given(st.text(max_size=200) | st.just("9999 years ago, yesterday, next year"), st.integers())
def test_any_text_of_any_time_is_resolved_or_left(text: str, timestamp: int) -> None:
    for found in relative_dates(text, timestamp):
        assert found.words in text
        assert str(found)


def test_an_event_counts_for_the_day_that_it_means() -> None:
    told = microseconds(date(2023, 5, 29))
    said = [Said("I painted a lake three weeks ago.", timestamp=told), Said("x", timestamp=told)]
    view = PlainView([*said, Said("x", timestamp=microseconds(date(2023, 5, 8)))])
    question = read_question("What was painted on 8 May 2023?", view)
    columns = date_signals(Neighbourhood(question, candidates(np.arange(3)), view))
    assert columns["date_near"][0] == pytest.approx(1.0)
    assert columns["date_near"][1] < 0.01
    # A day of midnight is half a day from noon.
    assert columns["date_near"][2] == pytest.approx(np.exp(-0.5 / 4))


@pytest.mark.parametrize(("clock", "shown"), [("microseconds", True), ("turn", False)])
def test_a_block_resolves_what_a_memory_means(clock: Clock, shown: bool) -> None:
    show = Renderer(clock=clock)
    text = "= today: never. We met last Friday, and Tuesday week."
    event = Event(text, timestamp=microseconds(date(2023, 5, 8)), metadata={"speaker": "Ann"})
    block = show.block([show.entry(event, text)])
    assert ("\n= last friday: 2023-05-05\n" in block) == shown
    # Today is the date that stands above; and the line is no part of what was said.
    assert "\n= today" not in block
    assert entries_of(block) == [(f"Ann: {text}", text)]


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("What did I do yesterday?", "Repaired the bike with Nils."),
        ("What did I do on 22 November 2026?", "Repaired the bike with Nils."),
        ("What happened three days ago?", "Bought a lamp at the flea market."),
        ("What did I do tomorrow?", None),
        ("What happened on 1 May?", None),
    ],
)
def test_a_question_for_nothing_but_a_day_finds_that_day(asked: str, first: str | None) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    now = datetime(2026, 11, 23, 7, tzinfo=UTC)
    for days, text in enumerate(
        ("Had soup with Vera.", "Repaired the bike with Nils.", "Went to the opera.",
         "Bought a lamp at the flea market.", "Called the tax office.", "Fed the cat.")
    ):  # fmt: skip
        memory.add(text, timestamp=now - timedelta(days=days))
    found = memory.recall(Cue(asked, timestamp=now), 2)
    assert [hit.text for hit in found][:1] == ([first] if first else [])


def moments(**settings: Any) -> Memory:
    memory = Memory(embedder=LexicalEmbedder(), **settings)
    told = (
        ("The cellar flooded yesterday.", 6),
        ("We hired a plumber for the cellar.", 9),
        ("The pump was repaired at last.", 17),
        ("Last month we sold the boat.", 19),
        ("The boat was bought in a hurry.", 20),
    )
    for text, day in told:
        utc = not settings
        memory.add(text, timestamp=datetime(2023, 5, day, 20, tzinfo=UTC) if utc else day)
    return memory


@pytest.mark.parametrize(
    ("cue", "texts", "span"),
    [
        (
            "How long was it between the flood in the cellar and the repair of the pump?",
            {"The cellar flooded yesterday.", "The pump was repaired at last."},
            "= from 2023-05-05 to 2023-05-17: 12 days",
        ),
        (
            "How many days after the cellar flooded was the plumber hired?",
            {"The cellar flooded yesterday.", "We hired a plumber for the cellar."},
            "= from 2023-05-05 to 2023-05-09: 4 days",
        ),
        # A month is no day: both come, and nobody reckons.
        (
            "How much time was there between buying the boat and selling the boat?",
            {"The boat was bought in a hurry.", "Last month we sold the boat."},
            None,
        ),
    ],
)
def test_the_time_between_two_memories_brings_both_and_is_told(
    cue: str, texts: set[str], span: str | None
) -> None:
    memory = moments()
    hits = memory.recall(cue)
    assert {hit.text for hit in hits[:2]} == texts
    assert all(sum(factor[3] for factor in hit.factors) == pytest.approx(hit.score) for hit in hits)
    assert all("between" in [factor.name for factor in hit.factors] for hit in hits[:2])
    block = memory.context(cue)
    assert [line for line in block.split("\n")[-2:-1] if line.startswith("= from")] == [
        span
    ] * bool(span)
    # The plain question ranks as before, and where one has no room nothing is reckoned.
    assert "= from" not in memory.context("Where was the flood in the cellar?")
    assert "= from" not in memory.context(cue, 45)
    assert memory.context(cue, 45).hits


def test_the_time_between_two_turns_is_told_in_turns() -> None:
    block = moments(clock="turns").context("How many turns between the flood and the plumber?")
    assert "= from turn 6 to turn 9: 3 turns" in block


@pytest.mark.parametrize(
    ("days", "span"), [((5, 17), "from 2023-05-05 to 2023-05-17: 12 days"),
                       ((5, 5), "from turn 3 to turn 4: 1 turn")]
)  # fmt: skip
def test_turns_of_two_days_are_not_counted_together(days: tuple[int, int], span: str) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for text, day, turn in zip(("The cellar flooded.", "The pump was repaired."), days, (3, 4),
                               strict=True):  # fmt: skip
        memory.add(text, timestamp=datetime(2023, 5, day, tzinfo=UTC), metadata={"turn": turn})
    block = memory.context("How many days between the flooded cellar and the repaired pump?")
    assert f"= {span}" in block.splitlines()


def test_a_way_between_two_places_is_no_time() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for text in ("Bonn is nice.", "Paris is a city on the Seine.", "The motorway is 500 km long."):
        memory.add(text)
    for cue in (
        "How long is the motorway between Bonn and Paris?",
        "How long did the meeting between Bonn and Paris last?",
    ):
        assert "= from" not in memory.context(cue), cue
    assert "= from" in memory.context("How long a time passed between Bonn and Paris?")


def test_no_time_is_told_where_one_side_is_not_known_or_one_memory_is_both() -> None:
    for cue in (
        "How long was it between the flood in the cellar and the eclipse?",
        "How long between the pump and the repair?",
        "How long does the repair of the pump take?",
    ):
        assert "= from" not in moments().context(cue), cue


def test_the_relevance_of_what_is_lifted_is_that_of_its_words() -> None:
    hits = moments().recall("How long was it between the flood in the cellar and the repair?")
    # By the score that puts them first each would be as good as certain.
    assert [hit.score > 1.0 for hit in hits[:2]] == [True, True]
    assert all(0.0 < (hit.relevance or 0.0) < 0.95 for hit in hits)


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("How long after lunch was the call?", ("lunch", "the call")),
        ("How long did we wait after the flood until the repair?", ("the flood", "the repair")),
        ("How many days passed between Easter and June?", ("Easter", "June")),
        ("How long did we wait before the doctor was ready?", ()),
        ("How many months did he stay with us after the divorce was final?", ()),
        ("How many years did they date before they were married?", ()),
        ("How many hours did I sleep the night before the exam was due?", ()),
        ("How many days of leave did Bob take after the merger was announced?", ()),
        ("How long does milk keep after it was opened?", ()),
        ("How many days between the flood and the repair were dry?", ()),
        ("How many days between Easter and June did it rain?", ()),
    ],
)
def test_how_long_something_took_is_no_time_between_two_things(
    question: str, sides: tuple[str, ...]
) -> None:
    assert two_sides(question) == sides
