"""Calibrating when a memory says nothing, and measuring it on other questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cvx.evaluation.answers import cue_of, where_of
from cvx.evaluation.foreign import foreign_cues
from cvx.evaluation.labels import Label
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.recall.signals import Answerable, calibrated, floor_features

FOREIGN = 200


def evidence(
    memory: Memory, pipeline: Pipeline, labels: Sequence[Label]
) -> npt.NDArray[np.float64]:
    """Return what the floor looks at, of shape (n, 4), one row a question."""
    return np.array(
        [
            floor_features(
                memory.learning.candidates(
                    cue_of(label),
                    namespace=label.namespace,
                    where=where_of(label),
                    pipeline=pipeline,
                ).columns
            )
            for label in labels
        ]
    )


def calibrated_floor(
    memory: Memory,
    pipeline: Pipeline,
    labels: Sequence[Label],
    *,
    most_empty: float = 0.03,
    seed: int = 0,
) -> Answerable:
    """Fit a floor to questions that a memory answers, and to as many others as tell them apart.

    Parameters
    ----------
    memory : Memory
        Of the embedder that the floor is for.
    pipeline : Pipeline
        One that computes the signals, such as ``attentive()``.
    labels : sequence of Label
        Questions with an answer; at least 10 of them have gold.
    most_empty : float, default 0.03
        Share of them that may come back empty.
    seed : int, default 0
        Of the 200 foreign questions, each asked in the namespace of one of the labels.

    Returns
    -------
    Answerable
        For ``attentive(answerable=...)``.
    """
    asked = [label for label in labels if label.gold]
    return calibrated(
        evidence(memory, pipeline, asked),
        evidence(memory, pipeline, foreign_labels(asked, FOREIGN, half="calibrate", seed=seed)),
        most_empty=most_empty,
    )


def foreign_labels(
    labels: Sequence[Label], count: int, *, half: str = "measure", seed: int = 0
) -> list[Label]:
    """Return foreign questions as labels without gold, in the namespaces of others in turn."""
    namespaces = list(dict.fromkeys(label.namespace for label in labels)) or [""]
    cues = foreign_cues(count, half="calibrate" if half == "calibrate" else "measure", seed=seed)
    return [
        Label(
            query=cue,
            gold=frozenset(),
            group="foreign",
            category="foreign",
            namespace=namespaces[at % len(namespaces)],
        )
        for at, cue in enumerate(cues)
    ]
