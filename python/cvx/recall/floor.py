"""Relevance floors: drops weak hits, and decides whether a cue can be answered at all.

Similarities of nonsense are as spread out among themselves as those of sense, so a ranking always
has a first place. Four numbers tell the two apart: how near the nearest event is, and how much of
what the question speaks of occurs in the best event, in the memory at all, and in the best window.
Whether a name in the question is known is none of them: it would tell whose memory is
asked, not whether it knows.

That words are missing says much of long conversations, and little of a few events or of short
facts, each of which names its thing once and in one word: there, nearness counts almost alone. To
turn away what is known is worse than to return what is not wanted, with a low ``relevance``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from cvx.arguments import a_share
from cvx.cue import structured
from cvx.errors import InvalidInputError
from cvx.recall.fusion import Candidates, FloatArray
from cvx.recall.question import holders_of
from cvx.recall.ranking_signals import COLUMNS
from cvx.recall.visible_events import VisibleEvents
from cvx.types import Column, Cue, Mask

JudgeOfAnswers: TypeAlias = Callable[[VisibleEvents, Candidates], float | None]
"""From a recall to the probability that memory holds what the cue asks for; None: not known."""

_TENTH = 10
_WORDS = ("lexical.rank", "words.rank")
_RELEVANCE = {"answerable": 1 / 5, "score": 11.0, "lead": 15.0, "intercept": -6.7}
_OF_FEW = {"answerable": 3 / 10, "behind": 12.0}
"""Log-odds that a hit is wanted: rounded from a fit to three conversations; and, set by reasoning,
in a memory of few or short events, where scores do not stand out from others."""
_THE_SAME = 0.99
"""Cosine of two texts that the lexical embedder takes for one; a chance likeness is far below."""
_SURE = 5.0
_FULL = 300
_FACT, _TALK = 15.0, 130.0
"""Mean characters of events of which missing words say nothing, and all that they can."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Three floors, each of which a candidate must pass.

    Parameters
    ----------
    similarity : float or None, default 0.0
        A candidate no more similar to the cue than this is dropped, whatever else speaks for it.
        One without a vector, or a cue without one, passes. None switches it off.
    words_pass : bool, default True
        What holds words of the cue passes the similarity floor too.
    score : float, optional
        A candidate with a lower score is dropped.
    answerable : callable, optional
        The probability that there is an answer at all, calibrated for an embedder; below ``least``
        nothing is returned.
    least : float, default 0.5
        In [0, 1].
    relevance : float, optional
        In [0, 1]: a candidate that is less likely to be wanted is dropped.
    """

    similarity: float | None = 0.0
    words_pass: bool = True
    score: float | None = None
    answerable: JudgeOfAnswers | None = None
    least: float = 0.5
    relevance: float | None = None

    def __post_init__(self) -> None:
        a_share("least", self.least)
        for name in ("similarity", "score"):
            value = getattr(self, name)
            if value is not None and math.isnan(value):
                raise InvalidInputError(f"the floor of {name} is NaN: give a number or None")

    def of_cue(self, cue: Cue) -> Floor:
        """Return the floor of a cue: where spelling says nothing, only the same text passes.

        An embedder that knows spelling alone finds in "!!!" or an emoji no part to compare. What
        then looks a little alike does so by chance.
        """
        judge = self.answerable
        if isinstance(judge, Answerable) and "dense" not in judge.features and _wordless(cue):
            return replace(self, similarity=_THE_SAME)
        return self

    def probability(self, view: VisibleEvents, table: Candidates) -> float | None:
        """Return the probability that there is an answer, None where nobody knows.

        It is known of questions: neither of a cue that describes a state, nor of one without words,
        nor of one whose words are all held by too many events to be looked up. Of a question for
        nothing but what was on a day it is 1 or 0: whether there is any event of that day.
        """
        if self.answerable is None or not len(table) or structured(view.cue):
            return None
        if view.question.of_a_day and "date_near" in table:
            there = bool(table["date_near"].any())
            if there or any(date.day is not None for date in view.question.dates):
                return float(there)
        if all(holders_of(word, view) is None for word in view.question.words):
            return None
        return self.answerable(view, table)

    def kept(self, table: Candidates, scores: Column, relevance: Column | None) -> Mask:
        """Return which candidates pass the floors of each for itself, of shape (n,).

        Raises
        ------
        InvalidInputError
            There is a floor of relevance, and the pipeline does not know any.
        """
        kept = np.ones(len(table), dtype=bool)
        if self.similarity is not None:
            dense = table["dense"]
            kept = (dense > self.similarity) | np.isnan(dense)
            # A cause need not look like what it led to.
            for name in ("causes.rank", *(_WORDS if self.words_pass else ())):
                if name in table:
                    kept |= ~np.isnan(table[name])
        if self.score is not None:
            kept &= scores >= self.score
        if self.relevance is not None:
            if relevance is None:
                raise InvalidInputError(
                    f"min_relevance is {self.relevance}, but this pipeline knows no relevance: "
                    "give a floor of its score, or recall with the default"
                )
            kept &= relevance >= self.relevance
        return kept

    def __str__(self) -> str:
        told = {
            "similarity {:g}": self.similarity,
            "{:g}": self.score,
            "answerable {:.2g}": None if self.answerable is None else self.least,
            "relevance {:g}": self.relevance,
        }
        return ", ".join(how.format(one) for how, one in told.items() if one is not None) or "none"


def _wordless(cue: Cue) -> bool:
    """Return whether a cue has a text, in which nothing is a letter or a digit, and no vector."""
    text = cue.text.strip()
    return cue.vector is None and bool(text) and not any(map(str.isalnum, text))


def fullness(size: int, length: float = _TALK) -> float:
    """Return how far words that matter occur in a memory, to 1.

    Parameters
    ----------
    size : int
        Events of it.
    length : float
        Their characters on average; by default those of a conversation.
    """
    told = math.log(max(length, _FACT) / _FACT) / math.log(_TALK / _FACT)
    return min(math.log1p(size) / math.log1p(_FULL), 1.0) * min(told, 1.0)


def length_of(view: VisibleEvents, table: Candidates) -> float:
    """Return the characters of the candidates on average."""
    return float(view.corpus.lengths[table.rows].mean()) if len(table) else _TALK


def relevance_of(
    table: Candidates, scores: Column, answerable: float | None, size: int, length: float
) -> Column | None:
    """Return the chance of each candidate that whoever asked wants it, None where none is known.

    It rises with the chance that there is an answer, with the score, and with the lead over the
    candidate at the eleventh place; in a memory of few or short events (``size``, and characters
    on average) with the former, and with the nearness to the best score.
    """
    if "coverage_store" not in table or not len(table):
        return None
    chance = 0.5 if answerable is None else min(max(answerable, 1e-9), 1.0 - 1e-9)
    known = min(max(math.log(chance / (1.0 - chance)), -_SURE), _SURE)
    behind = max(len(scores) - 1 - _TENTH, 0)
    of_many = (
        _RELEVANCE["answerable"] * known
        + _RELEVANCE["score"] * scores
        + _RELEVANCE["lead"] * (scores - np.partition(scores, behind)[behind])
        + _RELEVANCE["intercept"]
    )
    of_few = _OF_FEW["answerable"] * known + _OF_FEW["behind"] * (scores - scores.max())
    part = fullness(size, length)
    return np.asarray(0.5 * (1.0 + np.tanh((part * of_many + (1.0 - part) * of_few) / 2.0)))


FLOOR_FEATURES = ("dense", "coverage", "coverage_store", "coverage_window")
"""Columns of which the highest value among the candidates counts."""
_KNOWN = frozenset((*COLUMNS, "coverage_store"))


def floor_features(
    columns: Mapping[str, FloatArray], names: Sequence[str] = FLOOR_FEATURES
) -> Column:
    """Return the highest values of some columns, unscaled; zeros for an empty table.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        What the signals made, before any scaling.
    names : sequence of str, default ``FLOOR_FEATURES``
        Which ones.

    Returns
    -------
    ndarray of shape (m,), float64
        In their order.

    Raises
    ------
    InvalidInputError
        There are candidates, and a column is missing, as with the formulas of the presets.
    """
    missing = [name for name in names if name not in columns]
    if missing and any(map(len, columns.values())):
        raise InvalidInputError(
            f"a floor goes by {', '.join(missing)}, which this way to recall does not measure: "
            "recall by the signals of default_pipeline(); a preset has its floor of scores"
        )
    return np.array([columns[name].max(initial=0.0) if name in columns else 0.0 for name in names])


@dataclass(frozen=True)
class Answerable:
    """Probability that a memory answers, by logistic regression, and the least that is enough.

    Parameters
    ----------
    coefficients : tuple of floats
        In the order of ``features``.
    intercept : float
        As the regression found it.
    threshold : float
        Probability below which nothing is returned, in [0, 1].
    leniency : float, default 0.0
        Added to the log-odds in an empty memory, and ever less of it up to 300 events: in a small
        one most words of a question are new, whether it knows the answer or not. Where ``dense``
        is a feature, much of it stays if the events are short; see `fullness`.
    features : tuple of str, default ``FLOOR_FEATURES``
        Columns of which the highest value counts.

    Raises
    ------
    InvalidInputError
        A feature that is no column, not a coefficient for each, a number that is not finite, a
        threshold outside [0, 1].

    Examples
    --------
    >>> floor = Answerable((4.0, 2.0, 3.0, 2.0), intercept=-5.0, threshold=0.5)
    >>> floor.probability({name: np.array([0.9, 0.1]) for name in FLOOR_FEATURES}) > 0.9
    True
    """

    coefficients: tuple[float, ...]
    intercept: float
    threshold: float
    leniency: float = 0.0
    features: tuple[str, ...] = FLOOR_FEATURES

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.features) - _KNOWN):
            raise InvalidInputError(
                f"the floor was calibrated on {', '.join(unknown)}, which this version does not "
                "measure: calibrate it again"
            )
        if len(self.coefficients) != len(self.features):
            raise InvalidInputError(
                f"{len(self.coefficients)} coefficients: give {len(self.features)}, "
                f"for {', '.join(self.features)}"
            )
        if not all(math.isfinite(x) for x in (*self.coefficients, self.intercept, self.leniency)):
            raise InvalidInputError("a coefficient is not finite: calibrate the floor again")
        a_share("threshold", self.threshold)

    def probability(
        self, columns: Mapping[str, FloatArray], size: int | None = None, length: float = _TALK
    ) -> float:
        """Return the probability, in [0, 1], that one of the candidates answers.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n,)
            Of the candidates.
        size : int, optional
            Events of the memory; by default enough.
        length : float, optional
            Their characters on average; by default those of a conversation.
        """
        z = float(np.dot(self.coefficients, floor_features(columns, self.features)))
        z += self.intercept
        # Words alone tell as little of short texts, but there is nothing else to go by.
        length = length if "dense" in self.features else _TALK
        z += self.leniency * (0.0 if size is None else 1.0 - fullness(size, length))
        return 0.5 * (1.0 + math.tanh(z / 2.0))

    def __call__(self, view: VisibleEvents, candidates: Candidates) -> float | None:
        """Return the probability for a table that holds the signals' columns.

        None where the cue brings a vector, and this looks at words alone.
        """
        if view.cue.vector is not None and "dense" not in self.features:
            return None
        return self.probability(candidates.columns, view.size, length_of(view, candidates))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return a floor as older stores kept it, by the names of its parts.

        Raises
        ------
        InvalidInputError
            It was calibrated on other features.
        """
        return cls(
            tuple(float(x) for x in stored["coefficients"]),
            float(stored["intercept"]),
            float(stored["threshold"]),
            float(stored.get("leniency", 0.0)),
            tuple(stored["features"]),
        )


# The likeness of words that the lexical embedder measures says nothing beside which words are held:
# questions of one form are alike, whatever they are about.
LEXICAL_FLOOR = Answerable(
    (4.6, 1.6, 3.2, 7.2),
    -4.7,
    threshold=0.42,
    leniency=4.3,
    features=("coverage", "coverage_store", "coverage_window", "bm25"),
)
SEMANTIC_FLOOR = Answerable((14.4, 2.4, 0.7, 2.2), -9.0, threshold=0.15, leniency=5.7)
"""Of the lexical embedder and of MiniLM: rounded from fits to questions of three conversations; how
lenient the latter is, to two stores of facts (`benches/recalling/facts.py`)."""
_ON_ANOTHER_SCALE = replace(SEMANTIC_FLOOR, leniency=4.7)
"""Facts are less alike at random than turns, so that on this scale cosines come out higher."""

_LIKE_MINILM = re.compile(r"minilm|^local/384/mean/9977d53604db81fa", re.IGNORECASE)
_USUAL = 0.24, 0.135
"""Mean and standard deviation of MiniLM's cosines of two events of one memory, at random."""


def shipped_floor(embedder: str | None) -> Answerable | RescaledFloor | None:
    """Return the floor that a memory of this embedder has, None where nothing is embedded.

    Parameters
    ----------
    embedder : str or None
        The ``id`` that it says.
    """
    if embedder is None:
        return None
    if embedder.startswith("cvx-lexical-1/"):
        return LEXICAL_FLOOR
    return SEMANTIC_FLOOR if _LIKE_MINILM.search(embedder) else RescaledFloor()


@dataclass(frozen=True)
class RescaledFloor:
    """The floor of MiniLM, on the scale of another embedder.

    How like two events of the memory are that have nothing to do with each other, as most of its
    pairs have not, says where the scale begins and how wide it is. No question is asked for that,
    and nothing embedded.

    Parameters
    ----------
    fewest : int, default 50
        Events with a vector that it takes; with fewer, nothing is known.
    """

    fewest: int = 50
    threshold: float = SEMANTIC_FLOOR.threshold

    def __call__(self, view: VisibleEvents, candidates: Candidates) -> float | None:
        """Return the probability for a table that holds the signals' columns, if it is known."""
        usual = view.background(self.fewest)
        if usual is None or usual[1] <= 0.0:
            return None
        columns = dict(candidates.columns)
        columns["dense"] = _USUAL[0] + (columns["dense"] - usual[0]) * _USUAL[1] / usual[1]
        return _ON_ANOTHER_SCALE.probability(columns, view.size, length_of(view, candidates))
