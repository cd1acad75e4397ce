"""Signals from vectors: the event's own, and windows of its neighbours.

A window's vector is the mean of its members', and its similarity to the question the mean of
theirs: one stored vector an event serves every window, and no vector leaves the index.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cvx.recall.signals.scene import REACH, Scene
from cvx.recall.signals.view import FloatArray


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
    sims, places = scene.similarity, scene.places
    around = sims[places]
    there = places < scene.near.size
    before, own, after = places[:, REACH - 1], scene.own, places[:, REACH + 1]
    asked = scene.asks[before]
    asks = scene.asks[own] & there[:, REACH + 1]
    partner = np.where(asked, sims[before], np.where(asks, sims[after], sims[own]))
    near = slice(REACH - 1, REACH + 2)
    return {
        "dense": sims[own],
        "dense_window": around[:, near].sum(axis=1) / there[:, near].sum(axis=1),
        "dense_wide": around.sum(axis=1) / there.sum(axis=1),
        "dense_pair": (sims[own] + partner) / 2,
        "dense_neighbour": np.maximum(sims[before], sims[after]),
    }
