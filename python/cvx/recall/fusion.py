"""One ranking out of several, from places alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cvx.errors import InvalidParameterError


class Fused(NamedTuple):
    """Something with its score over all rankings.

    Attributes
    ----------
    item : int
        What was ranked.
    score : float
        Higher is better.
    parts : tuple of (str, float)
        What each ranking contributed; they add up to the score.
    """

    item: int
    score: float
    parts: tuple[tuple[str, float], ...]


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[int]], *, constant: float = 60.0
) -> list[Fused]:
    """Join rankings by the sum of 1 / (constant + place).

    Parameters
    ----------
    rankings : mapping of str to sequence of int
        Best first; nothing twice within one.
    constant : float, default 60.0
        How little the first places count more than those after them; above 0.

    Returns
    -------
    list of Fused
        Best first, equals by their number.

    References
    ----------
    Cormack, Clarke & Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods.

    Examples
    --------
    >>> fused = reciprocal_rank_fusion({"dense": [7, 8], "lexical": [8, 9]})
    >>> [one.item for one in fused]
    [8, 7, 9]
    """
    if not constant > 0:
        raise InvalidParameterError(f"constant is {constant}: give one above 0")
    parts: dict[int, list[tuple[str, float]]] = {}
    for name, items in rankings.items():
        for place, item in enumerate(items, start=1):
            parts.setdefault(item, []).append((name, 1.0 / (constant + place)))
    fused = [Fused(item, sum(p for _, p in own), tuple(own)) for item, own in parts.items()]
    return sorted(fused, key=lambda one: (-one.score, one.item))
