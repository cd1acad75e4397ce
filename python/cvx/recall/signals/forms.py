"""What kind of answer a question wants, and what kinds of answer a text could hold.

Both are read from the surface, in English, and are bits of one mask, so that a whole pool of
candidates is compared with a question by one ``&``.
"""

from __future__ import annotations

import re
from typing import Final

ASKS: Final = 1
"""The text asks something."""
TIME: Final = 2
"""It says when: a day, a month, a year, "yesterday", "last week"."""
SPAN: Final = 4
"""It says how long: a number of minutes to years, "since", "for ages"."""
NUMBER: Final = 8
"""It counts: digits or number words."""
REASON: Final = 16
"""It gives a reason: "because", "so that", "to help", "thanks to"."""
PERSON: Final = 32
"""It speaks of people: relations, or names within a sentence."""
PLACE: Final = 64
"""It says where: "in", "at", "near" before a name, or words for places."""

_UNIT = r"(?:second|minute|hour|day|night|week|weekend|month|year|decade)s?"
_COUNT = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?"
    r"|thousands?|twice|thrice|once|couple|several|few)"
)
_MONTHS = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|(?<!\w)in may|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
_PATTERNS: Final = {
    ASKS: re.compile(r"\?"),
    TIME: re.compile(
        rf"\b(?:yesterday|today|tonight|tomorrow|ago|{_MONTHS}|(?:19|20)\d\d"
        rf"|(?:last|next|this|past|coming|earlier|other)\s+(?:\w+\s+)?"
        rf"(?:{_UNIT}|morning|evening|afternoon|summer|winter|spring|fall|autumn)"
        r"|recently|soon)\b",
        re.IGNORECASE,
    ),
    SPAN: re.compile(rf"\b(?:{_COUNT}\s+(?:\w+\s+)?{_UNIT}|since|for\s+(?:ages|years))\b", re.I),
    NUMBER: re.compile(rf"\b{_COUNT}\b", re.IGNORECASE),
    REASON: re.compile(
        r"\b(?:because|since|reason|so\s+that|in\s+order|thanks\s+to|due\s+to|inspired|motivat\w*"
        r"|wanted\s+to|to\s+(?:help|make|get|show|see|learn|improve|find|keep))\b",
        re.IGNORECASE,
    ),
    PERSON: re.compile(
        r"\b(?:mother|mom|mum|father|dad|parents?|sisters?|brothers?|wife|husband|sons?|daughters?"
        r"|kids?|friends?|family|aunts?|uncles?|cousins?|grand\w+|colleagues?|neighbou?rs?|boss"
        r"|teachers?|girlfriend|boyfriend|partner|(?i:by))\b|(?<=[a-z,] )[A-Z][a-z]+"
    ),
    PLACE: re.compile(
        r"\b(?:in|at|near|from|to|around)\s+(?:the\s+)?[A-Z][a-z]+"
        r"|\b(?:city|town|country|park|beach|mountains?|museum|school|restaurant|caf[eé]|store|shop"
        r"|lake|forest|home|house|street|abroad|downtown)\b"
    ),
}
_WANTED: Final = (
    (re.compile(r"\bhow\s+(?:long|old|often)\b", re.IGNORECASE), SPAN),
    (re.compile(r"\bhow\s+(?:many|much)\b", re.IGNORECASE), NUMBER),
    (
        re.compile(
            r"\b(?:when|(?:what|which|whose)\s+(?:day|date|month|year|time)|since\s+when)\b", re.I
        ),
        TIME,
    ),
    (re.compile(r"\b(?:why|what\s+(?:made|motivated|inspired|caused)|reason)\b", re.I), REASON),
    (re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE), PERSON),
    (re.compile(r"\b(?:where|(?:what|which)\s+(?:city|country|place|state|town))\b", re.I), PLACE),
)


def forms_of(text: str) -> int:
    """Return the mask of what a text could answer, and whether it asks itself.

    Examples
    --------
    >>> forms_of("Who came?") & ASKS == ASKS
    True
    >>> forms_of("We moved two years ago.") == TIME | SPAN | NUMBER
    True
    """
    return sum(bit for bit, pattern in _PATTERNS.items() if pattern.search(text))


def answer_wanted(question: str) -> int:
    """Return the mask of what would answer a question; 0 where its form does not tell.

    Examples
    --------
    >>> answer_wanted("How long did it take?") == SPAN
    True
    >>> answer_wanted("What did she paint?")
    0
    """
    for pattern, bit in _WANTED:
        if pattern.search(question):
            return bit
    return 0
