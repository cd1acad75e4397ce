"""Regions: the cells of the vector space around the hubs of an HNSW level."""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt

from cvx._cvx import NativeIndex
from cvx.types import DEFAULT_NAMESPACE, IntArray

FloatArray = npt.NDArray[np.float64]


class Regions:
    """The part of the index that cuts the space into regions.

    Regions are a snapshot with an epoch: what is inserted later is assigned to the hubs of the
    epoch, and becomes a hub in the next one at the earliest. An epoch ends when the number of
    vectors has doubled, a hub is deleted, the centre changes, or `refresh_regions` is called.
    """

    _native: NativeIndex
    _epochs = 0

    @property
    def region_levels(self) -> tuple[int, ...]:
        """The levels that have regions, finest first; at level 0 every node is its own region."""
        return tuple(self._native.region_levels())

    @property
    def region_epoch(self) -> int:
        """Which snapshot of the hubs is in force; it grows with every new one."""
        return self._native.region_epoch() + self._epochs

    def refresh_regions(self) -> None:
        """Begin a new epoch with the hubs of now."""
        self._native.refresh_regions()

    def regions(self, level: int) -> IntArray:
        """List the regions of a level.

        Parameters
        ----------
        level : int
            One of `region_levels`.

        Returns
        -------
        ndarray of shape (regions,), int64
            Each region's id, which is the node id of its hub, ascending.

        Raises
        ------
        UnknownLevelError
            A level without regions.

        Examples
        --------
        >>> from cvx.index import TemporalIndex
        >>> ix = TemporalIndex(dim=2)
        >>> nodes = ix.bulk_insert([1, 2], [10, 10], [[1, 0], [0, 1]])
        >>> ix.refresh_regions()
        >>> ix.regions(0)
        array([0, 1])
        """
        return self._native.regions(level)

    def region_members(self, region: int, level: int) -> IntArray:
        """List the nodes of a region.

        Returns
        -------
        ndarray of shape (members,), int64
            Node ids, ascending.

        Raises
        ------
        UnknownLevelError, UnknownRegionError
            A level without regions, a node that is no hub of the level.
        """
        return self._native.region_members(region, level)

    @overload
    def assign_region(self, vectors: list[float] | tuple[float, ...], level: int) -> int: ...
    @overload
    def assign_region(self, vectors: npt.ArrayLike, level: int) -> int | IntArray: ...
    def assign_region(self, vectors: npt.ArrayLike, level: int) -> int | IntArray:
        """Find the region that a vector lies in.

        Parameters
        ----------
        vectors : array_like of shape (dim,) or (n, dim)
            One or several.
        level : int
            One of `region_levels`.

        Returns
        -------
        int, or ndarray of shape (n,), int64
            The region with the nearest hub.

        Raises
        ------
        UnknownLevelError
            A level without regions.
        DimensionError, NonFiniteVectorError, ZeroVectorError, InvalidVectorError
            A vector that cannot be compared.
        """
        return self._native.assign_region(vectors, level)

    def region_assignments(self, level: int) -> tuple[IntArray, IntArray]:
        """Give every node with a vector its region.

        Returns
        -------
        nodes : ndarray of shape (n,), int64
            Node ids, ascending.
        regions : ndarray of shape (n,), int64
            The region of each.

        Raises
        ------
        UnknownLevelError
            A level without regions.
        """
        return self._native.region_assignments(level)

    def region_trajectory(
        self,
        entity_id: int,
        level: int,
        window: int,
        alpha: float,
        *,
        namespace: str | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Watch an entity move through the regions.

        The time from its first event to its last is cut into windows; p_w are the shares of the
        regions among its events in window w, and ``s_w = alpha * p_w + (1 - alpha) * s_(w-1)``.

        Parameters
        ----------
        entity_id : int
            Who.
        level : int
            One of `region_levels`.
        window : int
            Length of a window in units of time, at least 1.
        alpha : float
            Weight of the present window, in (0, 1]; 1 does not smooth.
        namespace : str, optional
            Whose memory; ``None`` is the default one.

        Returns
        -------
        centres : ndarray of shape (w,), float64
            The middle of each window, in units of time.
        shares : ndarray of shape (w, regions), float64
            Smoothed shares, with the columns of `regions`.

        Raises
        ------
        UnknownEntityError, UnknownLevelError, InvalidParameterError
            An entity or level that does not exist; window or alpha outside their range.
        """
        space = DEFAULT_NAMESPACE if namespace is None else namespace
        return self._native.region_trajectory(space, entity_id, level, window, alpha)
