"""Signals from words: of the event, and of windows of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping

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
    places, own, before = scene.places, scene.own, scene.places[:, REACH - 1]
    near = places[:, REACH - 1 : REACH + 2]
    asked = np.where(scene.asks[before], before, scene.near.size)
    return {
        "coverage_store": np.full(scene.rows.size, _known_share(scene)),
        "bm25": bm25(scene, own[:, None]),
        "bm25_window": bm25(scene, near),
        "bm25_wide": bm25(scene, places),
        "coverage": coverage(scene, own[:, None]),
        "coverage_window": coverage(scene, near),
        "coverage_pair": coverage(scene, np.stack([own, asked], axis=1)),
        "asked_before": coverage(scene, asked[:, None]),
    }


def _known_share(scene: Scene) -> float:
    total = float(scene.idf.sum())
    return float(scene.idf[scene.known].sum()) / total if total else 0.0


def coverage(scene: Scene, places: IntArray) -> npt.NDArray[np.float64]:
    """Return the share of the question's idf that each set of places holds together.

    Parameters
    ----------
    scene : Scene
        The question and its candidates.
    places : ndarray of shape (n, w), int64
        Sets of places.

    Returns
    -------
    ndarray of shape (n,), float64
        In [0, 1]; 0 for a question without content words.
    """
    total = float(scene.idf.sum())
    if total == 0.0:
        return np.zeros(places.shape[0])
    held = scene.holds[places].max(axis=1)
    out: npt.NDArray[np.float64] = held @ scene.idf / total
    return out


def bm25(scene: Scene, places: IntArray) -> npt.NDArray[np.float64]:
    """Return BM25 of each set of places, read as one text, as a share of its upper bound.

    Parameters
    ----------
    scene : Scene
        The question and its candidates.
    places : ndarray of shape (n, w), int64
        Sets of places. An event counts a word once however often it repeats it.

    Returns
    -------
    ndarray of shape (n,), float64
        In [0, 1).
    """
    total = float(scene.idf.sum())
    if total == 0.0:
        return np.zeros(places.shape[0])
    counts = scene.holds[places].sum(axis=1)
    lengths = scene.lengths[places].sum(axis=1)
    usual = float(scene.lengths.sum()) / max(scene.near.size, 1) * places.shape[1]
    damp = _K1 * (1 - _B + _B * lengths / max(usual, 1.0))
    out: npt.NDArray[np.float64] = (counts / (counts + damp[:, None])) @ scene.idf / total
    return out
