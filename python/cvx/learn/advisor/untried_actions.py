"""Values of untried actions from the region model and from similar recalled memories."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

from cvx.learn.advisor.types import Basis, Moment
from cvx.statistics import Beta
from cvx.types import Cue

if TYPE_CHECKING:
    from cvx.learn.loop import ActiveMemory
    from cvx.learn.region_mdp import RegionMDP

_ENDS: tuple[Literal["failure", "success"], ...] = ("failure", "success")
_STEEP = 5.0
"""How much less a memory counts whose score is 1 lower: by the power of e."""


class RegionRoute:
    """Asks a region model: the posterior of success of the action, in the region of what is seen.

    Parameters
    ----------
    mdp : RegionMDP
        Its ``classify`` says which actions are of one kind; ``str`` tells all apart.
    """

    basis: Basis = "region"

    def __init__(self, mdp: RegionMDP) -> None:
        self.mdp = mdp

    def expect(self, moment: Moment, actions: Sequence[Hashable]) -> list[Beta | None]:
        """Return the posterior of each action, from wider places where need be; None of nothing."""
        vector = moment.observation.vector
        if vector is None or not len(self.mdp):
            return [None] * len(actions)
        region = self.mdp.assign(vector)
        kinds = [self.mdp.classify(str(action)) for action in actions]
        told = [self.mdp.estimate(region, kind, moment.task) for kind in kinds]
        return [one.posterior if one.basis.trials else None for one in told]


class NearRoute:
    """Asks a loop: each memory that it recalls speaks for or against its action, by its score.

    So similarity, recency, reward, use, edges and learned weights decide as far as the loop's
    scorer reads them.

    Parameters
    ----------
    loop : ActiveMemory
    k : int, default 10
        How many successes, and how many failures, are asked.
    """

    basis: Basis = "near"

    def __init__(self, loop: ActiveMemory, k: int = 10) -> None:
        self.loop, self.k = loop, k

    def expect(self, moment: Moment, actions: Sequence[Hashable]) -> list[Beta | None]:
        """Return what near memories tell of each action; None where none of them did it."""
        vector = moment.observation.vector
        if vector is None:
            return [None] * len(actions)
        cue = Cue(goal=moment.goal, task_type=moment.task, vector=vector)
        counts = {str(action): [0.0, 0.0] for action in actions}
        for won, end in enumerate(_ENDS):
            hits = self.loop.recall(cue, None, self.k, distinct=None, outcome=end).hits
            for hit in hits:
                if hit.action in counts:
                    behind = math.exp(_STEEP * (hit.score - hits[0].score))
                    counts[hit.action][won] += max(0.0, hit.similarity) * behind
        # A loop knows actions by their words.
        told = (counts[str(action)] for action in actions)
        return [Beta(1.0 + won, 1.0 + lost) if won + lost else None for lost, won in told]
