"""Lays out regions and vectors in a plane, for the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cvx.memory import Memory
from cvx.types import Vector

Place = tuple[float, float]

_REGIONS = 400
_POINTS = 1_500


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of one level of an index, and where they lie in a plane.

    Attributes
    ----------
    level : int
        Of the hubs.
    hubs : dict of int to (float, float)
        The place of each region, by the node of its hub.
    members : dict of int to list of int
        Its events.
    points : dict of int to (float, float)
        The place of each event; none where there are more than 1,500.
    share : float
        Of the variance that the plane shows.
    """

    level: int
    hubs: dict[int, Place]
    members: dict[int, list[int]]
    points: dict[int, Place]
    share: float


def regions_of(memory: Memory) -> Regions:
    """Return the regions of the finest level that has at most 400, laid out in a plane."""
    index = memory.index
    sizes = {level: len(index.regions(level)) for level in index.region_levels}
    few = [level for level, regions in sizes.items() if level and 1 < regions <= _REGIONS]
    if not few and sizes:
        few = [0 if sizes.get(0, _REGIONS + 1) <= _REGIONS else max(sizes)]
    if not few or not any(sizes.values()):
        return Regions(0, {}, {}, {}, 1.0)
    nodes, regions = index.region_assignments(few[0])
    owners = memory.record.events_of_nodes(nodes.tolist())
    members: dict[int, list[int]] = {}
    for node, region in zip(nodes.tolist(), regions.tolist(), strict=True):
        if node in owners:
            members.setdefault(region, []).append(owners[node])
    hubs = list(dict.fromkeys(regions.tolist()))
    drawn = nodes.tolist() if len(nodes) <= _POINTS else hubs
    places, share = flattened([index.vector(node) for node in drawn])
    at = dict(zip(drawn, places, strict=True))
    points = {owners[node]: at[node] for node in drawn if node in owners}
    few_points = points if len(nodes) <= _POINTS else {}
    return Regions(few[0], {hub: at[hub] for hub in hubs if hub in at}, members, few_points, share)


def flattened(
    vectors: Sequence[Vector | None],
) -> tuple[list[Place], float]:
    """Return where vectors lie along their two principal components.

    Crowded parts are stretched: half of a place is its order among the others, so that what lies
    far out does not press all others into one spot.

    Parameters
    ----------
    vectors : sequence of ndarray of shape (dim,), float32
        None lies in the middle.

    Returns
    -------
    list of (float, float)
        In [-1, 1], of the same sign in every run.
    float
        The share of their variance that the plane shows, in [0, 1].

    References
    ----------
    Pearson 1901, On lines and planes of closest fit to systems of points in space.

    Examples
    --------
    >>> places, share = flattened([np.array([1.0, 0.0]), np.array([-1.0, 0.0])])
    >>> places, share
    ([(1.0, 0.0), (-1.0, 0.0)], 1.0)
    """
    known = [one for one in vectors if one is not None]
    if not known:
        return [(0.0, 0.0)] * len(vectors), 1.0
    centre = np.mean(np.asarray(known, dtype=float), axis=0)
    rows = np.array([np.zeros_like(centre) if one is None else one - centre for one in vectors])
    _, lengths, axes = np.linalg.svd(rows, full_matrices=False)
    flat = np.zeros((len(rows), 2))
    plane = axes[:2]
    largest = np.take_along_axis(plane, np.abs(plane).argmax(axis=1, keepdims=True), axis=1)
    flat[:, : len(plane)] = rows @ (plane * np.where(largest < 0, -1.0, 1.0)).T
    every = float((lengths**2).sum())
    share = float((lengths[:2] ** 2).sum()) / every if every > 0 else 1.0
    return list(zip(*(_stretched(column).tolist() for column in flat.T), strict=True)), share


def _stretched(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values in [-1, 1], half by what they are and half by their order."""
    low, high = values.min(), values.max()
    # What is only rounding would fill the picture where all lie in one place.
    if high - low < 1e-6:
        return np.zeros(len(values))
    rounded, places = np.unique(values.round(9), return_inverse=True)
    ranks = places / max(len(rounded) - 1, 1)
    return np.asarray((values - low) / (high - low) + ranks - 1.0)
