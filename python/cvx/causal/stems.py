"""Words without their endings, so that "flooded" and "floods" count as one: English, by rules."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[a-z]+")
_SHORTEST = 3
_ENDINGS = (
    *("ations", "ingly", "ation", "ments", "edly", "ment", "ings", "ions"),
    *("ing", "ied", "ies", "ers", "ion", "ed", "es", "er", "or", "ly", "s"),
)
# Words that say how a sentence is built, not what it is about.
_FUNCTION = frozenset(
    re.findall(
        r"\w+",
        "a an the this that these those it its he she they him her them his their i you we me us "
        "my your our is am are was were be been being have has had do does did will would can "
        "could may might must shall should not no nor and or but if so as at by for from in into "
        "of off on onto out over than then there to too up with who whom which what when where "
        "why how s t",
    )
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Cut the longest known ending that leaves at least three letters.

    Examples
    --------
    >>> [stem(word) for word in ("flooded", "floods", "Flooding", "sting")]
    ['flood', 'flood', 'flood', 'sting']
    """
    word = word.lower()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def stems(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in their order.

    Examples
    --------
    >>> stems("The dike was broken, so the town flooded.")
    ['dike', 'broken', 'town', 'flood']
    """
    words = _WORD.findall(text.lower())
    return [stem(word) for word in words if word not in _FUNCTION]
