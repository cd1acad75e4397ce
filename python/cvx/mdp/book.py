"""What episodes did in the regions of one epoch: the counts behind every answer."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cvx.mdp.counts import SuccessCounts
from cvx.mdp.trace import RegionIndex, Trace, locate_by_vector, vector_of
from cvx.types import Vector

ANYWHERE = -1

Cell: TypeAlias = tuple[int, int | None, str | None, *tuple[str | None, ...]]
"""Level, region, family of goals; then the kind of action, and the phase, where they count."""

Tally: TypeAlias = dict[tuple[str, ...], tuple[int, int]]
"""How often a sequence of kinds of action was tried, and how often it won."""

Phase: TypeAlias = Callable[[Sequence[str]], str]
"""From the kinds of action done so far in an episode to a word for where it stands."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How outcomes and places within episodes are read.

    Parameters
    ----------
    prior_strength : float
        How many episodes the more general estimate is worth.
    success_above : float
        A reward above it is a success.
    phase_of : callable
        Where in an episode a step stands.
    """

    prior_strength: float
    success_above: float
    phase_of: Phase


class Book:
    """The counts of one epoch of regions.

    Parameters
    ----------
    index : TemporalIndex
        Whose regions are the states.
    level : int
        Of the regions.
    reading : Reading
        How episodes are read.

    Attributes
    ----------
    epoch : int
        The epoch whose hubs it counts by.
    hubs : set of int
        The regions; once the index has moved on, also those that it could not trace back.
    traces : list of Trace
        The episodes counted, oldest first.
    """

    def __init__(self, index: RegionIndex, level: int, reading: Reading) -> None:
        self.index = index
        self.level = level
        self.reading = reading
        self.epoch = index.region_epoch
        levels = index.region_levels
        # A level with one region tells nothing that counting everywhere does not.
        self.upper = [at for at in levels if at > level and len(index.regions(at)) > 1]
        self.hubs = {int(hub) for hub in index.regions(level)} if level in levels else set()
        self.traces: list[Trace] = []
        self.counts = SuccessCounts(reading.prior_strength)
        self.moves: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        self.seen: dict[tuple[int, int | None, str | None], Counter[str]] = defaultdict(Counter)
        self.visits: dict[int, list[int]] = defaultdict(list)
        self._whole: dict[str | None, Tally] = defaultdict(dict)
        self._best: dict[str | None, tuple[tuple[str, ...], int]] = {}
        self.region_of: dict[int, int] = {}
        self._around: dict[int, tuple[int, ...]] = {}

    @property
    def current(self) -> bool:
        """Whether the index is still at the epoch of this book."""
        return self.index.region_epoch == self.epoch

    def checksum(self) -> int:
        """Return a checksum of the hubs and their vectors; two indexes' epochs may be one number.

        It tells something while the book is current: hubs of an epoch before may be gone.
        """
        found = 0
        for hub in sorted(self.hubs):
            row = np.asarray(vector_of(self.index, hub), dtype="<f4")
            found = zlib.crc32(row.tobytes(), zlib.crc32(hub.to_bytes(8, "little"), found))
        return found

    def assign(self, vectors: Vector | Sequence[Vector]) -> list[int]:
        """Return the region that each of the rows lies in.

        Once the index has moved on it knows only its present hubs: a vector then lies where the
        present hub nearest to it was counted.
        """
        rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        found = np.atleast_1d(self.index.assign_region(rows, self.level)).tolist()
        return [int(hub) for hub in found] if self.current else [self._before(h) for h in found]

    def _before(self, hub: int) -> int:
        if hub in self.hubs:
            return hub
        region = self.region_of.get(hub)
        if region is None:
            # No learned episode passes it: until the next epoch it stands for itself.
            self.hubs.add(hub)
            return hub
        return region

    def locate(
        self, nodes: Sequence[int], vectors: Sequence[Vector | None]
    ) -> Sequence[int | None]:
        """Return the region of each node, None for one without a vector."""
        return locate_by_vector(self.index, self.assign, self.hubs, nodes, vectors)

    def places(self, region: int) -> list[tuple[int, int]]:
        """Return the region and the larger ones around it, smallest first, as (level, region)."""
        around = self._around.get(region)
        if around is None:
            # What is around is known as long as the hubs above are those of this epoch.
            vector = vector_of(self.index, region) if self.upper and self.current else None
            around = self._around[region] = (
                ()
                if vector is None
                else tuple(
                    int(np.asarray(self.index.assign_region(vector, level)).reshape(-1)[0])
                    for level in self.upper
                )
            )
        return [(self.level, region), *zip(self.upper, around, strict=False)]

    def add(self, trace: Trace) -> None:
        """Count an episode."""
        for region in dict.fromkeys(trace.regions):
            self.visits[region].append(len(self.traces))
        self.region_of.update(zip(trace.nodes, trace.regions, strict=True))
        self.traces.append(trace)
        self._count(trace, 1)

    def retract(self) -> None:
        """Take back the episode that was counted last."""
        trace = self.traces.pop()
        for region in dict.fromkeys(trace.regions):
            self.visits[region].pop()
        for node in trace.nodes:
            self.region_of.pop(node, None)
        self._count(trace, -1)

    def forget(self, most: int) -> bool:
        """Let go of so many entries, and tell whether any are left; it can only be thrown away.

        To free a large book at once takes as long as several updates.
        """
        tables = (
            self.traces, self.counts.cells, self.moves, self.seen,
            self.visits, self.region_of, self._around,
        )  # fmt: skip
        for table in tables:
            while table and most > 0:
                table.pop() if isinstance(table, list) else table.popitem()
                most -= 1
        return any(tables)

    def _count(self, trace: Trace, times: int) -> None:
        task = trace.task_type
        families = (None,) if task is None else (None, task)
        self._count_whole(trace, families, times)
        done: list[str] = []
        for region, action, arrived, reward, won in trace.moves(self.reading.success_above):
            phase = self.reading.phase_of(done)
            done.append(action)
            self.moves[(region, action)][arrived] += times
            places: list[tuple[int, int | None]] = [(ANYWHERE, None), *self.places(region)]
            cells = [(level, at, family) for level, at in places for family in families]
            for cell in cells:
                self.seen[cell][action] += times
            if won is not None and reward is not None:
                contexts: list[Cell] = [(*cell, kind) for cell in cells for kind in (None, action)]
                contexts += [(self.level, region, family, action, phase) for family in families]
                self.counts.add(contexts, reward, won, times)

    def _count_whole(self, trace: Trace, families: tuple[str | None, ...], times: int) -> None:
        won = trace.won(self.reading.success_above)
        if won is not None:
            for family in families:
                _count(self._whole[family], trace.template(), won, times)
                self._best.pop(family, None)

    def remainders(self, region: int, family: str | None) -> Tally:
        """Return how often what was done from the first visit to a region on was tried, and won."""
        tally: Tally = {}
        for number in self.visits.get(region, ()):
            trace = self.traces[number]
            won = trace.won(self.reading.success_above)
            if won is not None and family in (None, trace.task_type):
                _count(tally, trace.template(trace.regions.index(region)), won)
        return tally

    def like(self, node: int) -> Iterator[int]:
        """Yield the nodes at which the same was done in the same region, newest first.

        Those of the node's own episode are among them.
        """
        region = self.region_of.get(node)
        if region is None:
            return
        action: str | None = None
        for number in reversed(self.visits[region]):
            trace = self.traces[number]
            if node in trace.nodes:
                action = trace.actions[trace.nodes.index(node)]
        if action is None:
            return
        for number in reversed(self.visits[region]):
            trace = self.traces[number]
            for place in range(len(trace.nodes) - 1, -1, -1):
                if trace.regions[place] == region and trace.actions[place] == action:
                    yield trace.nodes[place]

    def best_whole(self, family: str | None) -> tuple[tuple[str, ...], int]:
        """Return ``best_template`` of the whole episodes of a family of goals, or of all."""
        if family not in self._best:
            self._best[family] = best_template(self._whole.get(family, {}))
        return self._best[family]


def best_template(tally: Tally) -> tuple[tuple[str, ...], int]:
    """Return the template with the best Beta(1, 1) mean of success, and how often it was tried.

    Ties go to the shorter one. Nothing ever won: an empty template.
    """
    won = [(n, w, template) for template, (n, w) in tally.items() if w and template]
    if not won:
        return (), 0
    trials, _, best = min(won, key=lambda c: (-(c[1] + 1) / (c[0] + 2), len(c[2]), c[2]))
    return best, trials


def _count(tally: Tally, template: tuple[str, ...], won: bool, times: int = 1) -> None:
    trials, wins = tally.get(template, (0, 0))
    tally[template] = (trials + times, wins + won * times)
