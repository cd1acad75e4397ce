"""From a cue to ranked hits: the reading half of the loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from cvx.active.edges import edge_bonus
from cvx.embed import embed_query
from cvx.learn.episodes import OpenEpisode
from cvx.learn.region_mdp import RegionMDP
from cvx.scoring import Scorer, ScoringContext, UsageTracker
from cvx.scoring.scorer import HOUR_US
from cvx.store.spaces import reads
from cvx.types import Cue, Filter, Hit, Vector

if TYPE_CHECKING:
    from cvx.active.parts import Parts

Distinct: TypeAlias = Literal["episode", "entity"]
"""Of what only the best hit counts."""

_MOST_CANDIDATES = 4096
"""A search that was widened to so many is not widened again."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What memory has to say about a cue.

    Parameters
    ----------
    hits : list of Hit
        Best first.
    action_scores : list of (str, float)
        Kinds of action with their chance of success, best first.
    region : int, optional
        Where the cue lies, once anything was learned.
    """

    hits: list[Hit]
    action_scores: list[tuple[str, float]]
    region: int | None


def locate(memory: Parts, cue: Cue, run: OpenEpisode | None) -> Cue:
    """Return the cue with everything that the running episode tells, and with its vector."""
    task, goal, place, time = cue.task_type, cue.goal, cue.place, cue.time
    if run is not None:
        task = run.task_type if task is None else task
        goal = goal or run.goal
        place = len(run.steps) if place is None else place
    time = memory.recorder.time() if time is None else time
    full = replace(cue, task_type=task, goal=goal, place=place, time=time)
    vector = embed_query(memory.embedder, full.words()) if cue.vector is None else cue.vector
    return replace(full, vector=memory.checked(vector))


def advise(
    memory: Parts,
    cue: Cue,
    where: Filter,
    k: int,
    *,
    asker: str,
    distinct: Distinct | None,
    run: OpenEpisode | None,
) -> Advice:
    """Search, score and rank.

    Parameters
    ----------
    memory : ActiveMemory
        Whose parts are used.
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
    run : OpenEpisode, optional
        The episode it is for: what was done in it so far is its phase.
    """
    assert cue.vector is not None
    mdp = memory.mdp_of(asker)
    phase = (
        None
        if run is None or mdp is None or not memory.phase
        else mdp.phase(step.action for step in run.steps)
    )
    region, action_scores = _actions(memory, mdp, cue, phase)
    context = _context(memory, asker, cue, region, dict(action_scores), phase)
    wanted = k * memory.pool
    while True:
        n, found = _search(memory, cue.vector, wanted, where)
        hits = _ranked(memory, asker, found, context, k, distinct)
        if len(hits) >= k or n < wanted or wanted >= _MOST_CANDIDATES:
            return Advice(hits, action_scores, region)
        wanted *= 4


def _actions(
    memory: Parts, mdp: RegionMDP | None, cue: Cue, phase: str | None
) -> tuple[int | None, list[tuple[str, float]]]:
    if mdp is None or cue.vector is None or not len(mdp) or not len(memory.index):
        return None, []
    region = mdp.assign(cue.vector)
    return region, mdp.best_action(region, cue.task_type, phase)


def _search(memory: Parts, vector: Vector, n: int, where: Filter) -> tuple[int, list[Hit]]:
    """Return how much was found, and what of it was not put away.

    In the index what was put away is like failures, which may be asked for.
    """
    make, context, away = memory.history.hit, memory.temporal_context, memory.history.away
    if memory.edge_boost is not None:
        linked = memory.index.graph_search(vector, n, memory.edge_boost, where=where)
        hits = []
        for hit in linked:
            if hit.node in away:
                continue
            if any(edge.from_node in away or edge.to_node in away for edge in hit.path):
                # What was put away leads nowhere.
                hits.append(make(hit.node, hit.distance, context))
            else:
                bonus = hit.score - hit.similarity
                hits.append(make(hit.node, hit.distance, context, hit.path, bonus))
        return len(linked), hits
    ids, distances = memory.index.search(vector, n, where=where)
    return len(ids), [
        make(node, distance, context)
        for node, distance in zip(ids.tolist(), distances.tolist(), strict=True)
        if node not in away
    ]


def _context(
    memory: Parts,
    asker: str,
    cue: Cue,
    region: int | None,
    action_scores: dict[str, float],
    phase: str | None,
) -> ScoringContext:
    mdp, usage, task = memory.mdp_of(asker), memory.usage_of(asker), cue.task_type
    action_type, key = memory.action_type, memory.usage_key

    def region_of(hit: Hit) -> int | None:
        return None if mdp is None else mdp.region_of(hit.node)

    def task_of(hit: Hit) -> str | None:
        return memory.history.task_type(hit.node)

    def usage_of(hit: Hit) -> float:
        return 0.5 if usage is None else usage.success(key(hit, task))

    def action_success(hit: Hit) -> float:
        if hit.action is None or mdp is None or region is None:
            return 0.5
        kind = action_type(hit.action)
        known = action_scores.get(kind)
        if known is None:
            known = mdp.success(region, kind, task, phase)
            action_scores[kind] = known = 0.5 if known is None else known
        return known

    @cache
    def told(tracker: UsageTracker) -> UsageTracker:
        return tracker.within(reads(asker, memory.also), memory.distrusted)

    unit = 1.0 if memory.clock is None else HOUR_US
    return ScoringContext(
        cue.time, region, task, region_of, task_of, usage_of, action_success, unit, told
    )


def _ranked(
    memory: Parts,
    asker: str,
    hits: list[Hit],
    context: ScoringContext,
    k: int,
    distinct: Distinct | None,
) -> list[Hit]:
    key = _mark(memory, distinct)
    context = replace(context, doubted=_doubted(memory, hits))
    scorer = memory.weighing(asker).scorer
    if scorer is not None:
        return scorer.rank(hits, context, k, distinct=key)
    if memory.edge_boost is not None:
        return _BY_EDGES.rank(hits, context, k, distinct=key)
    return _BY_SIMILARITY.rank(hits, context, k, distinct=key)


def _doubted(memory: Parts, hits: list[Hit]) -> dict[int, float]:
    """Return the trust in hits whose sources are not fully trusted, by node."""
    found = {
        hit.node: hit.event.trust for hit in hits if hit.event is not None and hit.event.trust < 1.0
    }
    # What was not recorded as a step of an episode.
    others = [hit.node for hit in hits if hit.event is None]
    return {**found, **memory.record.doubted(others)} if others else found


def _mark(memory: Parts, distinct: Distinct | None) -> Callable[[Hit], Hashable] | None:
    if distinct is None:
        return None
    if distinct == "entity":
        return lambda hit: hit.entity_id

    def episode_of(hit: Hit) -> Hashable:
        """Nodes of no known episode are told apart by their entity."""
        episode = memory.history.episode(hit.node)
        return ("entity", hit.entity_id) if episode is None else ("from", episode.steps[0].node)

    return episode_of


def _plain_similarity(hit: Hit, context: ScoringContext) -> float:  # noqa: ARG001
    return hit.similarity


_BY_SIMILARITY = Scorer({"similarity": 1.0}, features={"similarity": _plain_similarity})
_BY_EDGES = Scorer(
    {"similarity": 1.0, "edge_bonus": 1.0},
    features={"similarity": _plain_similarity, "edge_bonus": edge_bonus},
)
