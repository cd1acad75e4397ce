"""Recounts episodes when the regions of the index change (a new epoch)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from cvx.arguments import among, number
from cvx.errors import StaleRegionsError
from cvx.index import RawIndex
from cvx.learn.region_mdp.counts import Reading, RegionCounts
from cvx.learn.region_mdp.trajectories import (
    EpisodeLike,
    Trajectory,
    default_level,
    read_trajectory,
    vector_of,
)

# A slice is bounded by work, never by time, so that two runs are alike (rfc 0016). The bounds were
# set by hand, for closes within 20 ms at 10,000 events.
_COMPARISONS = 300_000
"""Distances to hubs in a slice, but for the steps that ``pace`` asks for."""
_MOST_STEPS = 120
"""Steps in a slice where hubs are few, but for those that ``pace`` asks for."""
_FREED = 10_000
"""Entries of retired counts that an update lets go of: all at once take as long as a slice."""


class Epochs:
    """Counts of the epoch that answers are about, and of the next one while it is counted.

    Parameters
    ----------
    index : RawIndex
        Whose regions are counted by.
    level : int, optional
        As for ``RegionMDP``.
    reading : Reading
        How episodes are read.
    on_stale : {"relearn", "gradual", "error"}
        What happens when the index has moved to another epoch, see ``RegionMDP``.
    pace : float
        With "gradual", how many remembered steps are placed anew for each new one.

    Attributes
    ----------
    now : RegionCounts
        Behind the answers.
    away : set of int
        Nodes of steps that are not counted.
    """

    def __init__(
        self,
        index: RawIndex,
        level: int | None,
        reading: Reading,
        on_stale: Literal["relearn", "gradual", "error"],
        pace: float,
    ) -> None:
        self.index = index
        self.level = level
        self.reading = reading
        self.on_stale = among("relearn", "gradual", "error")("on_stale", on_stale)
        # At 1 the steps to be placed anew would grow as fast as they are placed.
        self.pace = number(2.0)("pace", pace)
        self.away: set[int] = set()
        self.now = self.blank()
        # Of the epoch in force, while episodes are placed anew; of the one before, while it goes.
        self._next: RegionCounts | None = None
        self._retired: RegionCounts | None = None

    @property
    def behind(self) -> int:
        """How many episodes are yet to be placed in the regions of the index's epoch."""
        if self.now.current:
            return 0
        coming = self._next
        begun = len(coming.trajectories) if coming is not None and coming.current else 0
        return len(self.now.trajectories) - begun

    def leave_out(self, nodes: Iterable[int]) -> None:
        """Count these steps no more, nor what was done there."""
        self._recount(set(nodes) - self.away)

    def take_back(self, nodes: Iterable[int]) -> None:
        """Count steps again that were left out."""
        self._recount(set(nodes) & self.away)

    def _recount(self, nodes: set[int]) -> None:
        self.away ^= nodes
        for counts in (self.now, self._next):
            if counts is not None and nodes:
                counts.recount(nodes)

    def blank(self, away: Iterable[int] | None = None) -> RegionCounts:
        """Return empty counts of the present regions, which leave out these nodes.

        By default those that are left out so far, and whatever is from now on.
        """
        wanted, levels = self.level, self.index.region_levels
        level = (
            default_level(self.index)
            if wanted is None
            else max((at for at in levels if at <= wanted), default=0)
        )
        out = self.away if away is None else set(away)
        return RegionCounts(self.index, level, self.reading, out)

    def turn_to(self, counts: RegionCounts) -> None:
        """Answer from other counts, and leave out what they do."""
        self.now, self._next, self.away = counts, None, counts.away

    def fresh(self) -> RegionCounts:
        """Return the counts to answer from: learned anew where they have to be.

        Raises
        ------
        StaleRegionsError
            See ``on_stale`` of ``RegionMDP``.
        """
        counts, index = self.now, self.index
        gone = index.deletions - counts.deletions if self.on_stale != "gradual" else 0
        if counts.current and not gone:
            return counts
        if not counts.trajectories:
            self.now, self._next = self.blank(), None
        elif self.on_stale == "error":
            raise StaleRegionsError(
                f"learned on regions of epoch {counts.epoch}, the index is at "
                f"{index.region_epoch}, and {gone} nodes were deleted since: call relearn()"
            )
        elif self.on_stale == "relearn" or counts.level not in index.region_levels:
            self.relearn()
        return self.now

    def relearn(self) -> None:
        """Learn all remembered episodes again on the present regions; deleted nodes drop out."""
        counts = self.blank()
        for trajectory in self.now.trajectories:
            self._place(trajectory, counts)
        self.now, self._next = counts, None

    def _place(self, trajectory: Trajectory, counts: RegionCounts) -> None:
        vectors = [vector_of(self.index, node) for node in trajectory.nodes]
        counts.add(trajectory.placed(counts.locate(trajectory.nodes, vectors)))

    def learn(self, episodes: Iterable[EpisodeLike]) -> None:
        """Add episodes to the counts, all in the regions in force."""
        if not self.fresh().current:
            self.relearn()
        for episode in episodes:
            self._read(episode)

    def _read(self, episode: EpisodeLike) -> None:
        # Each step is compared with the hubs: what else is in the index costs nothing.
        classify = self.reading.classify
        self.now.add(read_trajectory(self.index, episode, classify, self.now.locate))

    def update(self, episode: EpisodeLike) -> None:
        """Add one episode, and place some of the remembered ones in the regions in force."""
        counts = self.fresh()
        hubs = len((self._next or counts).hubs)
        new = math.ceil(self.pace * len(getattr(episode, "steps", ())))
        self._relearn_some(max(new, min(_MOST_STEPS, _COMPARISONS // max(hubs, 1))))
        self._read(episode)

    def _relearn_some(self, steps: int) -> None:
        """Place about so many steps more in the regions in force; turn to them when all are."""
        if self._retired is not None and not self._retired.forget(_FREED):
            self._retired = None
        if self.now.current:
            return
        if self._next is None or not self._next.current:
            self._next = self.blank()
        coming, trajectories = self._next, self.now.trajectories
        while steps > 0 and len(coming.trajectories) < len(trajectories):
            trajectory = trajectories[len(coming.trajectories)]
            self._place(trajectory, coming)
            steps -= max(len(trajectory.nodes), 1)
        if len(coming.trajectories) == len(trajectories):
            self.now, self._next, self._retired = coming, None, self.now
