"""Ranking signals: similarity, word, name, date, session and link features of each candidate.

`signals_of` computes every column in one pass over the candidates and their neighbours;
`DEFAULT_WEIGHTS` says what each counts, `SCALES` how it is scaled first. Every signal is a function
of the candidates with their `Neighbourhood`, knows nothing of any data set, and costs as much as
there are candidates, never as much as there are events.

| family | columns |
|---|---|
| `content_signals` | dense, dense_window, dense_wide, dense_pair, dense_neighbour; bm25, \
bm25_window, bm25_wide, coverage, coverage_window, coverage_pair, asked_before, coverage_store; \
session_best, session_mean, session_coverage |
| `speaker_signals`, `date_signals` | speaker; date_near, date_month, date_year |
| `form_signals`, `length_signals` | answers, asks; length |
| `title_signals`, `link_signals` | title; linked, residual |

The neighbours of all candidates are joined into one list of rows, each once, so that their
similarities and words are looked up once for all signals. A window of turns is then a sum over
places in that list; the place behind its end stands for "no neighbour". A window's
vector is the mean of its members', and its similarity to the question the mean of theirs: one
stored vector an event serves every window, and no vector leaves the index.

A title, or a name, stands for the text that is about it. Every text in which a title occurs, word
for word, mentions it; the link leads from the text that mentions to the text that is about, and
never back: what speaks of Paris does not answer what Paris is, but what Paris is may complete it.

The weights are single digits: of a listwise logistic regression on three conversations of LoCoMo,
with vectors of MiniLM and of the lexical embedder together, doubled and rounded; what came out near
zero was left out. A column of 1 adds half of its weight to the log-odds that a text is wanted.
The weights of titles and links are set by reasoning: a link makes a text a candidate for what its
neighbour lacks, so it has to outweigh a text that merely repeats the neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from cvx.dates import relative_dates
from cvx.errors import InvalidInputError
from cvx.index import recall_columns
from cvx.recall.corpus_indexes import title_key
from cvx.recall.fusion import Candidates, FloatArray
from cvx.recall.question import (
    HALF_A_DAY,
    AnyQuestion,
    Question,
    content_words,
    days_from,
    forms_of,
    holders_of,
    noon_of,
    plain_words,
    spelt_alike,
)
from cvx.recall.visible_events import VisibleEvents
from cvx.types import Column, IntArray, Mask

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 2.0,
        "dense_wide": 2.0,
        "dense_pair": 2.0,
        "bm25_wide": 5.0,
        "coverage_pair": 5.0,
        "speaker": 2.0,
        "date_near": 8.0,
        "date_month": 5.0,
        "session_best": 3.0,
        "session_coverage": 2.0,
        "answers": 2.0,
        "asks": -1.0,
        "length": 2.0,
        "title": 5.0,
        "linked": 8.0,
        "residual": 8.0,
    }
)
"""Weight of each column; columns that are not named count nothing until they are tuned."""

PASSAGE_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 5.0,
        "bm25": 5.0,
        "coverage": 2.0,
        "length": 1.0,
        "answers": 1.0,
        "title": 3.0,
        "linked": 6.0,
        "residual": 6.0,
    }
)
"""The same in a memory of passages, which have no neighbours that speak of the same; chosen on cut
transcripts of three conversations, titles and links in their former measure of the others."""

STATEMENT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 10.0,
        "bm25": 1.0,
        "coverage": 1.0,
        "date_near": 8.0,
        "date_month": 5.0,
        "title": 3.0,
        "linked": 6.0,
        "residual": 6.0,
    }
)
"""The same in a memory of statements, each of which stands alone: what it means decides, and words
where that is alike; chosen on two stores of facts, those of dates and links as above."""

COLUMNS = (
    *DEFAULT_WEIGHTS,
    "dense_window",
    "dense_neighbour",
    "bm25",
    "bm25_window",
    "coverage",
    "coverage_window",
    "asked_before",
    "date_year",
    "session_mean",
)
"""Every column that can tell candidates apart: what is tuned."""

SCALES: Mapping[str, Literal["min-max", "none"]] = MappingProxyType(
    dict.fromkeys(
        (
            "dense",
            "dense_window",
            "dense_wide",
            "dense_pair",
            "dense_neighbour",
            "bm25",
            "bm25_window",
            "bm25_wide",
        ),
        "min-max",
    )
)
"""Columns whose level depends on the encoder or on the lengths of texts, and which are therefore
stretched to [0, 1] among the candidates; the others are what they say, in [-1, 1]."""


_NEARBY = 100
"""Nearest candidates of which the words are compared with one that nobody holds."""

REACH = 2
"""Neighbours on either side that windows may take in."""


@lru_cache(maxsize=1 << 14)
def _longer_words(text: str) -> frozenset[str]:
    return frozenset(word for word in plain_words(text) if len(word) > 4)


class Neighbourhood:
    """Arrays that the signals share during one recall.

    Parameters
    ----------
    question : Question
        What is asked.
    candidates : Candidates
        Rows that may answer.
    view : VisibleEvents
        What is visible.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        The candidates.
    near : ndarray of shape (e,), int64
        The candidates and their neighbours, ascending.
    places : ndarray of shape (n, 5), int64
        Where in ``near`` a candidate (in the middle) and its neighbours stand; ``e`` for none.
    """

    def __init__(self, question: Question, candidates: Candidates, view: VisibleEvents) -> None:
        self.question, self.rows = question, candidates.rows
        self.view, self.corpus = view, view.corpus
        self.near, self.places = view.neighbourhood(self.rows, REACH)
        # Places of the candidates themselves.
        self.own: IntArray = self.places[:, REACH]

    @cached_property
    def holders(self) -> list[IntArray]:
        """Rows that hold each word of the question, ascending.

        Words that too many events hold to be looked up are left out. A word that no event holds
        may be misspelt: those of the nearest candidates count that hold a word like it.
        """
        found = [(word, holders_of(word, self.view)) for word in self.question.words]
        for word, rows in found:
            if rows is not None and not rows.size:
                self.view.held[word] = self._alike(word)
        held = (holders_of(word, self.view) for word, _ in found)
        return [rows for rows in held if rows is not None]

    def _alike(self, word: str) -> IntArray:
        nearest, words, every = self._words_nearby
        like = {
            other for other in every if len(other) <= len(word) + 1 and spelt_alike(word, other)
        }
        held = [not like.isdisjoint(some) for some in words] if like else [False] * len(words)
        return np.sort(nearest[np.array(held, dtype=bool)])

    @cached_property
    def _words_nearby(self) -> tuple[IntArray, list[frozenset[str]], frozenset[str]]:
        """The candidates that are nearest to the cue, the longer words of each, and of all."""
        similar = self.view.similarity(self.rows)
        nearest = self.rows[np.argsort(-similar, kind="stable")[:_NEARBY]]
        words = [_longer_words(text) for text in self.corpus.texts(nearest)]
        return nearest, words, frozenset().union(*words)

    @cached_property
    def idf(self) -> list[float]:
        """What each word says: ln(1 + (N - h + 1/2) / (h + 1/2)) where h of N events hold it."""
        return [self.view.idf(rows.size) for rows in self.holders]


def among(rows: IntArray, ascending: IntArray) -> Mask:
    """Return which rows are in a list that is sorted.

    Examples
    --------
    >>> among(np.array([1, 4, 9]), np.array([4, 5])).tolist()
    [False, True, False]
    """
    if not ascending.size:
        return np.zeros(rows.shape, dtype=np.bool_)
    at = np.minimum(np.searchsorted(ascending, rows), ascending.size - 1)
    found: Mask = ascending[at] == rows
    return found


def both_sides(
    question: Question, candidates: Candidates, scores: FloatArray, view: VisibleEvents
) -> Column | None:
    """Mark the two memories between which a question asks for the time, None where it does not.

    Of each side the candidate that holds most of its words by idf, half of it at least; of equals
    the one with the higher score. None too where one memory is the best for both.
    """
    found = set[int]()
    for words in question.sides:
        held, whole = np.zeros(len(candidates)), 0.0
        for word in words:
            rows = holders_of(word, view)
            if rows is not None:
                idf = np.log1p((view.size - rows.size + 0.5) / (rows.size + 0.5))
                held += idf * among(candidates.rows, rows)
                whole += idf
        if whole > 0.0 and held.max() >= whole / 2.0:
            found.add(int(np.lexsort((scores, held.round(9)))[-1]))
    marked = np.zeros(len(candidates))
    marked[[*found]] = 1.0
    return marked if len(found) == 2 else None


_forms_of = lru_cache(maxsize=1 << 16)(forms_of)
_relative_dates = lru_cache(maxsize=1 << 16)(relative_dates)


def content_signals(scene: Neighbourhood) -> tuple[dict[str, Column], Column]:
    """Compare vectors, words and sessions.

    Returns
    -------
    columns : dict of str to ndarray of shape (n,)
        ``dense``: similarity of the event. ``dense_window``, ``dense_wide``: of the three and the
        five events round it. ``dense_pair``: of a question with its answer: the event and the one
        before it, if that asks; the event and the one after it, if it asks itself; else its own.
        ``dense_neighbour``: the higher one of its neighbours. Where a window reaches over the end
        of a session, the mean is over what there is.
        ``bm25``, ``bm25_window``, ``bm25_wide``: BM25 of the event, of the three and of the five
        events round it, as a share of what a text that repeats every word of the question for
        ever would get. ``coverage``, ``coverage_window``: share of the question's idf that the
        event, and the three events round it, hold. ``coverage_pair``: the same for the question
        before an answer together with the answer. ``asked_before``: share that the event before it
        holds, if that one asks. ``coverage_store``: share that is in words which any event holds,
        the same for every candidate.
        ``session_best``: what the best candidate of its session says itself. ``session_mean``: the
        mean of the three best. ``session_coverage``: share of the question's idf that the
        candidates of its session hold together.
    content : ndarray of shape (n,)
        What each says itself, in [0, 1]: in equal parts of meaning, stretched among the candidates,
        and words.

    References
    ----------
    Robertson & Zaragoza 2009, The probabilistic relevance framework: BM25 and beyond.
    """
    view = scene.view
    return recall_columns.signal_columns(
        scene.near,
        scene.places,
        view.similarity(scene.near),
        scene.holders,
        scene.idf,
        view.corpus.asks,
        view.corpus.lengths,
        view.corpus.timelines.sessions,
    )


def coverage(scene: Neighbourhood, *places: IntArray) -> Column:
    """Return the share of the question's idf that some places hold together.

    Parameters
    ----------
    scene : Neighbourhood
        The question and its candidates.
    *places : ndarray of shape (n,), int64
        One or more places for each of n results.

    Returns
    -------
    ndarray of shape (n,), float64
        In [0, 1]; 0 for a question without content words.
    """
    idf = np.array(scene.idf)
    total = float(idf.sum())
    holds = recall_columns.holds(scene.near, scene.holders)
    held = np.any([holds[:, column] for column in places], axis=0)
    out: Column = idf @ held / (total or 1.0)
    return out


def form_signals(scene: Neighbourhood) -> Mapping[str, FloatArray]:
    """Compare the form of the texts with the form of the answer.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``answers``: 1 where the text says the kind of thing that is asked for (when, how long, how
        many, why, who, where); 0 where the question does not tell. ``asks``: 1 where the text
        asks something itself.
    """
    wanted = scene.question.wanted
    asks = scene.corpus.asks[scene.rows].astype(np.float64)
    if not wanted:
        return {"answers": np.zeros(scene.rows.size), "asks": asks}
    forms = np.array([_forms_of(text) for text in scene.corpus.texts(scene.rows)], dtype=np.int64)
    return {"answers": (forms & wanted > 0).astype(np.float64), "asks": asks}


def length_signals(scene: Neighbourhood) -> Mapping[str, FloatArray]:
    """Say how much an event tells.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``length``: ln(1 + characters) / ln(1001), at most 1: greetings and thanks are short.
    """
    lengths = scene.corpus.lengths[scene.rows]
    return {"length": np.minimum(np.log1p(lengths) / np.log(1001.0), 1.0)}


_DAYS_OF_DECAY = 4.0
_DAY_ALONE = 3.0


def speaker_signals(scene: Neighbourhood) -> Mapping[str, FloatArray]:
    """Compare who speaks with whom the question names.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``speaker``: 1 where the event is of an entity that is named, 0 where nobody is named,
        -1 where only others are.
    """
    named = scene.question.entities
    if not named:
        return {"speaker": np.zeros(scene.rows.size)}
    speakers, agrees = (
        scene.corpus.entities[scene.rows],
        np.zeros(scene.rows.size, dtype=np.bool_),
    )
    for entity in named:  # Few are: this is several times faster than np.isin.
        agrees |= speakers == entity
    return {"speaker": 2.0 * agrees - 1.0}


def date_signals(scene: Neighbourhood) -> Mapping[str, FloatArray]:
    """Compare when the event happened with the dates that the question names.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``date_near``: e^(-days/4) from the nearest day that is named; of a question for nothing but
        what was at a time, 3 at that time and 0 at others. ``date_month``: 1 in a month
        that is named, or that a named day is in. ``date_year``: 1 in a year that is named. Of an
        event that means another day ("last Friday"), the nearer one counts.
    """
    dates = scene.question.dates
    nothing = np.zeros(scene.rows.size)
    if not dates:
        return {"date_near": nothing, "date_month": nothing, "date_year": nothing}
    own = scene.corpus.timestamps[scene.rows]
    said = [
        (place, noon_of(meant.day))
        for place, text in enumerate(scene.corpus.texts(scene.rows))
        for meant in _relative_dates(text, int(own[place]))
    ]
    places = np.array([*range(own.size), *(place for place, _ in said)])
    stamps = np.append(own, np.array([noon for _, noon in said], dtype=np.int64))
    when = stamps.astype("datetime64[us]")
    years = when.astype("datetime64[Y]").astype(np.int64) + 1970
    months = when.astype("datetime64[M]").astype(np.int64) % 12 + 1
    month, year = np.zeros((2, stamps.size))
    for named in dates:
        in_year = np.ones(years.shape, bool) if named.year is None else years == named.year
        if named.year is not None:
            year = np.maximum(year, in_year)
        if named.month is not None:
            month = np.maximum(month, in_year & (months == named.month))
        if named.days > 1:
            month = np.maximum(month, days_from([named], stamps) <= HALF_A_DAY)
    days = days_from(dates, stamps, longer=scene.question.of_a_day)
    near = np.exp(-days / _DAYS_OF_DECAY)
    if scene.question.of_a_day:
        # Nothing else was asked for: the day outweighs all likeness of words.
        near = np.where(days <= HALF_A_DAY, _DAY_ALONE, 0.0)
    out = {"date_near": near, "date_month": month, "date_year": year}
    for name, each in out.items():
        best = nothing.copy()
        np.maximum.at(best, places, each)
        out[name] = best
    return out


_LONGEST = 12


class Mention(NamedTuple):
    """One title within one text.

    Attributes
    ----------
    about : int
        What the title belongs to.
    title : str
        The words that were found, folded in case.
    """

    about: int
    title: str


def title_words(title: str) -> tuple[str, ...]:
    """Return the words of a title, folded in case, without what distinguishes it in brackets.

    Examples
    --------
    >>> title_words("Lilu (mythology)")
    ('lilu',)
    """
    return tuple(title_key(title).split())


class Titles:
    """Titles by their words.

    Only titles that hold a content word count, of at most 12 words; a title of a single word has to
    begin with a capital in the text, since "Heat" is a film and heat is not.

    Examples
    --------
    >>> titles = Titles()
    >>> titles.add(1, "Lilu (mythology)")
    >>> titles.add(2, "Demon Dice")
    >>> titles.mentioned("Lilu is no demon; Demon Dice has many.")
    [Mention(about=1, title='lilu'), Mention(about=2, title='demon dice')]
    """

    def __init__(self) -> None:
        self._about: dict[tuple[str, ...], list[int]] = {}
        self._longest: dict[str, int] = {}

    def add(self, about: int, title: str) -> None:
        """Say what a title belongs to; several may share one."""
        words = title_words(title)
        if not 0 < len(words) <= _LONGEST or not content_words(" ".join(words)):
            return
        self._about.setdefault(words, []).append(about)
        self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))

    def mentioned(self, text: str) -> list[Mention]:
        """Return what a text mentions, each once, in the order of the text.

        Where one title contains another ("New York City", "New York"), the longest counts.
        """
        out: dict[int, Mention] = {}
        for words in self._found(text):
            for about in self._about[words]:
                out.setdefault(about, Mention(about, " ".join(words)))
        return list(out.values())

    def _found(self, text: str) -> Iterator[tuple[str, ...]]:
        # Both lists hold the same words, the one as written and the other folded.
        folded = plain_words(text)
        written = plain_words(text, fold=False)
        at = 0
        while at < len(folded):
            for length in range(self._longest.get(folded[at], 0), 0, -1):
                words = tuple(folded[at : at + length])
                if words in self._about and (length > 1 or written[at][:1].isupper()):
                    yield words
                    at += length - 1
                    break
            at += 1


_LONGEST_TITLE = 6
MENTIONS = "mentions"
"""The kind of edge from a text to what is about something that it mentions."""


def title_signals(scene: Neighbourhood) -> Mapping[str, FloatArray]:
    """Say whether the question names the title of a text.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``title``: 1 where the whole title stands in the question, 0 otherwise or without a title.
    """
    out = np.zeros(scene.rows.size)
    for phrase in phrases(scene.question.asked) if scene.view.titled else ():
        if (rows := scene.view.titles(phrase)).size:
            out[among(scene.rows, rows)] = 1.0
    return {"title": out}


def phrases(text: str) -> list[str]:
    """Return every run of up to six words that could be a title: one that starts with a capital.

    Examples
    --------
    >>> phrases("Who crossed Red River")
    ['Who', 'Who crossed', 'Who crossed Red', 'Who crossed Red River', 'Red', 'Red River', 'River']
    """
    words = plain_words(text, fold=False)
    return [
        " ".join(words[start : start + length])
        for start, first in enumerate(words)
        if first[:1].isupper() or first[:1].isdigit()
        for length in range(1, min(_LONGEST_TITLE, len(words) - start) + 1)
    ]


def link_signals(scene: Neighbourhood, score: FloatArray) -> Mapping[str, FloatArray]:
    """Follow the links between candidates one step, in their own direction.

    Parameters
    ----------
    scene : Neighbourhood
        The question and its candidates.
    score : ndarray of shape (n,)
        Of each candidate by itself, at least 0.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``linked``: the highest score of a candidate that mentions this one, times the weight of the
        link. ``residual``: over the same candidates, the highest score times the share of the
        question's idf that this one adds to what the other holds.
    """
    linked, residual = np.zeros((2, scene.rows.size))
    links = scene.view.links(scene.rows)
    at = {row: place for place, row in enumerate(scene.rows.tolist())} if links else {}
    walked = [
        (at[a], at[b], edge.weight)
        for a, b, edge in links
        if edge.kind == MENTIONS and a != b and b in at
    ]
    if walked:
        start, end, weights = (np.array(column) for column in zip(*walked, strict=True))
        strength = score[start] * weights
        source, target = scene.own[start], scene.own[end]
        added = coverage(scene, source, target) - coverage(scene, source)
        np.maximum.at(linked, end, strength)
        np.maximum.at(residual, end, strength * added)
    return {"linked": linked, "residual": residual}


_BY_ITSELF = (speaker_signals, date_signals, form_signals, length_signals, title_signals)


def signals_of(
    question: AnyQuestion, candidates: Candidates, view: VisibleEvents
) -> Mapping[str, FloatArray]:
    """Compute every column.

    Parameters
    ----------
    question : Question
        From ``read_question``.
    candidates : Candidates
        The rows that may answer.
    view : VisibleEvents
        What is visible.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        By name, unscaled.

    Raises
    ------
    InvalidInputError
        The question was read by another reader.
    """
    if not isinstance(question, Question):
        raise InvalidInputError(
            f"the question is a {type(question).__name__}: set the pipeline's reader to read_cue"
        )
    scene = Neighbourhood(question, candidates, view)
    # What stands by its session or its links borrows from what others say themselves.
    own, content = content_signals(scene)
    columns: dict[str, FloatArray] = {**own}
    for signals in _BY_ITSELF:
        columns.update(signals(scene))
    columns.update(link_signals(scene, content))
    return columns
