"""Signals from links between texts: what a good candidate mentions may complete it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvx.recall.signals.lexical import coverage
from cvx.recall.signals.scene import Scene, among
from cvx.recall.signals.view import FloatArray
from cvx.recall.words import plain_words

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
