"""Recall that learns from feedback, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cvx.evaluation import Label
from cvx.memory import Memory

SHOWN = 10
ORDERS = 1
KINDS = {"honest": 0.0, "30% flipped": 0.3, "hostile": 1.0}
PARTS = (0.25, 0.5, 0.75)


def learned(
    memory: Memory, labels: Sequence[Label], gold: Sequence[frozenset[int]]
) -> Mapping[str, list[dict[str, float]]]:
    """Return points of recall over the static ranking on the questions after a part of them.

    Questions of each conversation in ``ORDERS`` random orders; feedback on the ten shown after
    each says which hold the evidence, or the opposite; at the end each is asked once more. The
    interval is a bootstrap over questions.
    """
    static = [_found(memory, label, wanted) for label, wanted in zip(labels, gold, strict=True)]
    groups = list(dict.fromkeys(label.namespace for label in labels))
    out = {}
    for kind, flipped in KINDS.items():
        gains, again = list[tuple[float, float, float]](), list[tuple[float, float, float]]()
        for order in range(ORDERS):
            random = np.random.default_rng(order)
            for group in groups:
                of = [at for at, label in enumerate(labels) if label.namespace == group]
                asked = random.permutation(of).tolist()
                for place, at in enumerate(asked):
                    flip = bool(random.random() < flipped)
                    now = _found(memory, labels[at], gold[at], flip=flip)
                    gains.append(
                        (place / len(asked), now[0] - static[at][0], now[1] - static[at][1])
                    )
                for at in asked:
                    now = _found(memory, labels[at], gold[at])
                    again.append((1.0, now[0] - static[at][0], now[1] - static[at][1]))
                memory.within(group).learning.reset("recall")
        out[kind] = [_gain(np.array(gains), part) for part in PARTS]
        out[f"{kind}, again"] = [_gain(np.array(again), 1.0)]
    return out


def _found(
    memory: Memory, label: Label, wanted: frozenset[int], *, flip: bool | None = None
) -> tuple[float, float]:
    """Return recall at 5 and 10 of one question; with ``flip``, say what helped, or did not."""
    hits = memory.recall(label.query, SHOWN, namespace=label.namespace)
    shown = [hit.id for hit in hits]
    if flip is not None:
        memory.feedback(hits, helped=[event for event in shown if (event in wanted) != flip])
    five, ten = (len(wanted & {*shown[:k]}) / len(wanted) for k in (5, SHOWN))
    return five, ten


def _gain(gains: npt.NDArray[np.float64], part: float) -> dict[str, float]:
    later = 100.0 * gains[gains[:, 0] >= part, 1:]
    random = np.random.default_rng(0)
    means = [later[random.integers(len(later), size=len(later)), 0].mean() for _ in range(1000)]
    low, high = np.quantile(means, (0.025, 0.975))
    five, ten = later.mean(axis=0)
    return {"after": part, "at 5": five, "low": low, "high": high, "at 10": ten}
