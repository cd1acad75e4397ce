"""Reads dates in questions, and resolves "last Friday" and the like in stored text.

The grammar is small on purpose, and English: a day with month and year in either order ("7 May
2023", "May 7th, 2023"), an ISO date ("2023-05-07"), a day and month without a year, a month with or
without a year, a year alone (1900 to 2099), and, where the asker's time is known, "yesterday",
"today", "last Friday", "N days/weeks/months/years ago", "next month"; of a question, "in the last
week", "the past 3 days" too. A week is Monday to Sunday. A word that may be a month or
something else ("may", "march") counts only with a capital and beside a number, or after a
preposition ("in May"). What may be meant otherwise says nothing: "two or three years ago", "half a
year ago", "the last week of May", "this Monday", "last weekend".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

MICROSECONDS_A_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR = (-62_135_596_800_000_000, 253_402_300_800_000_000)
"""Years 1 to 9999: a clock that counts something else than microseconds may lie beyond."""
_OLDEST = 10**14
"""Timestamps from here on (1973) are taken for microseconds since 1970."""
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NUMBER_OF = {
    **{name: at for at, name in enumerate(_MONTHS, start=1)},
    **{name[:3]: at for at, name in enumerate(_MONTHS, start=1)},
    "sept": 9,
}
_MONTH = r"(?P<month>" + "|".join(sorted(_NUMBER_OF, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_GAP = r"(?:\s*,\s*|\s+)"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FORMS = [
    re.compile(rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:{_GAP}{_YEAR})?\b", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?:{_GAP}{_YEAR}\b)?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b(?:in|during|since|until|by|of|last|early|late|mid)[\s-]+{_MONTH}(?!\w)", re.I),
    re.compile(r"\b(?P<month>" + "|".join(m.title() for m in _MONTHS if m not in ("march", "may"))
               + r")\b"),
    re.compile(rf"(?<![\w.,-]){_YEAR}(?![\d,-]|\.\d)"),
]  # fmt: skip
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NEAR_DAYS = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True)).replace(" ", r"\s+")


_RELATIVE = re.compile(
    rf"\b(?:(?P<near>{_any_of(_NEAR_DAYS)})"
    rf"|(?<![\w.,-])(?P<count>\d{{1,4}}|{_any_of(_COUNTS)})"
    r"\s+(?P<unit>day|week|month|year)s?\s+ago"
    r"|(?:(?P<which>last|next|this)\s+(?P<what>week|month|year)"
    rf"|(?P<side>last|next)\s+(?P<weekday>{_any_of(_WEEKDAYS)})))(?![\w-])",
    re.IGNORECASE,
)
_IN_RELATIVE = (
    *("day", "night", "morning", "afternoon", "evening", "tomorrow"),
    *("ago", "week", "month", "year"),
)
"""One of these is in all that ``_RELATIVE`` finds; looking for them takes far less time."""
_NUMBER = rf"""[\d¼½¾]|\b(?:{
    _any_of(
        (
            *_COUNTS.keys() - {"a", "an", "a couple of"},
            *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
            *("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),
            *("hundred", "thousand", "million", "dozen"),
        )
    )
})"""
_PART_OF_MORE = re.compile(
    rf"(?:(?:{_NUMBER})(?:\s*[-–—−/]\s*|[.,'’]|\s+(?:(?:and|or|to)\s+)?)"  # noqa: RUF001
    r"|\b(?:half|quarters?|thirds?|part|most)\s+(?:of\s+)?"
    r"|\b(?:day|week|month|year)s?,?\s+(?:(?:and|or)\s+)?)$",
    re.IGNORECASE,
)
"""Before a count: "thirty two", "two or three", "half a", "a year and two"."""
_NOT_THE_CALENDARS = re.compile(
    r"\b(?:the|this|these|that|every|each|my|your|his|her|its|our|their)\s+(?:very\s+)?$",
    re.IGNORECASE,
)
"""Before "last" and "next": "the last year" is a span, or the last of something."""
_OF_SOMETHING = re.compile(r"\s{1,9}(?:of|at|in)\b", re.IGNORECASE)
_OF_A_MONTH = re.compile(r"\s{1,9}of\b", re.IGNORECASE)
_PAST = re.compile(
    rf"\b(?:(?:the|these|this)\s+(?:last|past)|past|last(?=\s+(?:\d|{_any_of(_COUNTS)})))\s+"
    rf"(?:(?P<count>\d{{1,4}}|{_any_of(_COUNTS)})\s+)?"
    r"(?P<unit>day|week|month|year)s?(?!\w|\s{1,9}(?:of|at|in)\b)",
    re.IGNORECASE,
)
"""A time up to now: "in the last week", "over the past three days"."""
_BEFORE = 40
_STEP = {"last": -1, "this": 0, "next": 1}


class DateNamed(NamedTuple):
    """A date in a question: a day, week, month or year.

    Attributes
    ----------
    year, month, day : int or None
        None where the question leaves it open.
    days : int
        How many are meant, from the day on.
    """

    year: int | None
    month: int | None
    day: int | None
    days: int = 1

    def span(self, year: int) -> tuple[date, int]:
        """Return the first day that is meant, in a year, and how many are.

        Raises
        ------
        OverflowError, ValueError
            The calendar has no such time.
        """
        if self.day is not None:
            return date(year, self.month or 1, self.day), self.days
        first = date(year, self.month or 1, 1)
        return first, (_shifted(first, 1, "month" if self.month else "year") - first).days


def read_dates(text: str, now: int | None = None) -> tuple[list[DateNamed], str]:
    """Find the dates in a question.

    Parameters
    ----------
    text : str
        The question.
    now : int, optional
        When it is asked, in microseconds since 1970-01-01 UTC; without it, or where the calendar
        has no such time, "yesterday" and the like say nothing.

    Returns
    -------
    list of DateNamed
        In the order of the grammar's forms. Dates that do not exist are left out.
    str
        The question without them.

    Examples
    --------
    >>> read_dates("What did Ann paint on 7 May, 2023?")
    ([DateNamed(year=2023, month=5, day=7, days=1)], 'What did Ann paint on ?')
    >>> read_dates("May I come in March?")
    ([DateNamed(year=None, month=3, day=None, days=1)], 'May I come ?')
    >>> read_dates("What was there last week?", 1_683_504_000_000_000)    # Monday 2023-05-08
    ([DateNamed(year=2023, month=5, day=1, days=7)], 'What was there ?')
    """
    found: list[DateNamed] = []
    resolved = [] if now is None else _resolved(text, now)
    for match, _ in reversed(resolved):
        # A mark stays between what stood before and after: they make no date together.
        text = f"{text[: match.start()]}\0{text[match.end() :]}"
    text, past = (text, []) if now is None else _up_to(text, now)
    for form in _FORMS:
        matches = [*form.finditer(text)]
        if matches:
            found += [named for match in matches if (named := _named(match)) is not None]
            text = form.sub(" ", text)
    for _, (_, day, unit) in resolved:
        if unit == "week":
            day -= timedelta(days=min(day.weekday(), day.toordinal() - 1))
        month = None if unit == "year" else day.month
        first = day.day if unit in ("day", "week") else None
        found.append(DateNamed(day.year, month, first, 7 if unit == "week" else 1))
    found += past
    return found, " ".join(text.replace("\0", " ").split())


def _up_to(text: str, now: int) -> tuple[str, list[DateNamed]]:
    """Return a text without the times up to now that it names, and these."""
    out: list[DateNamed] = []
    if not _CALENDAR[0] <= now < _CALENDAR[1]:
        return text, out
    today = (_EPOCH + timedelta(microseconds=now)).date()

    def marked(match: re.Match[str]) -> str:
        count, unit = " ".join((match["count"] or "").casefold().split()), match["unit"].casefold()
        if not count and unit == "day":  # of something
            return match.group()
        with suppress(OverflowError, ValueError):
            first = _shifted(today, -(_COUNTS.get(count) or int(count or 1)), unit)
            out.append(DateNamed(first.year, first.month, first.day, (today - first).days + 1))
        return "\0"

    return _PAST.sub(marked, text), out


class RelativeDate(NamedTuple):
    """A relative date such as "last Friday", resolved from the day of the text.

    Attributes
    ----------
    words : str
        As it is named.
    day : date
        The day; of a longer time, one within it.
    unit : {"day", "week", "month", "year"}
        How long a time is meant.
    """

    words: str
    day: date
    unit: str

    def __str__(self) -> str:
        if self.unit == "week":
            monday = self.day - timedelta(days=self.day.weekday())
            return f"week of {monday:%Y-%m-%d}"
        return self.day.isoformat()[: {"day": 10, "month": 7, "year": 4}[self.unit]]


def relative_dates(text: str, timestamp: int) -> list[RelativeDate]:
    """Resolve "yesterday", "last Friday", "two weeks ago", "next month" in what was said.

    Parameters
    ----------
    text : str
        What was said.
    timestamp : int
        When, in microseconds since 1970-01-01 UTC; the day is the day in UTC.

    Returns
    -------
    list of RelativeDate
        In the order of the text, without what may be meant otherwise; none at a time that the
        calendar does not have.

    Examples
    --------
    >>> friday = 1_683_504_000_000_000    # Monday 2023-05-08
    >>> [(one.words, str(one)) for one in relative_dates("Last Friday, or 3 months ago?", friday)]
    [('Last Friday', '2023-05-05'), ('3 months ago', '2023-02')]
    """
    return [one for _, one in _resolved(text, timestamp)]


def day_told(text: str, timestamp: int) -> date | None:
    """Return the day on which what a text tells of was: the one it names, else its own.

    Parameters
    ----------
    text : str
        What was said.
    timestamp : int
        When, in microseconds since 1970-01-01 UTC.

    Returns
    -------
    date or None
        None where it names several days, or a time that is no day ("last month"), and where the
        calendar has no such time.

    Examples
    --------
    >>> monday = 1_683_504_000_000_000    # 2023-05-08
    >>> str(day_told("I moved yesterday.", monday)), day_told("I moved last month.", monday)
    ('2023-05-07', None)
    """
    own = relative_dates("today", timestamp)
    days: set[date | None] = {
        date(year, month, day) if year and month and day else None
        for year, month, day, _ in read_dates(text)[0]
    }
    days |= {one.day if one.unit == "day" else None for one in relative_dates(text, timestamp)}
    days = days or {one.day for one in own}
    return days.pop() if len(days) == 1 else None


def _resolved(text: str, timestamp: int) -> list[tuple[re.Match[str], RelativeDate]]:
    plain = text.casefold()
    if not any(word in plain for word in _IN_RELATIVE):
        return []
    if not _CALENDAR[0] <= timestamp < _CALENDAR[1]:
        return []
    out: list[tuple[re.Match[str], RelativeDate]] = []
    today = None
    for match in _RELATIVE.finditer(text):
        if _is_unsure(match):
            continue
        today = today or (_EPOCH + timedelta(microseconds=timestamp)).date()
        try:
            day, unit = _meant(match, today)
        except (OverflowError, ValueError):  # before the year 1, or after 9999
            continue
        out.append((match, RelativeDate(match.group(), day, unit)))
    return out


def _is_unsure(match: re.Match[str]) -> bool:
    """Tell whether the words around may make something else of it."""
    text, start, end = match.string, match.start(), match.end()
    before = text[max(0, start - _BEFORE) : start]
    if match["count"]:
        return _PART_OF_MORE.search(before) is not None
    if match["weekday"]:
        return bool(_NOT_THE_CALENDARS.search(before) or _OF_A_MONTH.match(text, end))
    if not match["which"] or match["which"].casefold() == "this":
        return False
    return bool(_NOT_THE_CALENDARS.search(before) or _OF_SOMETHING.match(text, end))


def _meant(match: re.Match[str], today: date) -> tuple[date, str]:
    near, count, unit, which, what, side, weekday = (
        part and " ".join(part.casefold().split()) for part in match.groups()
    )
    if near:
        return today + timedelta(days=_NEAR_DAYS[near]), "day"
    if which:
        return _shifted(today, _STEP[which], what or ""), what or ""
    if weekday:
        # The last one before today, or the first one after it.
        ahead = (_WEEKDAYS.index(weekday) - today.weekday() - 1) % 7 + 1
        if side == "last":
            ahead = ahead - 7 or -7
        return today + timedelta(days=ahead), "day"
    back = _COUNTS.get(count or "") or int(count or 0)
    return _shifted(today, -back, unit or ""), unit or ""


def _shifted(day: date, steps: int, unit: str) -> date:
    """Return a day so many days, weeks, months or years later, the last of a shorter month."""
    if unit in ("day", "week"):
        return day + timedelta(days=steps * (7 if unit == "week" else 1))
    months = 12 * day.year + day.month - 1 + steps * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


def _named(match: re.Match[str]) -> DateNamed | None:
    parts = match.groupdict()
    month = parts.get("number") or parts.get("month")
    number = (_NUMBER_OF.get(month.casefold()) or int(month)) if month else None
    year = int(parts["year"]) if parts.get("year") else None
    day = int(parts["day"]) if parts.get("day") else None
    if number is None or day is None:
        return DateNamed(year, number, day) if number is None or 1 <= number <= 12 else None
    try:
        # 2000 is a leap year: without a year, 29 February may exist.
        date(year or 2000, number, day)
    except ValueError:
        return None
    return DateNamed(year, number, day)


def calendar_time(timestamp: int, a_second: int = 1_000_000) -> datetime | None:
    """Return a moment since 1970-01-01 UTC, None where the calendar has none such.

    Parameters
    ----------
    timestamp : int
        Any.
    a_second : int, default 1,000,000
        Timestamps a second.
    """
    try:
        return datetime.fromtimestamp(timestamp / a_second, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def when(timestamp: int) -> str:
    """Return a time as a person reads it; numbers that are no microseconds since 1970 stay.

    Examples
    --------
    >>> when(1_700_000_000_000_000), when(42)
    ('2023-11-14 22:13:20', '42')
    """
    if timestamp < _OLDEST:
        return str(timestamp)
    then = calendar_time(timestamp)
    return str(timestamp) if then is None else then.strftime("%Y-%m-%d %H:%M:%S")
