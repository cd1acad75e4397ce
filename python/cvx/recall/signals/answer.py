"""Signals from the form of a text: whether it could be what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from cvx.recall.signals.forms import forms_of
from cvx.recall.signals.scene import Scene
from cvx.recall.signals.view import FloatArray

_forms_of = lru_cache(maxsize=1 << 16)(forms_of)


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
