"""Typed edges learned from episodes: outcome, same action, region moves, Granger's test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from cvx.arguments import checked, whole
from cvx.causal.evidence import binned, granger
from cvx.errors import InvalidInputError
from cvx.scoring import ScoringContext
from cvx.store.namespaces import least_visible, owner, readers, reads
from cvx.types import Edge, Episode, Hit

if TYPE_CHECKING:
    from cvx.index import RawIndex
    from cvx.learn.model_sync import LearnedModels

REGION = "region_transition"
OUTCOME_EDGES = frozenset({"caused_success", "caused_failure", "irrelevant"})
"""What an outcome says of the advice that was recalled for it."""

ALL_EDGES = OUTCOME_EDGES | {"same_action_type"}
"""Everything that ``close`` can link; the kinds that need many episodes have calls of their own."""

HELPFUL: Mapping[str, float] = MappingProxyType({"caused_success": 0.3, "same_action_type": 0.1})
"""Boosts for ``edge_boost``: towards what advice led to success, and what others did there."""


def edge_kinds(chosen: bool | Iterable[str]) -> frozenset[str]:
    """Return the kinds of edges that a loop is to make.

    Parameters
    ----------
    chosen : bool or iterable of str
        All that outcomes give, none, or these of ``ALL_EDGES``.

    Raises
    ------
    InvalidInputError
        A kind that ``close`` does not make.
    """
    if isinstance(chosen, bool):
        return OUTCOME_EDGES if chosen else frozenset()
    kinds = frozenset([chosen] if isinstance(chosen, str) else chosen)
    strange = sorted(kinds - ALL_EDGES)
    if strange:
        raise InvalidInputError(
            f"edges of the kind {strange[0]!r} are not made by close: choose from "
            f"{', '.join(sorted(ALL_EDGES))}; link_regions and link_granger make others"
        )
    return kinds


def edge_bonus(hit: Hit, context: ScoringContext) -> float:  # noqa: ARG001
    """Return what a graph search gave a hit for the edges that lead to it, in [0, 1].

    A feature for a scorer: 0 for what was found by similarity alone.
    """
    return min(max(hit.score - hit.similarity, 0.0), 1.0)


def same_action_edges(models: LearnedModels, episode: Episode) -> list[Edge]:
    """Return an edge to each step from the newest one elsewhere that did the same kind of thing.

    Elsewhere is another episode, and the place must be the same region; the weight is the cosine
    of the two vectors, and there is no edge where that is not above 0.

    Parameters
    ----------
    models : LearnedModels
        Whose region model has not learned the episode yet.
    episode : Episode
        Its steps have their nodes; elsewhere is where its namespace may read.
    """
    mdp, index = models.mdp_of(episode.namespace), models.index
    if mdp is None or not len(mdp):
        return []
    edges = []
    for step in episode.steps:
        if step.node is None or step.vector is None or step.action is None:
            continue
        kind = models.rules.action_type(step.action)
        other = next(mdp.doers(mdp.assign(step.vector), kind), None)
        there = index.vector(other) if other is not None and other in index else None
        if other is None or there is None:
            continue
        norms = float(np.linalg.norm(there) * np.linalg.norm(step.vector))
        weight = float(there @ step.vector) / norms if norms else 0.0
        if weight > 0.0:
            why = f"both {kind}"
            edges.append(Edge(other, step.node, "same_action_type", min(weight, 1.0), why))
    return edges


def region_edges(models: LearnedModels, namespace: str, min_moves: int) -> list[Edge]:
    """Return edges between the regions among which episodes moved, as far as their readers know.

    Parameters
    ----------
    models : LearnedModels
        With the region model; without one there are none.
    namespace : str
        Whose hubs are linked, beside public ones.
    min_moves : int
        How often a move must have been made.
    """
    mdp, index = models.mdp, models.index
    if mdp is None:
        return []
    public, shared = (readers(namespace, one) for one in ("public", "shared"))
    audiences = {
        "private": reads(namespace, models.also),
        "shared": (shared, public),
        "public": (public,),
    }
    edges = []
    for audience, names in audiences.items():
        out: dict[int, Counter[int]] = {}
        for (region, _), counts in mdp.within(names).moves().items():
            out.setdefault(region, Counter()).update(counts)
        edges += [
            Edge(region, there, REGION, n / total, evidence=f"{n:g} of {total:g} moves")
            for region, counts in sorted(out.items())
            for total in [counts.total()]
            for there, n in sorted(counts.items())
            if there >= 0 and there != region and n >= min_moves
            if region in index and there in index
            if audience_of(index, namespace, region, there) == audience
        ]
    return edges


def audience_of(index: RawIndex, namespace: str, *hubs: int) -> str | None:
    """Return how visible an edge is: as its least visible end; None between others' hubs."""
    ends = [owner(index.namespace(hub)) for hub in hubs]
    if any(whose != namespace and seen != "public" for whose, seen in ends):
        return None
    return least_visible(seen for _, seen in ends)


@checked(width=whole(1), max_lag=whole(1))
def granger_edges(
    index: RawIndex,
    entities: Sequence[int],
    width: int,
    *,
    max_lag: int = 4,
    alpha: float = 0.05,
    namespace: str | None = None,
) -> list[Edge]:
    """Return an edge for each ordered pair of entities whose timelines pass Granger's test.

    A series counts an entity's steps in stretches of ``width``, over the time that all of them
    share. A pair whose series are too short, or never change, has no edge; nor has one whose p
    value, times the number of pairs (Bonferroni), is not below ``alpha``.

    Parameters
    ----------
    index : RawIndex
        Holds the timelines.
    entities : sequence of int
        At least two; the edge is from the first node of the one that leads to the first node of
        the one that follows.
    width : int
        Length of a stretch, in the unit of the timestamps; at least 1.
    max_lag : int, default 4
        How many stretches back.
    alpha : float, default 0.05
        In (0, 1].
    namespace : str, optional
        Whose memory.

    Raises
    ------
    InvalidInputError
        Fewer than two entities, one listed twice; a width or lag below 1, an alpha outside (0, 1].
    UnknownError
        One of them has no node there.
    MissingExtraError
        statsmodels is not installed (extra ``causal``).

    References
    ----------
    Granger 1969, Investigating Causal Relations by Econometric Models and Cross-spectral Methods.
    """
    if len(set(entities)) != len(entities) or len(entities) < 2:
        raise InvalidInputError(f"entities is {list(entities)}: give two or more, each once")
    if not 0.0 < alpha <= 1.0:
        raise InvalidInputError(f"alpha is {alpha}: give one above 0, at most 1")
    lines = {entity: index.trajectory(entity, namespace=namespace) for entity in entities}
    start = max(line[0].timestamp for line in lines.values())
    stop = min(line[-1].timestamp for line in lines.values()) + 1
    if stop - start <= width * (3 * max_lag + 1):
        return []
    series = {
        entity: binned([step.timestamp for step in line], start, stop, width)
        for entity, line in lines.items()
    }
    testable = [entity for entity in entities if len(set(series[entity].tolist())) > 1]
    pairs = list(permutations(testable, 2))
    edges = []
    for leads, follows in pairs:
        test = granger(series[leads], series[follows], max_lag)
        p = min(1.0, test.p * len(pairs))
        if p < alpha:
            note = f"p = {p:.2g} at lag {test.lag} x {width}, {len(pairs)} pairs tested"
            ends = lines[leads][0].node_id, lines[follows][0].node_id
            edges.append(Edge(*ends, "granger_causal", 1.0 - p, evidence=note))
    return edges
