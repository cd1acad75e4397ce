"""A causal graph for networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cvx.errors import MissingExtraError

if TYPE_CHECKING:
    from cvx.causal.graph import CausalGraph


def to_networkx(graph: CausalGraph) -> Any:
    """Return a copy as a directed graph; see ``CausalGraph.to_networkx``."""
    try:
        import networkx as nx  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError(f"{error}: pip install 'cvx[causal]'") from error
    copy = nx.DiGraph()
    names = []
    for event in graph:
        copy.add_node(
            event.id,
            text=event.text,
            tick=event.tick,
            kind=event.kind,
            institution_id=event.institution_id,
        )
        names.append(event.id)
    for link in graph.ground.links(names, backward=False):
        known = copy.edges.get((link.cause, link.effect), {}).get("weight", -1.0)
        if link.weight > known:
            copy.add_edge(link.cause, link.effect, weight=link.weight, kind=link.kind, why=link.why)
    return copy
