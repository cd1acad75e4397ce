"""Which typed edges a loop makes, and what recall gets out of walking them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from cvx.errors import InvalidParameterError
from cvx.scoring import ScoringContext
from cvx.types import Edge, Episode, Hit

if TYPE_CHECKING:
    from cvx.active.parts import Parts

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
    InvalidParameterError
        A kind that ``close`` does not make.
    """
    if isinstance(chosen, bool):
        return OUTCOME_EDGES if chosen else frozenset()
    kinds = frozenset([chosen] if isinstance(chosen, str) else chosen)
    strange = sorted(kinds - ALL_EDGES)
    if strange:
        raise InvalidParameterError(
            f"edges of the kind {strange[0]!r} are not made by close: choose from "
            f"{', '.join(sorted(ALL_EDGES))}; link_regions and link_granger make others"
        )
    return kinds


def edge_bonus(hit: Hit, context: ScoringContext) -> float:  # noqa: ARG001
    """Return what a graph search gave a hit for the edges that lead to it, in [0, 1].

    A feature for a scorer: 0 for what was found by similarity alone.
    """
    return min(max(hit.score - hit.similarity, 0.0), 1.0)


def same_action_edges(memory: Parts, episode: Episode) -> list[Edge]:
    """Return an edge to each step from the newest one elsewhere that did the same kind of thing.

    Elsewhere is another episode, and the place must be the same region; the weight is the cosine
    of the two vectors, and there is no edge where that is not above 0.

    Parameters
    ----------
    memory : ActiveMemory
        Whose region model has learned the steps already.
    episode : Episode
        Its steps have their nodes; elsewhere is where its namespace may read.
    """
    mdp = memory.mdp_of(episode.namespace)
    if mdp is None:
        return []
    own = {step.node for step in episode.steps}
    edges = []
    for step in episode.steps:
        if step.node is None or step.vector is None:
            continue
        other = next((node for node in mdp.like(step.node) if node not in own), None)
        if other is None or other not in memory.index:
            continue
        there = memory.index.vector(other)
        if there is None:
            continue
        norms = float(np.linalg.norm(there) * np.linalg.norm(step.vector))
        weight = float(there @ step.vector) / norms if norms else 0.0
        if weight > 0.0:
            why = f"both {memory.action_type(step.action or '')}"
            edges.append(Edge(other, step.node, "same_action_type", min(weight, 1.0), why))
    return edges
