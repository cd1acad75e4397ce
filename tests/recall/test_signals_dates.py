from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.recall.dates import DateNamed, read_dates
from cvx.recall.question import read_question
from cvx.recall.signals import Neighbourhood, date_signals
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
