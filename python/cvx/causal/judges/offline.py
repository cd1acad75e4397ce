"""Judges of causes without a language model: word rules, and statistics of known pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import a_share
from cvx.causal.cosine import cosine
from cvx.causal.hedging import LEFT_OPEN, least_repeated, reverses, stated
from cvx.causal.judges.protocol import Judgement, Pair
from cvx.errors import InvalidVectorError

_ENGLISH = re.compile(r"[a-z]+")
_SHORTEST = 3
_ENDINGS = (
    *("ations", "ingly", "ation", "ments", "edly", "ment", "ings", "ions"),
    *("ing", "ied", "ies", "ers", "ion", "ed", "es", "er", "or", "ly", "s"),
)
# Words that say how a sentence is built, not what it is about.
function_words = frozenset(
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
    return [stem(word) for word in words if word not in function_words]


_WORD = re.compile(r"\w+")
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
        if leaves_open(pair.cause, pair.effect):
            return Judgement("no", 0.0, LEFT_OPEN)
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
    """Return the stemmed content words of a text."""
    # The stems are English; words of other scripts are compared as they are.
    return frozenset(stems(text)) or frozenset(_WORD.findall(text.casefold()))


def leaves_open(cause: str, effect: str) -> bool:
    """Return whether an effect's words only ask, deny, doubt, concede, correct or undo the cause.

    Examples
    --------
    >>> leaves_open("Ann called", "Did the meeting fail because Ann called?")
    True
    >>> leaves_open("The strike ended", "Flights resumed despite the strike")
    True
    >>> leaves_open("The crew came", "Flights resumed despite the strike")
    False
    >>> leaves_open("The dentist comes on Monday", "No, the dentist comes on Tuesday")
    True
    >>> leaves_open("Switch b-14 unreachable", "Switch b-14 reachable")
    True
    """
    if reverses(cause, effect):
        return True
    least = least_repeated(effect)
    if least <= 1.0:
        earlier = content_words(cause)
        if earlier and len(earlier & content_words(effect)) >= least * len(earlier):
            return True
    rest, opened = stated(effect)
    if not opened:
        return False
    # "Threats" and "threatened" have no stem in common.
    theirs, left, kept = (
        {word[:_LETTERS] for word in content_words(text)} for text in (cause, opened, rest)
    )
    return not kept or not (theirs & left) <= kept


Matrix: TypeAlias = npt.NDArray[np.float32]

TEMPERATURE = 0.1
_SMALL = 1e-8


class Heads:
    """Two trained projections of cause and effect vectors.

    Parameters
    ----------
    weights : mapping of str to ndarray
        ``in_cause`` (dim, hidden), ``bias_cause`` (hidden,), ``out_cause`` (hidden, dim), and the
        same for ``effect``; float32.
    """

    def __init__(self, weights: Mapping[str, Matrix]) -> None:
        self.weights = {
            name: np.asarray(weights[name], np.float32)
            for side in ("cause", "effect")
            for name in (f"in_{side}", f"bias_{side}", f"out_{side}")
        }
        self.dim = self.weights["in_cause"].shape[0]

    def fits(self, vector: Matrix | None) -> bool:
        """Whether a vector has the dimension that the projections expect."""
        return vector is not None and len(vector) == self.dim

    def score(self, causes: Matrix, effects: Matrix) -> npt.NDArray[np.float64]:
        """Return the scaled cosine of each projected cause with its projected effect, (n,).

        Raises
        ------
        InvalidVectorError
            Vectors of another space than the heads were trained in.
        """
        for rows in (causes, effects):
            if rows.ndim != 2 or rows.shape[1] != self.dim:
                raise InvalidVectorError(
                    f"vectors have shape {rows.shape}, the heads {self.dim} dimensions: refit "
                    "the judge on the vectors of this embedder"
                )
        left, right = self._placed("cause", causes), self._placed("effect", effects)
        return np.asarray((left * right).sum(axis=1) / TEMPERATURE, np.float64)

    def _placed(self, side: str, rows: Matrix) -> Matrix:
        """Rows as one head places them, of norm 1."""
        weights = self.weights
        hidden = np.maximum(rows @ weights[f"in_{side}"] + weights[f"bias_{side}"], 0)
        moved = rows + hidden @ weights[f"out_{side}"]
        return np.asarray(moved / (np.linalg.norm(moved, axis=1, keepdims=True) + _SMALL))


_LETTERS = 5


@lru_cache(maxsize=4_096)
def beginnings(text: str) -> tuple[str, ...]:
    """Return the five-letter prefix of every word, each once, in order.

    Cruder than a stemmer, but in every language that inflects at the end; and on e-CARE it told
    causes from distractors a little better than cutting known endings.

    Examples
    --------
    >>> beginnings("The flooded town; the floods of towns")
    ('the', 'flood', 'town', 'of', 'towns')
    """
    return tuple(dict.fromkeys(word[:_LETTERS] for word in _WORD.findall(text.lower())))


class WordPairs:
    """Pointwise mutual information of (word of the cause, word of the effect).

    Parameters
    ----------
    weights : mapping of (str, str) to float
        log((n + s) / (m + s)) for every pair of beginnings that was seen n times in true pairs of
        texts, where m times would be chance, and s = 0.01.

    Attributes
    ----------
    weights : dict of str to dict of str to float
        The same, by cause and then by effect.

    References
    ----------
    Church & Hanks 1990, Word association norms, mutual information, and lexicography.
    Luo et al. 2016, Commonsense causal reasoning between short texts: the same between cause and
    effect.

    Examples
    --------
    >>> pairs = WordPairs({("rain", "flood"): 2.0, ("spark", "fire"): 1.5})
    >>> pairs.score("heavy rain", "flooding"), pairs.score("rain", "fire")
    (2.0, 0.0)
    """

    def __init__(self, weights: Mapping[tuple[str, str], float]) -> None:
        self.weights: dict[str, dict[str, float]] = {}
        for (cause, effect), weight in weights.items():
            self.weights.setdefault(cause, {})[effect] = weight

    def __len__(self) -> int:
        return sum(len(row) for row in self.weights.values())

    def score(self, cause: str, effect: str) -> float:
        """Add up the weights of all pairs of words; pairs never seen weigh nothing."""
        theirs, total = beginnings(effect), 0.0
        for word in beginnings(cause):
            row = self.weights.get(word)
            if row is not None:
                for other in theirs:
                    total += row.get(other, 0.0)
        return total

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> WordPairs:
        """Return the table that a file of a pair model holds: weights in 1/16, within 8."""
        words = arrays["words"].tobytes().decode().split("\n")
        columns = (arrays[name].tolist() for name in ("causes", "effects", "weights"))
        return cls({(words[a], words[b]): w / 16 for a, b, w in zip(*columns, strict=True)})
