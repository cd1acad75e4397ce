"""Signals from words: of the event, and of windows of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.recall.signals.scene import REACH, Scene
from cvx.recall.signals.view import FloatArray
from cvx.types import IntArray

_K1, _B = 1.2, 0.75


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
