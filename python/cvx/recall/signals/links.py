"""Titles and links: which texts speak of what others are about, and what that is worth.

A title, or a name, stands for the text that is about it. Every text in which a title occurs, word
for word, mentions it; the link leads from the text that mentions to the text that is about, and
never back: what speaks of Paris does not answer what Paris is, but what Paris is may complete it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from cvx.recall.naming import title_key
from cvx.recall.signals.content import coverage
from cvx.recall.signals.scene import Scene, among
from cvx.recall.signals.view import FloatArray
from cvx.recall.words import content_words, plain_words

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


def title_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Say whether the question names the title of a text.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``title``: 1 where the whole title stands in the question, 0 otherwise or without a title.
    """
    named = [scene.view.titles(phrase) for phrase in phrases(scene.question.asked)]
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *named]))
    return {"title": among(scene.rows, rows).astype(np.float64)}


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


def link_signals(scene: Scene, score: FloatArray) -> Mapping[str, FloatArray]:
    """Follow the links between candidates one step, in their own direction.

    Parameters
    ----------
    scene : Scene
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
    linked, residual = np.zeros(scene.rows.size), np.zeros(scene.rows.size)
    at = {row: place for place, row in enumerate(scene.rows.tolist())}
    walked = [
        (at[a], at[b], edge.weight)
        for a, b, edge in scene.view.links(scene.rows)
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
