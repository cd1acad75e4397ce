"""Breadth-first walks over causal links, limited in depth and in number of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cvx.arguments import a_share, whole
from cvx.types import Edge, EventId

DEFAULT_DEPTH = 4
DEFAULT_NODES = 1_000
_bound = whole(1)


class Reached(NamedTuple):
    """An event that a walk has found.

    Attributes
    ----------
    id : str or int
        The event.
    depth : int
        Links on the shortest way to it.
    weight : float
        The product of the weights along the best way that is no longer than the walk may be.
    path : tuple of Edge
        That way, from the start on.
    """

    id: EventId
    depth: int
    weight: float
    path: tuple[Edge, ...]


class Walk(NamedTuple):
    """What a walk has found.

    Attributes
    ----------
    found : tuple of Reached
        Nearest first, of one depth the strongest first.
    truncated : bool
        Whether the budget of events cut it off: there is more.
    deeper : bool, default False
        Whether links lead on from where ``max_depth`` ended it: what lies deepest is no root.
    """

    found: tuple[Reached, ...]
    truncated: bool
    deeper: bool = False


def walk(
    start: EventId,
    links_of: Callable[[Sequence[EventId]], Iterable[Edge]],
    max_depth: int = DEFAULT_DEPTH,
    *,
    max_nodes: int = DEFAULT_NODES,
    backward: bool = True,
    min_weight: float = 0.0,
    factor: Callable[[Edge], float] | None = None,
) -> Walk:
    """Walk links layer by layer.

    The start is never found, whatever cycle leads back to it. Where the budget runs out within a
    layer, the strongest of it are kept. A way counts by the product of its weights, each times
    its ``factor``; since no weight is above 1, going round a cycle never pays.

    Parameters
    ----------
    start : str or int
        Where the walk begins.
    links_of : callable
        From the events of one layer to the links that lead on from them.
    max_depth : int, default 4
        Links away at the most, at least 1.
    max_nodes : int, default 1_000
        Events found at the most, at least 1.
    backward : bool, default True
        To causes; ``False``: to consequences.
    min_weight : float, default 0.0
        Weaker links are not walked; in [0, 1].
    factor : callable, optional
        What the weight of a link is multiplied with, in [0, 1].

    Returns
    -------
    Walk

    Raises
    ------
    InvalidInputError
        A bound below 1; a weight outside [0, 1].

    Examples
    --------
    >>> links = [
    ...     Edge("rain", "flood", weight=0.5),
    ...     Edge("flood", "mud", weight=0.5),
    ...     Edge("mud", "rain"),
    ... ]
    >>> def into(layer):
    ...     return [link for link in links if link.effect in layer]
    >>> [(r.id, r.depth, r.weight) for r in walk("mud", into).found]
    [('flood', 1, 0.5), ('rain', 2, 0.25)]
    """
    max_depth, max_nodes = _bound("max_depth", max_depth), _bound("max_nodes", max_nodes)
    min_weight = a_share("min_weight", min_weight)
    best: dict[EventId, Reached] = {}
    layer = {start: Reached(start, 0, 1.0, ())}
    truncated = False

    def onward(events: Iterable[EventId]) -> Iterator[tuple[EventId, EventId, Edge]]:
        for link in links_of(list(events)):
            ends = (link.effect, link.cause) if backward else (link.cause, link.effect)
            if ends[1] != start and link.weight >= min_weight:
                yield *ends, link

    for depth in range(1, max_depth + 1):
        following: dict[EventId, Reached] = {}
        for here, there, link in onward(layer):
            weight = layer[here].weight * link.weight * (1.0 if factor is None else factor(link))
            known = following.get(there) or best.get(there)
            if known is None or weight > known.weight:
                following[there] = Reached(there, depth, weight, (*layer[here].path, link))
        layer = {}
        for event, way in sorted(following.items(), key=lambda item: -item[1].weight):
            if event not in best and len(best) >= max_nodes:
                truncated = True
                continue
            shortest = best.get(event, way).depth
            best[event] = layer[event] = way._replace(depth=shortest)
        if not layer:
            break
    deeper = bool(layer) and any(there not in best for _, there, _ in onward(layer))
    found = sorted(best.values(), key=lambda reached: (reached.depth, -reached.weight))
    return Walk(tuple(found), truncated, deeper)
