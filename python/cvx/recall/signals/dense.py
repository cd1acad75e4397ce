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
