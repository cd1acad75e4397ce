"""A judge that goes by what is written: shared words, words of cause, likeness, order in time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cvx.arguments import a_share
from cvx.causal.judges.protocol import Judgement, Pair
from cvx.causal.vectors import cosine

_ENGLISH = re.compile(r"[a-z]+")
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
    words = _ENGLISH.findall(text.lower())
    return [stem(word) for word in words if word not in _FUNCTION]


_WORD = re.compile(r"[^\W_]+")
_OF_CAUSE = re.compile(
    r"\b(?:because|due to|owing to|thanks to|caused by|as a result|result(?:ed|s|ing)? (?:of|from)"
    r"|led to|leads to|therefore|hence|consequently|after|following|since|so that"
    r"|in response to)\b",
    re.IGNORECASE,
)


class RuleJudge:
    """Says yes where an effect names its cause; needs no model and no vectors.

    The probability is ``0.55 * shared + 0.25 * likeness + 0.2 * word of cause``: the share of the
    rarer text's content words that both have, the cosine where both have vectors (without, its
    part goes to the words), and whether the effect says "because", "after", "due to" and such
    while it shares a word. What came first cannot follow from what came later.

    Parameters
    ----------
    bound : float, default 0.4
        From here up it is a yes; in [0, 1].

    Examples
    --------
    >>> judge = RuleJudge()
    >>> yes, no = judge.judge([Pair("the dam broke", "the village was flooded after the dam broke"),
    ...                        Pair("the dam broke", "a new mayor was elected")])
    >>> yes.verdict, no.verdict
    ('yes', 'no')
    """

    name = "rules"

    def __init__(self, bound: float = 0.4) -> None:
        self.bound = a_share("bound", bound)

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair by itself."""
        return [self._judged(pair) for pair in pairs]

    def _judged(self, pair: Pair) -> Judgement:
        if pair.lag is not None and pair.lag < 0:
            return Judgement("no", 0.0, "the effect came first")
        cause, effect = content_words(pair.cause), content_words(pair.effect)
        if not cause or not effect:
            return Judgement("unjudged", why="one of the two has no words")
        common = cause & effect
        shared = len(common) / min(len(cause), len(effect))
        said = _OF_CAUSE.search(pair.effect) if common else None
        words, likeness = 0.55, 0.0
        if pair.cause_vector is None or pair.effect_vector is None:
            words += 0.25
        else:
            likeness = max(0.0, cosine(pair.cause_vector, pair.effect_vector))
        factors = (
            ("shared words", words * shared),
            ("likeness", (0.8 - words) * likeness),
            ("word of cause", 0.2 if said else 0.0),
        )
        probability = min(1.0, sum(value for _, value in factors))
        reasons = [f"both speak of {', '.join(sorted(common))}"] if common else []
        reasons += [f'it says "{said.group().lower()}"'] if said else []
        why = " and ".join(reasons) or "nothing that is written connects them"
        return Judgement("yes" if probability >= self.bound else "no", probability, why, factors)


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that say something, cut to their stems."""
    # The stems are English; words of other scripts are compared as they are.
    return frozenset(stems(text)) or frozenset(_WORD.findall(text.casefold()))
