"""Vectors laid out in a plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cvx.types import Vector


def flattened(
    vectors: Sequence[Vector | None],
) -> tuple[list[tuple[float, float]], float]:
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
