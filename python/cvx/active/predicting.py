"""What outcome a memory expects of a decision, before it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cvx.types import Decision

if TYPE_CHECKING:
    from cvx.active.parts import Parts


def expected_success(
    memory: Parts, decision: Decision, action: str | None, followed: Sequence[int]
) -> float | None:
    """Return the chance of success of the episode, given what is done on a decision.

    Of advice that is followed, what the learned weights expect of its features, the mean where
    several hits gave it; else what the region MDP expects of this kind of action where the cue
    lies. None where nothing was learned that says anything.

    Parameters
    ----------
    memory : ActiveMemory
        Whose weights and MDP are asked.
    decision : Decision
        With its hits and their factors.
    action : str or None
        What is done.
    followed : sequence of int
        Nodes of the hits whose advice that is.
    """
    weights = memory.weighing(decision.namespace).weights
    mdp = memory.mdp_of(decision.namespace)
    if weights is not None and weights.samples and followed:
        rows = []
        for hit in decision.hits:
            if hit.node in followed:
                values = {factor.name: factor.value for factor in hit.factors}
                rows.append([values[name] for name in weights.names])
        return float(np.mean(weights.predict(rows)))
    region = decision.region
    if action is None or mdp is None or region is None or not mdp.knows(region):
        return None
    return mdp.success(region, memory.action_type(action), decision.cue.task_type)
