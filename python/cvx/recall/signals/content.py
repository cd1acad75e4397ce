"""Signals from what an event says, alone and with its neighbours: vectors, words, form, length.

A window's vector is the mean of its members', and its similarity to the question the mean of
theirs: one stored vector an event serves every window, and no vector leaves the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.recall.signals.forms import forms_of
from cvx.recall.signals.scene import REACH, Scene
from cvx.recall.signals.view import FloatArray
from cvx.types import IntArray

_K1, _B = 1.2, 0.75
_forms_of = lru_cache(maxsize=1 << 16)(forms_of)


def dense_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Compare vectors.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``dense``: similarity of the event. ``dense_window``, ``dense_wide``: of the three and the
        five events round it. ``dense_pair``: of a question with its answer: the event and the one
        before it, if that asks; the event and the one after it, if it asks itself; else its own.
        ``dense_neighbour``: the higher one of its neighbours. Where a window reaches over the end
        of a session, the mean is over what there is.
    """
    # One column a neighbour; "no neighbour" has similarity 0, so that sums need no mask.
    near = [scene.similarity[column] for column in scene.places.T]
    there = [(column < scene.near.size).astype(np.float64) for column in scene.places.T]
    before, own, after = near[REACH - 1], near[REACH], near[REACH + 1]
    asked = scene.asks[scene.places[:, REACH - 1]]
    asks = scene.asks[scene.own] & (there[REACH + 1] > 0)
    partner = np.where(asked, before, np.where(asks, after, own))
    three = slice(REACH - 1, REACH + 2)
    return {
        "dense": own,
        "dense_window": np.asarray(sum(near[three]) / sum(there[three])),
        "dense_wide": np.asarray(sum(near) / sum(there)),
        "dense_pair": (own + partner) / 2,
        "dense_neighbour": np.maximum(before, after),
    }


def lexical_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Compare words.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``bm25``, ``bm25_window``, ``bm25_wide``: BM25 of the event, of the three and of the five
        events round it, as a share of what a text that repeats every word of the question for
        ever would get. ``coverage``, ``coverage_window``: share of the question's idf that the
        event, and the three events round it, hold. ``coverage_pair``: the same for the question
        before an answer together with the answer. ``asked_before``: share that the event before it
        holds, if that one asks. ``coverage_store``: share that is in words which any event holds,
        the same for every candidate.

    References
    ----------
    Robertson & Zaragoza 2009, The probabilistic relevance framework: BM25 and beyond.
    """
    # One small matrix a neighbour: their sums are several times faster than sums over an axis.
    held = [scene.holds[column] for column in scene.places.T]
    lengths = [scene.lengths[column] for column in scene.places.T]
    near = slice(REACH - 1, REACH + 2)
    own, three, five = held[REACH], sum(held[near]), sum(held)
    asked = held[REACH - 1] * scene.asks[scene.places[:, REACH - 1]][:, None]
    # One matrix for all, since each step costs more to call than to compute.
    shares = _share(scene, np.concatenate([own, three, own + asked, asked, scene.known[None]]))
    coverage, window, pair, before, store = np.split(shares, scene.rows.size * np.arange(1, 5))
    parts = ((own, lengths[REACH], 1), (three, sum(lengths[near]), 3), (five, sum(lengths), 5))
    bm25, bm25_window, bm25_wide = np.split(_bm25(scene, *parts), 3)
    return {
        "coverage_store": np.full(scene.rows.size, store[0]),
        "bm25": bm25,
        "bm25_window": bm25_window,
        "bm25_wide": bm25_wide,
        "coverage": coverage,
        "coverage_window": window,
        "coverage_pair": pair,
        "asked_before": before,
    }


def coverage(scene: Scene, *places: IntArray) -> npt.NDArray[np.float64]:
    """Return the share of the question's idf that some places hold together.

    Parameters
    ----------
    scene : Scene
        The question and its candidates.
    *places : ndarray of shape (n,), int64
        One or more places for each of n results.

    Returns
    -------
    ndarray of shape (n,), float64
        In [0, 1]; 0 for a question without content words.
    """
    return _share(scene, sum(scene.holds[column] for column in places))


def _share(scene: Scene, counts: Any) -> npt.NDArray[np.float64]:
    """Return the share of the idf in words that are counted at all; counts of shape (n, t)."""
    total = float(scene.idf.sum())
    if total == 0.0:
        return np.zeros(counts.shape[0])
    out: npt.NDArray[np.float64] = (counts > 0) @ scene.idf / total
    return out


def _bm25(scene: Scene, *parts: tuple[Any, Any, int]) -> npt.NDArray[np.float64]:
    """Return BM25 as a share of its upper bound, in [0, 1), of texts of several events.

    Each part is made of counts of shape (n, t), lengths (n,), and the number of events that a text
    is made of; one result of shape (n,) follows the other. An event counts a word once, however
    often it repeats it.
    """
    counts = np.concatenate([held for held, _, _ in parts])
    total = float(scene.idf.sum())
    if total == 0.0:
        return np.zeros(counts.shape[0])
    usual = float(scene.lengths.sum()) / max(scene.near.size, 1)
    relative = [_B * length / max(usual * events, 1.0) for _, length, events in parts]
    damp = _K1 * (1 - _B + np.concatenate(relative))
    out: npt.NDArray[np.float64] = (counts / (counts + damp[:, None])) @ scene.idf / total
    return out


def form_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Compare the form of the texts with the form of the answer.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``answers``: 1 where the text says the kind of thing that is asked for (when, how long, how
        many, why, who, where); 0 where the question does not tell. ``asks``: 1 where the text
        asks something itself.
    """
    wanted = scene.question.wanted
    asks = scene.asks[scene.own].astype(np.float64)
    if not wanted:
        return {"answers": np.zeros(scene.rows.size), "asks": asks}
    forms = np.array([_forms_of(text) for text in scene.view.texts(scene.rows)], dtype=np.int64)
    return {"answers": (forms & wanted > 0).astype(np.float64), "asks": asks}


def length_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Say how much an event tells.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``length``: ln(1 + characters) / ln(1001), at most 1: greetings and thanks are short.
    """
    lengths = scene.lengths[scene.own]
    return {"length": np.minimum(np.log1p(lengths) / np.log(1001.0), 1.0)}
