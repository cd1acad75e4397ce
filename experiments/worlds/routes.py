"""Parts of RFC-013 as routes of advice: a region model, and the memories that a loop recalls."""

# ruff: noqa: D102
# What the methods of an agent do is told once, by `experiments.worlds.learners.Agent`.

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

from cvx.learn.advisor import Basis, Beta, Moment, Parts, Route
from cvx.learn.edges import HELPFUL
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue
from experiments.worlds.learners import VECTORS, Advised, View

_ENDS: tuple[Literal["failure", "success"], ...] = ("failure", "success")
_STEEP = 5.0
"""How much less a memory counts whose score is 1 lower: by the power of e."""


def region_route(mdp: RegionMDP) -> Route:
    """Ask a region model: the posterior of success of an action, in the region of what is seen.

    Its ``classify`` says which actions are of one kind; ``str`` tells all apart.
    """

    def expect(moment: Moment, actions: Sequence[Hashable]) -> list[Beta | None]:
        vector = moment.observation.vector
        if vector is None or not len(mdp):
            return [None] * len(actions)
        region = mdp.assign(vector)
        kinds = [mdp.classify(str(action)) for action in actions]
        told = [mdp.estimate(region, kind, moment.task) for kind in kinds]
        return [one.posterior if one.basis.trials else None for one in told]

    return expect


def near_route(loop: ActiveMemory, k: int = 10) -> Route:
    """Ask a loop: each memory that it recalls speaks for or against its action, by its score.

    So similarity, recency, reward, use, edges and learned weights decide as far as the loop's
    scorer reads them. ``k`` successes and as many failures are asked.
    """

    def expect(moment: Moment, actions: Sequence[Hashable]) -> list[Beta | None]:
        vector = moment.observation.vector
        if vector is None:
            return [None] * len(actions)
        cue = Cue(goal=moment.goal, task_type=moment.task, vector=vector)
        counts = {str(action): [0.0, 0.0] for action in actions}
        for won, end in enumerate(_ENDS):
            hits = loop.recall(cue, None, k, distinct=None, outcome=end).hits
            for hit in hits:
                if hit.action in counts:
                    behind = math.exp(_STEEP * (hit.score - hits[0].score))
                    counts[hit.action][won] += max(0.0, hit.similarity) * behind
        # A loop knows actions by their words.
        told = (counts[str(action)] for action in actions)
        return [Beta(1.0 + won, 1.0 + lost) if won + lost else None for lost, won in told]

    return expect


class Routed(Advised):
    """The learner with the parts of RFC-013 as routes: a loop on an index of its own.

    Parameters
    ----------
    seed : int
    parts : Parts
    regions, near, edges : bool, default False
        Whether the loop's region model is asked; the memories that it recalls; along edges, too.
    """

    def __init__(
        self,
        seed: int,
        parts: Parts,
        *,
        regions: bool = False,
        near: bool = False,
        edges: bool = False,
    ) -> None:
        super().__init__(seed, parts)
        index = TemporalIndex(len(VECTORS("")), seed=seed)
        boost = HELPFUL if edges else None
        self.loop = ActiveMemory(index, action_type=str, edge_boost=boost, temporal_context=0)
        assert self.loop.mdp is not None
        routes: dict[Basis, Route] = {}
        if near or edges:
            routes["near"] = near_route(self.loop)
        if regions:
            routes["region"] = region_route(self.loop.mdp)
        self.advisor.routes = routes

    def begin(self, goal: str) -> None:
        super().begin(goal)
        self.run, self.total = self.loop.begin(goal, goal), 0.0

    def act(self, view: View) -> tuple[str, float | None]:
        command, value = super().act(view)
        decision = self.loop.recall(Cue(vector=VECTORS(view.text)), episode=self.run)
        self.loop.act(decision, command)
        return command, value

    def saw(self, reward: float) -> None:
        super().saw(reward)
        self.total += reward

    def end(self, view: View, truncated: bool) -> None:
        super().end(view, truncated)
        self.loop.close(self.run, min(1.0, max(0.0, self.total)))
