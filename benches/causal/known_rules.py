"""Published rules for ranking memories in a crisis, as baselines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx  # type: ignore[import-untyped]
import numpy as np

from benches.causal.generated_crises import NOW
from benches.causal.scenarios import Scenario
from cvx.causal.fusion import Ancestors, Blend, Candidates, additive, causal_boost, multiplicative
from cvx.recall.sources import RRF_CONSTANT

DECAY = 0.02
MAX_DEPTH = 6
TIED = 0.45


@dataclass(frozen=True)
class Given:
    """All that a rule may see: no roles, no number of gold memories.

    Attributes
    ----------
    candidates : Candidates
        The memories.
    ancestors : Ancestors
        What the graph reaches from the crisis, against the edges.
    unreached : Ancestors
        The other events of the crisis's institution before it, as fallback.
    scenario : Scenario
        For rules over the graph itself: vectors and edges.
    """

    candidates: Candidates
    ancestors: Ancestors
    unreached: Ancestors
    scenario: Scenario


Rule: TypeAlias = Callable[[Given], list[int]]


def given(scenario: Scenario) -> Given:
    """Take from a scenario what a rule may see."""
    plot = scenario.plot
    depths = _reached(plot.edges, plot.crisis)
    return Given(
        Candidates(
            vectors=scenario.memories,
            similarity=np.clip(scenario.memories @ scenario.question, 0, 1),
            recency=np.exp(-DECAY * (NOW - plot.memory_times)),
            importance=plot.importance / 10,
        ),
        _events(scenario, depths),
        _events(scenario, {at: 3 for at in plot.logged if at not in depths}),
        scenario,
    )


def _reached(edges: Iterable[tuple[int, int]], crisis: int) -> dict[int, int]:
    causes: dict[int, list[int]] = {}
    for cause, effect in edges:
        causes.setdefault(effect, []).append(cause)
    depths, queue = {crisis: 0}, deque([crisis])
    while queue:
        event = queue.popleft()
        for cause in causes.get(event, []):
            if cause not in depths and depths[event] < MAX_DEPTH:
                depths[cause] = depths[event] + 1
                queue.append(cause)
    del depths[crisis]
    return depths


def _events(scenario: Scenario, depths: dict[int, int]) -> Ancestors:
    places = list(depths)
    return Ancestors(
        vectors=scenario.events[places],
        depths=np.asarray(list(depths.values()), np.int64),
        weights=np.ones(len(places)),
        times=scenario.plot.event_times[places],
    )


def similarity(case: Given) -> list[int]:
    """Rank by similarity to the question: plain retrieval."""
    return [int(at) for at in np.argsort(-case.candidates.similarity, kind="stable")]


def tcmf(case: Given) -> list[int]:
    """Rank by the published product."""
    return [one.candidate for one in multiplicative(case.candidates, case.ancestors)]


def total(causal_boost: float) -> Rule:
    """Rank by the sum of episodic score and boost."""

    def rule(case: Given) -> list[int]:
        blend = Blend(causal_boost=causal_boost)
        return [one.candidate for one in additive(case.candidates, case.ancestors, blend)]

    return rule


def reciprocal_rank(case: Given) -> list[int]:
    """Join the places by episodic score and by causal boost."""
    boost, _ = causal_boost(case.candidates, case.ancestors)
    seen = case.candidates
    episodic = seen.similarity + seen.recency + seen.importance
    sums, places = np.zeros(len(boost)), np.arange(1, len(boost) + 1)
    for score in (episodic, boost):
        sums[np.argsort(-score, kind="stable")] += 1.0 / (RRF_CONSTANT + places)
    order: list[int] = np.argsort(-sums, kind="stable").tolist()
    return order


def pagerank(damping: float) -> Rule:
    """Rank by PageRank from the question and the crisis, over memories, events and causes."""

    def rule(case: Given) -> list[int]:
        scenario = case.scenario
        graph = nx.DiGraph()
        count = len(scenario.memories)
        graph.add_nodes_from(range(count))
        for cause, effect in scenario.plot.edges:
            graph.add_edge(("event", effect), ("event", cause), weight=1.0)
        cosines = scenario.events @ scenario.memories.T
        for event, memory in np.argwhere(cosines >= TIED).tolist():
            tie = float(cosines[event, memory])
            graph.add_edge(("event", event), memory, weight=tie)
            graph.add_edge(memory, ("event", event), weight=tie)
        asked = case.candidates.similarity.tolist()
        crisis = ("event", scenario.plot.crisis)
        graph.add_node(crisis)
        start: dict[object, float] = {crisis: sum(asked), **dict(enumerate(asked))}
        rank = nx.pagerank(graph, alpha=damping, personalization=start)
        return sorted(range(count), key=lambda at: -rank[at])

    return rule
