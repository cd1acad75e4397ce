"""Does one agent's activity help to foretell another's? Granger's test over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from cvx.causal.evidence import binned, granger
from cvx.errors import InvalidParameterError
from cvx.types import Edge

if TYPE_CHECKING:
    from cvx.index import TemporalIndex


def granger_edges(
    index: TemporalIndex,
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
    index : TemporalIndex
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
    InvalidParameterError
        Fewer than two entities, one listed twice; a width or lag below 1, an alpha outside (0, 1].
    UnknownEntityError
        One of them has no node there.
    MissingExtraError
        statsmodels is not installed (extra ``causal``).

    References
    ----------
    Granger 1969, Investigating Causal Relations by Econometric Models and Cross-spectral Methods.
    """
    if len(set(entities)) != len(entities) or len(entities) < 2:
        raise InvalidParameterError(f"entities is {list(entities)}: give two or more, each once")
    if width < 1 or max_lag < 1:
        raise InvalidParameterError(f"width {width}, max_lag {max_lag}: give at least 1")
    if not 0.0 < alpha <= 1.0:
        raise InvalidParameterError(f"alpha is {alpha}: give one above 0, at most 1")
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
