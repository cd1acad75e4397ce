"""What a record's decisions say of weights: the samples that they were learned from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvx.active.following import Following
    from cvx.scoring import LearnedWeights


def logged_samples(
    memory: Following, weights: LearnedWeights
) -> tuple[list[list[float]], list[float], list[float]]:
    """Return features, outcomes and propensities as ``weight_samples`` gave them, oldest first.

    The newest ones, as many as the window of the weights holds.
    """
    rows: list[list[float]] = []
    labels: list[float] = []
    propensities: list[float] = []
    for logged in memory.record.newest_decisions():
        if logged["outcome"] is None:
            # A recall for a prompt of which nobody said what became of it.
            continue
        won = float(logged["outcome"]) > memory.success_above
        if not won and not memory.learn_from_failures:
            continue
        chances = logged["record"].get("propensities", ())
        if len(chances) != len(logged["hits"]):
            # Not sampled; or a context, which keeps the chances of what it showed alone.
            chances = [math.nan] * len(logged["hits"])
        for (node, _, _, _, factors), chance in reversed(
            [*zip(logged["hits"], chances, strict=True)]
        ):
            values = {name: value for name, value, _ in factors}
            if node in logged["followed"] and values.keys() >= set(weights.names):
                rows.append([values[name] for name in weights.names])
                labels.append(float(won))
                propensities.append(chance)
        if len(rows) >= weights.window:
            break
    return rows[::-1], labels[::-1], propensities[::-1]
