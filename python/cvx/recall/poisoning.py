"""Defences against planted memories: lowers those that echo the cue, give orders or fit anything.

Whoever may write a text may write one that ranks well. None of these defences knows what is true;
each takes away an advantage that an honest memory seldom has, and says so among the hit's factors.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.recall.fusion import Candidates
from cvx.recall.question import content_words
from cvx.recall.visible_events import VisibleEvents, drawn
from cvx.scoring.scorer import Scored
from cvx.store.fulltext import words_of
from cvx.types import Column, IntArray, Mask, Vector

_SAMPLE, _FEWEST = 64, 30
_COMMON = 3
"""A word in so many texts of the sample is common."""
_MORE, _FAR_MORE = 2.0, 3.0
"""From how many times the usual number of rare words on a text fits by chance, and fully so."""
_NEAR, _VERY_NEAR = 0.1, 0.3
"""The same for the share of the sample that a vector is nearest to."""
_HELD = 0.85
"""Share of the cue's words, question words included, that makes a text a repetition of it."""
_FEWEST_WORDS = 5
_SHARED, _SHARED_WORDS = 0.7, 4
"""Share of the cue's content words, and how many of them, that memories say alike."""
_AGAIN, _SECOND, _LEAD, _SEEN = 3, 0.7, 0.75, 16
"""For leaving the first place alone: how many words of the cue, or both of a cue of two; what share
of the score takes that place from what was doubted or is said again, and from what is said once;
and how many hits are looked at, however many are asked for."""
_SMALL = 0.1
"""A labelled source that holds less than this share of the memories is a small one."""
_DOUBT = 0.5
"""How much of its score is taken from what is doubted: of .3, .4 and .5 the one that kept most
planted texts of the development set from the first place; honest ones are hardly ever doubted."""
_COPY = 0.97
"""Cosine from which two memories are near copies, as for the blocks of a context."""
_MOST, _FIRST = 100, 6
"""How far down a ranking is looked at: so many places more than are wanted, up to the first."""
_RIVAL = 0.8
"""Share of its score from which another memory takes the place of one that is held back."""
_ASKING = frozenset(
    """
    who whom whose what when where which why how wer wen wem was wann wo wie warum welche qui que
    quand où comment pourquoi quel quelle quién qué cuándo dónde cómo cuál chi che quando dove come
    perché quem onde как что кто где когда почему
    """.split()  # noqa: SIM905
)
"""Words that ask in a few languages."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Settings of the defences; all of them look only at the head of a ranking.

    Parameters
    ----------
    echoes : bool, default True
        A text that asks what the cue asks is seldom its answer: of a question of at least five
        words, one that holds 85% of them, its question word among them, loses half of its score,
        and so does what the same source says next; but only of a labelled source that holds less
        than a tenth of the memories, since lists of questions with their answers are honest
        memories too.
    crowds : bool, default True
        A question is seldom answered twice in its own words: where several memories of a labelled
        source that holds less than a tenth of the memories say the same four content words of the
        cue or more, 70% of them, they lose half. One that says three of them (both of a cue of two)
        needs a lead for the first place: it leaves it to a memory that scores at least 75% of it,
        of a source that is not so small or of no label; what was of use scores higher and keeps it.
        Where another one of its source says them, too, or it was doubted, 70% are enough.
    orders : bool, default True
        A text that reads like an order to a model loses half.
    hubs : bool, default True
        A text that fits many unrelated cues loses up to half: one with several times as many rare
        words as is usual here, or one that lies nearer to many texts of a seeded sample of 64
        readable events than any other of the sample does.
    copies : bool, default True
        Of near copies the best counts, the others lose half.
    shares : bool, default True
        A labelled source that holds less than half of the memories takes no more than half of the
        first places, however many are taken, as long as something else scores at least 80% of what
        is held back.

    References
    ----------
    Radovanović, Nanopoulos & Ivanović 2010, Hubs in space. Singhal, Buckley & Mitra 1996, Pivoted
    document length normalization.
    """

    echoes: bool = True
    crowds: bool = True
    orders: bool = True
    hubs: bool = True
    copies: bool = True
    shares: bool = True

    def doubted(
        self, view: VisibleEvents, table: Candidates, scored: Scored, order: IntArray
    ) -> Scored:
        """Return scores lowered by each doubt, as factors below 0.

        ``order`` are the places of the table, best first.
        """
        total = scored.total
        head = order[: min(view.k + _FIRST, _MOST)]
        rows = table.rows[head]
        doubts: dict[str, npt.NDArray[Any]] = {}
        # Only labelled sources are doubted for what they repeat.
        labelled = bool(view.corpus.sources[rows].any())
        if self.orders:
            doubts["reads like an order"] = view.corpus.orders[rows]
        if self.echoes and labelled:
            holds = table["coverage"][head] if "coverage" in table else np.ones(len(rows))
            doubts["repeats the question"] = _echoing(view, rows, holds >= _HELD)
            if "asked_before" in table:
                before = table["asked_before"][head] >= _HELD
                doubts["answers a copied question"] = _answering(view, rows, before)
        if self.crowds and labelled:
            doubts["says it again and again"] = _crowding(view, rows)
        vectors = vectors_of(view, rows)
        if self.hubs:
            doubts["fits everything"] = typical_events(view).hubness(view, rows, vectors)
        if self.copies:
            alike = vectors @ vectors.T >= _COPY
            if np.count_nonzero(alike) > np.count_nonzero(alike.diagonal()):
                doubts["near copy"] = np.asarray(np.tril(alike, -1).any(axis=1))
        for name, doubt in doubts.items():
            if doubt.any():
                whole = np.zeros(len(total))
                whole[head] = _DOUBT * doubt
                scored = scored.less(name, whole)
        return scored

    def ordered(
        self, view: VisibleEvents, table: Candidates, scored: Scored, order: IntArray
    ) -> IntArray:
        """Return a ranking whose first place stands on more than one small source's word.

        And in which no labelled source takes more than its share of any first places.
        """
        rows, scores = table.rows[order], scored.total[order].tolist()
        held = view.corpus.sources[rows].tolist()
        if len(set(held)) < 2:
            return order
        share = cache(partial(_share, view))
        places = list(range(len(held)))
        if self.crowds and held[0] and share(held[0]) < _SMALL:
            head = rows[:_SEEN]
            doubted = any(doubt[order[0]] > 0 for _, doubt, _ in scored.doubts)
            enough = (_SECOND if doubted else _enough(view, head)) * scores[0]
            rivals = (
                at
                for at in range(1, len(head))
                if scores[at] >= enough and share(held[at]) >= _SMALL
            )
            places.insert(0, places.pop(next(rivals, 0)))
        if not self.shares:
            return order[places]
        coming, back, taken, counts = deque(places), deque[int](), list[int](), Counter[int]()
        while coming or back:
            # Only what one source holds is ever held back: no two can have half of the places.
            first = back[0] if back else coming[0]
            code, room = held[first], (len(taken) + 2) // 2
            if counts[code] >= room and share(code) <= 0.5:
                while coming and held[coming[0]] == code:
                    back.append(coming.popleft())
                if coming and scores[coming[0]] >= _RIVAL * scores[first]:
                    first = coming[0]
            taken.append(back.popleft() if back and first == back[0] else coming.popleft())
            counts[held[first]] += 1
        return order[taken]


def _share(view: VisibleEvents, code: int) -> float:
    """Return the share of what the asker may read that a source holds; all, of no label."""
    return (
        1.0
        if not code
        else float((view.readable & (view.corpus.sources == code)).sum()) / max(1, view.size)
    )


def _echoing(view: VisibleEvents, rows: IntArray, holds: Mask) -> Mask:
    """Return which texts, of those that hold its content, repeat the question of the cue."""
    out = np.zeros(len(rows), dtype=np.bool_)
    if not holds.any():
        return out
    told = view.cue.words()
    words = words_of(told)
    asked = set(words)
    # "was" and "come" ask in one language and state in another.
    question = told.rstrip().endswith("?") or (words[:1] != [] and words[0] in _ASKING)
    if len(asked) < _FEWEST_WORDS or not question or not (asking := asked & _ASKING):
        return out
    some = np.flatnonzero(holds & _of_small_sources(view, rows))
    for at, text in zip(some.tolist(), view.corpus.texts(rows[some]), strict=True):
        held = asked.intersection(words_of(text))
        out[at] = len(held) >= _HELD * len(asked) and bool(asking & held)
    return out


def _answering(view: VisibleEvents, rows: IntArray, asked: Mask) -> Mask:
    """Return which texts follow one of their source that repeats the question."""
    out = np.zeros(len(rows), dtype=np.bool_)
    some = np.flatnonzero(asked)
    if some.size:
        before, codes = view.window(rows[some], 1)[:, 0], view.corpus.sources
        same = (before >= 0) & (codes[before] == codes[rows[some]])
        out[some] = _echoing(view, before, same)
    return out


def _of_small_sources(view: VisibleEvents, rows: IntArray) -> Mask:
    codes = view.corpus.sources[rows]
    return np.isin(
        codes, [one for one in set(codes.tolist()) if one and _share(view, one) < _SMALL]
    )


def _crowding(view: VisibleEvents, rows: IntArray) -> Mask:
    """Return which texts say the same words of the cue as another one of their small source."""
    out = np.zeros(len(rows), dtype=np.bool_)
    codes = view.corpus.sources[rows].tolist()
    several = [code for code, times in Counter(codes).items() if times > 1]
    if several in ([], [0]):
        return out
    asked = set(content_words(view.cue.words()))
    least = max(_SHARED_WORDS, _SHARED * len(asked))
    if len(asked) < least:
        return out
    some = np.flatnonzero(np.isin(codes, several) & _of_small_sources(view, rows))
    told = dict(zip(some.tolist(), view.corpus.texts(rows[some]), strict=True))
    held = {at: asked.intersection(content_words(text)) for at, text in told.items()}
    for one, two in combinations(told, 2):
        if codes[one] == codes[two] and len(held[one] & held[two]) >= least:
            out[[one, two]] = True
    return out


def _enough(view: VisibleEvents, rows: IntArray) -> float:
    """Return what share of its score takes the first place from the first; infinity for nothing."""
    asked = set(content_words(view.cue.words()))
    least = max(2, min(_AGAIN, len(asked)))
    codes = view.corpus.sources[rows]
    first, *others = (
        asked.intersection(content_words(text))
        for text in view.corpus.texts(rows[codes == codes[0]])
    )
    if any(len(first & one) >= least for one in others):
        return _SECOND
    return _LEAD if len(first) >= least else math.inf


def vectors_of(view: VisibleEvents, rows: IntArray) -> Vector:
    """Return the vectors of rows, each of length 1; 0 for what has none."""
    out = view.index.vectors(view.corpus.nodes[rows])
    # What numpy.linalg.norm computes, in half the time for a few rows.
    return np.asarray(
        out / np.maximum(np.sqrt(np.add.reduce(out * out, axis=1, keepdims=True)), 1e-12)
    )


@dataclass(slots=True)
class TypicalEvents:
    """Statistics of a sample of readable events, to find outliers that match every cue.

    Parameters
    ----------
    size : int
        How many events were readable when the sample was drawn.
    vectors : ndarray of shape (s, dim), float32
        Of the sample, of length 1.
    nearest : ndarray of shape (s,), float32
        How like each is to another one of the sample, at the most.
    common : frozenset of str
        Words that several of the texts hold.
    rare : float
        How many other words a long text of the sample has, length ``long`` characters.
    known : dict of int to float
        By row: its hubness, in [0, 1].
    """

    size: int
    vectors: Vector
    nearest: Vector
    common: frozenset[str]
    rare: float
    long: float
    known: dict[int, float] = field(default_factory=dict)

    def hubness(self, view: VisibleEvents, rows: IntArray, vectors: Vector) -> Column:
        """Return how far events fit more cues than they should, of shape (n,), in [0, 1]."""
        if not len(self.nearest):
            return np.zeros(len(rows))
        at = [place for place, row in enumerate(rows.tolist()) if row not in self.known]
        if at:
            new, near = rows[at], (vectors[at] @ self.vectors.T > self.nearest).mean(axis=1)
            found = np.clip((near - _NEAR) / (_VERY_NEAR - _NEAR), 0.0, 1.0)
            long = np.flatnonzero(view.corpus.lengths[new] > self.long)
            for place, text in zip(long.tolist(), view.corpus.texts(new[long]), strict=True):
                words = len(set(words_of(text)) - self.common)
                more = (words / self.rare - _MORE) / (_FAR_MORE - _MORE)
                found[place] = max(found[place], min(max(more, 0.0), 1.0))
            self.known.update(zip(new.tolist(), found.tolist(), strict=True))
        return np.array([self.known[row] for row in rows.tolist()])


def typical_events(view: VisibleEvents) -> TypicalEvents:
    """Return what is usual where the asker reads: drawn anew each time the memory has doubled."""
    kept, spaces = view.corpus.usual, tuple(view.scope.where.namespaces or ())
    known = kept.get(spaces)
    if known is not None and view.size <= 2 * known.size:
        return known
    rows = np.sort(drawn(np.flatnonzero(view.readable), _SAMPLE))
    none = np.zeros(0, dtype=np.float32)
    made = TypicalEvents(view.size, none[:, None], none, frozenset(), math.inf, math.inf)
    if len(rows) >= _FEWEST:
        vectors = vectors_of(view, rows)
        likeness = vectors @ vectors.T
        np.fill_diagonal(likeness, -1.0)
        held = [set(words_of(text)) for text in view.corpus.texts(rows)]
        counts = Counter(word for words in held for word in words)
        common = frozenset(word for word, n in counts.items() if n >= _COMMON)
        rare = max(_quantile([len(words - common) for words in held], 0.95), 5.0)
        long = _quantile(view.corpus.lengths[rows].tolist(), 0.9)
        made = TypicalEvents(view.size, vectors, likeness.max(axis=1), common, rare, long)
    kept[spaces] = made
    return made


def _quantile(numbers: list[int], at: float) -> float:
    # The first call of np.quantile imports the masked arrays, which takes as long as some recalls.
    there, place = sorted(numbers), at * (len(numbers) - 1)
    low = there[int(place)]
    return low + (there[min(int(place) + 1, len(there) - 1)] - low) * (place - int(place))
