"""From a cue to ranked hits: the reading half of the loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cvx.episodes import OpenEpisode
from cvx.scoring import ScoringContext
from cvx.types import Cue, Factor, Filter, Hit, Vector

if TYPE_CHECKING:
    from cvx.active.memory import ActiveMemory

_MOST_CANDIDATES = 4096


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


def locate(memory: ActiveMemory, cue: Cue, run: OpenEpisode | None) -> Cue:
    """Return the cue with everything that the running episode tells, and with its vector."""
    task, goal, place, time = cue.task_type, cue.goal, cue.place, cue.time
    if run is not None:
        task = run.task_type if task is None else task
        goal = goal or run.goal
        place = len(run.steps) if place is None else place
    time = memory.recorder.clock if time is None else time
    full = replace(cue, task_type=task, goal=goal, place=place, time=time)
    if full.vector is None:
        full = replace(full, vector=memory.embedder.embed([full.words()])[0])
    return full


def advise(
    memory: ActiveMemory, cue: Cue, where: Filter, k: int, distinct: str | None = None
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
    distinct : {"entity", None}
        Whether to keep only the best hit of each entity.
    """
    assert cue.vector is not None
    region, action_scores = _actions(memory, cue.vector, cue.task_type)
    context = _context(memory, cue, region, dict(action_scores))
    wanted = k * memory.pool
    while True:
        found = _search(memory, cue.vector, wanted, where)
        hits = _ranked(memory, found, context)
        if distinct == "entity":
            hits = _best_of_each_entity(hits)
        if len(hits) >= k or len(found) < wanted or wanted >= _MOST_CANDIDATES:
            return Advice(hits[:k], action_scores, region)
        wanted *= 4


def _actions(
    memory: ActiveMemory, vector: Vector, task_type: str | None
) -> tuple[int | None, list[tuple[str, float]]]:
    mdp = memory.mdp
    if mdp is None or not len(mdp) or not len(memory.index):
        return None, []
    region = mdp.assign(vector)
    return region, mdp.best_action(region, task_type)


def _search(memory: ActiveMemory, vector: Vector, n: int, where: Filter) -> list[Hit]:
    make, context = memory.history.hit, memory.temporal_context
    if memory.edge_boost is not None:
        found = memory.index.graph_search(vector, n, memory.edge_boost, where=where)
        return [make(hit.node, hit.distance, context, hit.path) for hit in found]
    ids, distances = memory.index.search(vector, n, where=where)
    return [
        make(node, distance, context)
        for node, distance in zip(ids.tolist(), distances.tolist(), strict=True)
    ]


def _context(
    memory: ActiveMemory, cue: Cue, region: int | None, action_scores: dict[str, float]
) -> ScoringContext:
    mdp, usage, task = memory.mdp, memory.usage, cue.task_type
    action_type, key = memory.action_type, memory.usage_key

    def region_of(hit: Hit) -> int | None:
        return None if mdp is None else mdp.region_of(hit.node)

    def task_of(hit: Hit) -> str | None:
        episode = memory.history.episode(hit.node)
        return None if episode is None else episode.task_type

    def usage_of(hit: Hit) -> float:
        return 0.5 if usage is None else usage.success(key(hit, task))

    def action_success(hit: Hit) -> float:
        if hit.action is None or mdp is None or region is None:
            return 0.5
        kind = action_type(hit.action)
        known = action_scores.get(kind)
        if known is None:
            known = mdp.success(region, kind, task)
            action_scores[kind] = known = 0.5 if known is None else known
        return known

    return ScoringContext(cue.time, region, task, region_of, task_of, usage_of, action_success)


def _ranked(memory: ActiveMemory, hits: list[Hit], context: ScoringContext) -> list[Hit]:
    if memory.scorer is not None:
        return memory.scorer.rank(hits, context)
    return [
        replace(hit, factors=(Factor("similarity", hit.similarity, 1.0, hit.similarity),))
        for hit in sorted(hits, key=lambda hit: (-hit.similarity, hit.node))
    ]


def _best_of_each_entity(hits: list[Hit]) -> list[Hit]:
    seen: set[int] = set()
    best: list[Hit] = []
    for hit in hits:
        if hit.entity_id not in seen:
            seen.add(hit.entity_id)
            best.append(hit)
    return best
