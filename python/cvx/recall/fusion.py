"""From what the sources and signals know to values that can be weighed against each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from cvx.errors import InvalidInputError
from cvx.recall.candidates import Candidates, Column
from cvx.scoring.columns import scale, stretched

Scale: TypeAlias = Literal["min-max", "max", "none"]
Fusion: TypeAlias = Callable[[Candidates, Collection[str]], Mapping[str, Column]]
"""From a table and the names that weigh anything to the columns that are weighed."""

RRF_CONSTANT = 60.0


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
    rankings: Mapping[str, Sequence[int]], *, constant: float = RRF_CONSTANT
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
    _check(constant)
    parts: dict[int, list[tuple[str, float]]] = {}
    for name, items in rankings.items():
        for place, item in enumerate(items, start=1):
            parts.setdefault(item, []).append((name, 1.0 / (constant + place)))
    fused = [Fused(item, sum(p for _, p in own), tuple(own)) for item, own in parts.items()]
    return sorted(fused, key=lambda one: (-one.score, one.item))


def by_rank(*, constant: float = RRF_CONSTANT) -> Fusion:
    """Fuse by reciprocal rank: each source's column is 1 / (constant + place), 0 where it is not.

    With weights of 1 the score is that of `reciprocal_rank_fusion`.
    """
    _check(constant)
    return partial(ranks_fused, constant=constant)


def ranks_fused(table: Candidates, names: Collection[str], *, constant: float) -> dict[str, Column]:
    """Compute the columns of `by_rank`."""
    return {
        name: np.nan_to_num(1.0 / (constant + table[f"{name}.rank"]), nan=0.0)
        for name in names
        if f"{name}.rank" in table
    }


def by_scale(
    scales: Mapping[str, Scale] | None = None,
    default: Scale = "min-max",
    *,
    constant: float = RRF_CONSTANT,
) -> Fusion:
    """Fuse by values: every column that weighs anything, brought to a common range within the pool.

    A source that has no column of values counts by its places.

    Parameters
    ----------
    scales : mapping of str to {"min-max", "max", "none"}, optional
        By column.
    default : {"min-max", "max", "none"}, default "min-max"
        For the columns that ``scales`` does not name.
    constant : float, default 60.0
        As for `by_rank`.
    """
    _check(constant)
    return partial(values_fused, scales=dict(scales or {}), default=default, constant=constant)


def values_fused(
    table: Candidates,
    names: Collection[str],
    *,
    scales: Mapping[str, Scale],
    default: Scale,
    constant: float,
) -> dict[str, Column]:
    """Compute the columns of `by_scale`."""
    how = {name: scales.get(name, default) for name in names}
    out = stretched({n: table[n] for n in names if n in table and how[n] == "min-max"})
    for name in names:
        if name in out:
            continue
        if name in table:
            out[name] = scale(table[name], how[name])
        elif f"{name}.rank" in table:
            # A source of the user has no value that could be compared: its first place is 1.
            places = table[f"{name}.rank"]
            out[name] = np.nan_to_num((constant + 1.0) / (constant + places), nan=0.0)
    return out


def _check(constant: float) -> None:
    if not constant > 0:
        raise InvalidInputError(f"constant is {constant}: give one above 0")
