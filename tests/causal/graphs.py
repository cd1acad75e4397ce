"""Random causal graphs, and the walk that tries every way."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

from cvx.causal import CausalGraph


class Drawn(NamedTuple):
    """A graph as the list it was made of."""

    nodes: int
    links: dict[tuple[int, int], float]


def drawn_graphs(most_nodes: int = 7) -> st.SearchStrategy[Drawn]:
    def linked(nodes: int) -> st.SearchStrategy[Drawn]:
        ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
        weights = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
        pairs = st.dictionaries(ends.filter(lambda pair: pair[0] != pair[1]), weights, max_size=14)
        return st.builds(Drawn, st.just(nodes), pairs)

    return st.integers(2, most_nodes).flatmap(linked)


def built(drawn: Drawn) -> CausalGraph:
    graph = CausalGraph()
    for node in range(drawn.nodes):
        graph.add_event(node, f"event {node}", 0)
    for (cause, effect), weight in drawn.links.items():
        graph.link(cause, effect, weight)
    return graph


def every_way(
    drawn: Drawn, start: int, max_depth: int, *, backward: bool = True
) -> dict[int, tuple[int, float]]:
    """Depth and weight of all that is reached, by trying every way without a repeated node."""
    onward: dict[int, list[int]] = {}
    for cause, effect in drawn.links:
        here, there = (effect, cause) if backward else (cause, effect)
        onward.setdefault(here, []).append(there)
    ways = [[start]]
    for _ in range(max_depth):
        ways += [
            [*way, there] for way in ways for there in onward.get(way[-1], []) if there not in way
        ]
    found: dict[int, tuple[int, float]] = {}
    for way in ways:
        if len(way) == 1:
            continue
        weight = 1.0
        for here, there in pairwise(way):
            weight *= drawn.links[(there, here) if backward else (here, there)]
        depth, best = found.get(way[-1], (len(way) - 1, weight))
        found[way[-1]] = (min(depth, len(way) - 1), max(best, weight))
    return found
