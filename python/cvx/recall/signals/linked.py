"""Signals from links between texts: what a good candidate mentions may complete it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvx.recall.signals.lexical import coverage
from cvx.recall.signals.mentions import title_words
from cvx.recall.signals.scene import Scene
from cvx.recall.signals.view import FloatArray
from cvx.recall.signals.words import plain_words

MENTIONS = "mentions"
"""The kind of edge from a text to what is about something that it mentions."""


def title_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Say whether the question names the title of a text.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``title``: 1 where the whole title stands in the question, 0 otherwise or without a title.
    """
    asked = f" {' '.join(plain_words(scene.question.text))} "
    titles = scene.view.titles(scene.rows)
    named = [bool(title) and f" {' '.join(title_words(title))} " in asked for title in titles]
    return {"title": np.array(named, dtype=np.float64)}


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
    start, end, kinds, weights = scene.view.links(scene.rows)
    order = np.argsort(scene.rows)
    ascending = scene.rows[order]
    known = np.array([kind == MENTIONS for kind in kinds], dtype=np.bool_)
    known &= np.isin(end, ascending) & (start != end)
    if known.any():
        start, end = (order[np.searchsorted(ascending, ends[known])] for ends in (start, end))
        strength = score[start] * weights[known]
        both = coverage(scene, np.stack([scene.own[start], scene.own[end]], axis=1))
        added = both - coverage(scene, scene.own[start][:, None])
        np.maximum.at(linked, end, strength)
        np.maximum.at(residual, end, strength * added)
    return {"linked": linked, "residual": residual}
