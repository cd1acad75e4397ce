"""Recall of the learning loop: searches, scores, and predicts the success of actions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cvx.embed import Embedder, embed_query
from cvx.learn.attribution import features_of
from cvx.learn.edges import edge_bonus
from cvx.learn.episode_recorder import OpenEpisode
from cvx.scoring import Scorer, ScoringContext, UsageTracker
from cvx.store.namespaces import reads
from cvx.types import Cue, Decision, Filter, Hit, Vector
from cvx.validation import storable_vector

if TYPE_CHECKING:
    from cvx.learn.model_sync import LearnedModels

Distinct: TypeAlias = Literal["episode", "entity"]
"""Of what only the best hit counts."""

_MOST_CANDIDATES = 4096
"""A search that was widened to so many is not widened again."""


@dataclass(frozen=True, slots=True)
class Ranker:
    """Searches, scores and ranks what the learned models say about a cue.

    Parameters
    ----------
    models : LearnedModels
        What is known.
    embedder : Embedder
        For cues without a vector.
    edge_boost, temporal_context, pool
        As for ``ActiveMemory``.
    age_unit : float
        How much of the timestamps is 1 in an age.
    """

    models: LearnedModels
    embedder: Embedder
    edge_boost: Mapping[str, float] | None
    temporal_context: int
    pool: int
    age_unit: float

    def locate(self, cue: Cue, run: OpenEpisode | None) -> Cue:
        """Return the cue with everything that the running episode tells, and with its vector."""
        task, goal, place, time = cue.task_type, cue.goal, cue.place, cue.timestamp
        if run is not None:
            task = run.task_type if task is None else task
            goal = goal or run.goal
            place = len(run.steps) if place is None else place
        time = self.models.recorder.time() if time is None else time
        full = replace(cue, task_type=task, goal=goal, place=place, timestamp=time)
        vector = embed_query(self.embedder, full.words()) if cue.vector is None else cue.vector
        return replace(full, vector=self.checked(vector))

    def checked(self, vector: Vector) -> Vector:
        """Refuse what the index would refuse, at the step rather than at the end of the episode."""
        index = self.models.index
        return storable_vector("the vector", vector, index.dim, index.metric)

    def rank(
        self,
        cue: Cue,
        where: Filter,
        k: int,
        *,
        asker: str,
        distinct: Distinct | None,
    ) -> tuple[list[Hit], list[tuple[str, float]], int | None]:
        """Return hits and kinds of action with their chance, best first, and the cue's region.

        The region is None until something was learned.

        Parameters
        ----------
        cue : Cue
            With a vector.
        where : Filter
            What may come back.
        k : int
            How many hits.
        asker : str
            The namespace that asks: kinds of action are scored by what it may read.
        distinct : {"episode", "entity", None}
            Of what only the best hit counts.
        """
        assert cue.vector is not None
        mdp, index = self.models.mdp_of(asker), self.models.index
        region, scores = None, list[tuple[str, float]]()
        if mdp is not None and len(mdp) and len(index):
            region = mdp.assign(cue.vector)
            scores = mdp.best_action(region, cue.task_type)
        context = self._context(asker, cue, region, dict(scores))
        plain = _BY_SIMILARITY if self.edge_boost is None else _BY_EDGES
        scorer, mark = self.models.scorer_of(asker).scorer or plain, self._mark(distinct)
        wanted = k * self.pool
        while True:
            n, found = self._search(cue.vector, wanted, where)
            doubted = replace(context, doubted=self._doubted(found))
            hits = scorer.rank(found, doubted, k, distinct=mark)
            if len(hits) >= k or n < wanted or wanted >= _MOST_CANDIDATES:
                return hits, scores, region
            wanted *= 4

    def _search(self, vector: Vector, n: int, where: Filter) -> tuple[int, list[Hit]]:
        """Return how much was found, and what of it was not put away.

        In the index what was put away is like failures, which may be asked for.
        """
        index, context = self.models.index, self.temporal_context
        make, away = self.models.history.hit, self.models.history.away
        if self.edge_boost is not None:
            linked = index.graph_search(vector, n, self.edge_boost, where=where)
            hits = []
            for hit in linked:
                # What was put away leads nowhere.
                cut = any(edge.from_node in away or edge.to_node in away for edge in hit.path)
                way = () if cut else (hit.path, hit.score - hit.similarity)
                if hit.node not in away:
                    hits.append(make(hit.node, hit.distance, context, *way))
            return len(linked), hits
        ids, distances = index.search(vector, n, where=where)
        return len(ids), [
            make(node, distance, context)
            for node, distance in zip(ids.tolist(), distances.tolist(), strict=True)
            if node not in away
        ]

    def _context(
        self,
        asker: str,
        cue: Cue,
        region: int | None,
        action_scores: dict[str, float],
    ) -> ScoringContext:
        models, task = self.models, cue.task_type
        mdp, usage = models.mdp_of(asker), models.usage_of(asker)
        rules = models.rules

        def action_success(hit: Hit) -> float:
            if hit.action is None or mdp is None or region is None:
                return 0.5
            kind = rules.action_type(hit.action)
            known = action_scores.get(kind)
            if known is None:
                known = mdp.success(region, kind, task)
                action_scores[kind] = known = 0.5 if known is None else known
            return known

        @cache
        def told(tracker: UsageTracker) -> UsageTracker:
            return tracker.within(reads(asker, models.also), models.distrusted)

        return ScoringContext(
            now=cue.timestamp,
            region=region,
            task_type=task,
            region_of=lambda hit: None if mdp is None else mdp.region_of(hit.node),
            task_of=lambda hit: models.history.task_type(hit.node),
            usage_of=lambda hit: (
                0.5 if usage is None else usage.success(rules.usage_key(hit, task))
            ),
            action_success=action_success,
            age_unit=self.age_unit,
            told=told,
        )

    def _doubted(self, hits: list[Hit]) -> dict[int, float]:
        """Return the trust in hits whose sources are not fully trusted, by node."""
        found = {
            hit.node: hit.event.trust
            for hit in hits
            if hit.event is not None and hit.event.trust < 1.0
        }
        # What was not recorded as a step of an episode.
        others = [hit.node for hit in hits if hit.event is None]
        return {**found, **self.models.record.doubted(others)} if others else found

    def _mark(self, distinct: Distinct | None) -> Callable[[Hit], Hashable] | None:
        if distinct is None:
            return None
        if distinct == "entity":
            return lambda hit: hit.entity_id

        def episode_of(hit: Hit) -> Hashable:
            """Nodes of no known episode are told apart by their entity."""
            episode = self.models.history.episode(hit.node)
            return ("entity", hit.entity_id) if episode is None else ("from", episode.steps[0].node)

        return episode_of

    def expected_success(
        self, decision: Decision, action: str | None, followed: Sequence[int]
    ) -> float | None:
        """Return the chance of success of the episode, given what is done on a decision.

        Of advice that is followed, what the learned weights expect of its features, the mean where
        several hits gave it; else what the region MDP expects of this kind of action where the cue
        lies. None where nothing was learned that says anything.

        Parameters
        ----------
        decision : Decision
            With its hits and their factors.
        action : str or None
            What is done.
        followed : sequence of int
            Nodes of the hits whose advice that is.
        """
        weights = self.models.scorer_of(decision.namespace).weights
        mdp, region = self.models.mdp_of(decision.namespace), decision.region
        if weights is not None and weights.samples and followed:
            rows = [
                features_of(hit, weights.names) for hit in decision.hits if hit.node in followed
            ]
            return float(np.mean(weights.predict(rows)))
        if action is None or mdp is None or region is None or not mdp.knows(region):
            return None
        kind = self.models.rules.action_type(action)
        return mdp.success(region, kind, decision.cue.task_type)


_BY_SIMILARITY = Scorer({"similarity": 1.0}, features={"similarity": lambda hit, _: hit.similarity})
_BY_EDGES = Scorer(
    {"similarity": 1.0, "edge_bonus": 1.0},
    features={"similarity": lambda hit, _: hit.similarity, "edge_bonus": edge_bonus},
)
