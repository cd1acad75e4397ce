"""Dates that a question names.

The grammar is small on purpose, and English: a day with month and year in either order ("7 May
2023", "May 7th, 2023"), an ISO date ("2023-05-07"), a day and month without a year, a month with or
without a year, a year alone (1900 to 2099), and, where the asker's time is known, "yesterday",
"today", "N days/weeks/months/years ago" and "last week/month/year". A word that may be a month or
something else ("may", "march") counts only with a capital and beside a number, or after a
preposition ("in May").
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

MICROSECONDS_A_DAY = 86_400_000_000
_CALENDAR = (-62_135_596_800_000_000, 253_402_300_800_000_000)
"""Years 1 to 9999: a clock that counts something else than microseconds may lie beyond."""
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
_NUMBER_OF = {name: at for at, name in enumerate(_MONTHS, start=1)} | {
    name[:3]: at for at, name in enumerate(_MONTHS, start=1)
}
_NUMBER_OF["sept"] = 9
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
    re.compile(rf"(?<![\d.,-]){_YEAR}(?![\d,-]|\.\d)"),
]  # fmt: skip
_AGO = re.compile(
    r"\b(\d{1,9}|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.I
)
_LAST = re.compile(r"\blast\s+(week|month|year)\b", re.IGNORECASE)
_NEAR_DAY = re.compile(r"\b(yesterday|today|tonight)\b", re.IGNORECASE)
_FEW = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS_IN = {"day": 1, "week": 7, "month": 30, "year": 365}


class DateNamed(NamedTuple):
    """A date as far as it was named.

    Attributes
    ----------
    year, month, day : int or None
        None where the question leaves it open.
    """

    year: int | None
    month: int | None
    day: int | None


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
    ([DateNamed(year=2023, month=5, day=7)], 'What did Ann paint on ?')
    >>> read_dates("May I come in March?")
    ([DateNamed(year=None, month=3, day=None)], 'May I come ?')
    """
    found: list[DateNamed] = []
    for form in _FORMS:
        for match in form.finditer(text):
            named = _named(match)
            if named is not None:
                found.append(named)
        text = form.sub(" ", text)
    if now is not None and _CALENDAR[0] <= now < _CALENDAR[1]:
        found += _relative(text, now)
        for relative in (_AGO, _LAST, _NEAR_DAY):
            text = relative.sub(" ", text)
    return found, " ".join(text.split())


def _named(match: re.Match[str]) -> DateNamed | None:
    parts = match.groupdict()
    month = parts.get("number") or parts.get("month")
    number = None
    if month is not None:
        number = int(month) if month.isdigit() else _NUMBER_OF[month.casefold()]
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


def _relative(text: str, now: int) -> list[DateNamed]:
    today = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now)).date()
    days: list[int] = []
    for amount, unit in _AGO.findall(text):
        count = _FEW.get(amount.casefold()) or int(amount)
        days.append(count * _DAYS_IN[unit.casefold()])
    days += [_DAYS_IN[unit.casefold()] for unit in _LAST.findall(text)]
    days += [int(word.casefold() == "yesterday") for word in _NEAR_DAY.findall(text)]
    earliest = date.min.toordinal()
    then = [today.toordinal() - back for back in days]
    dates = [date.fromordinal(at) for at in then if at >= earliest]
    return [DateNamed(at.year, at.month, at.day) for at in dates]
