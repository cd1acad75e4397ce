"""Counts of the region model, kept apart for each group of readers."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from cvx.index import RawIndex
from cvx.learn.region_mdp.trajectories import (
    SUCCESS,
    UNKNOWN,
    Trajectory,
    end_of,
    vector_of,
)
from cvx.learn.transition_counts import Counts
from cvx.statistics import Beta, backed_off
from cvx.types import Vector

ANYWHERE = -1

Place: TypeAlias = tuple[int, int | None]
"""Level and region."""

Cell: TypeAlias = tuple[int, int | None, str | None]
"""Level, region and family of goals."""

Context: TypeAlias = tuple[Cell, str | None]
"""Where, and which kind of action; None for all of them."""

Tally: TypeAlias = dict[tuple[str, ...], tuple[float, float]]
"""How often a sequence of kinds of action was tried, and how often it won."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How outcomes and commands are read.

    Parameters
    ----------
    prior_strength : float
        How many episodes the more general estimate is worth.
    success_above : float
        A reward above it is a success.
    classify : callable
        From a command to a kind of action.
    """

    prior_strength: float
    success_above: float
    classify: Callable[[str], str]


class ReaderCounts:
    """The counts of episodes that the same askers may read; each counts as much as it is trusted.

    Parameters
    ----------
    reading : Reading
        How episodes are read.

    Attributes
    ----------
    episodes : int
        How many were counted.
    names : dict of hashable to int
        Cells, kinds of action and ends, by which the table knows them.
    table : Counts
        In a cell an action led to how its episode ended; in a place, without a family, to where it
        led; whole episodes are actions in the cell of their family alone.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.episodes = 0
        self.names: dict[Any, int] = {}
        self.table = Counts(None)
        self._told: list[Any] = []

    def _number(self, name: Any) -> int:
        number = self.names.setdefault(name, len(self._told))
        if number == len(self._told):
            self._told.append(name)
        return number

    def to_dict(self) -> dict[str, Any]:
        """Return all that was counted as lists and arrays."""
        return {"episodes": self.episodes, "names": self._told, "table": self.table.saved()}

    def restore(self, told: Mapping[str, Any]) -> None:
        """Take over what ``to_dict`` returned, be it read from JSON."""
        for name in told["names"]:
            self._number(tuple(name) if isinstance(name, list) else name)
        n = len(told["names"])
        self.episodes, self.table = told["episodes"], Counts.restored(told["table"], None, n, n)

    def add(self, cell: Any, action: Any, to: int, reward: float, weight: float) -> None:
        """Count what an action led to, ``weight`` times; less than 0 takes it back."""
        pair = self.table.pair_at(self._number(cell), self._number(action))
        self.table.add(pair, self._number(to), reward, weight)

    def led(self, cell: Any, action: Any = None) -> Iterator[tuple[Any, int, float, float]]:
        """Yield each action in a cell, or one: what it led to, how often, and the mean reward."""
        table, state = self.table, self.names.get(cell, -1)
        if action is None:
            pairs: Sequence[int] = table.pairs_at.get(state, ())
        else:
            pair = table.pair_of.get((state, self.names.get(action, -1)))
            pairs = () if pair is None else (pair,)
        for pair in pairs:
            for row in table.rows[pair]:
                n = table.count[row]
                if n:
                    told = self._told[table.action[pair]], self._told[table.next[row]]
                    yield *told, int(n) if n.is_integer() else n, table.reward[row]

    def count(
        self, trajectory: Trajectory, places: Callable[[int], Sequence[Place]], times: int
    ) -> None:
        """Count an episode; ``times=-1`` takes it back.

        Parameters
        ----------
        trajectory : Trajectory
        places : callable
            From a region to itself and the larger ones around it.
        times : int
            1 or -1.
        """
        if not trajectory.weight or not trajectory.nodes:
            return
        weight, success_above = times * trajectory.weight, self.reading.success_above
        task, won = trajectory.task_type, trajectory.won(success_above)
        families = (None,) if task is None else (None, task)
        self.episodes += times
        for family in families:
            self.add((family,), trajectory.template(), end_of(won), 0.0, weight)
        for move in trajectory.moves(success_above):
            here, *around = places(move.region)
            self.add(here, move.action, move.arrived, 0.0, weight)
            end = UNKNOWN if move.reward is None else end_of(move.won)
            for family in families:
                for at in ((ANYWHERE, None), here, *around):
                    self.add((*at, family), move.action, end, move.reward or 0.0, weight)


class AskerCounts:
    """What one asker may know: the counts of several groups of readers, added up.

    Parameters
    ----------
    prior_strength : float, default 2.0
        How many trials the more general context is worth; above 0.
    parts : sequence of ReaderCounts
        Of the episodes that the asker may read; once they count on, make another one.
    """

    def __init__(self, prior_strength: float, parts: Sequence[ReaderCounts]) -> None:
        self.prior_strength, self._parts = prior_strength, parts
        self._best: dict[str | None, tuple[tuple[str, ...], float]] = {}

    def __len__(self) -> int:
        return sum(part.episodes for part in self._parts)

    def _led(self, cell: Any, action: Any = None) -> Iterator[tuple[Any, int, float, float]]:
        return chain.from_iterable(part.led(cell, action) for part in self._parts)

    def totals(self, context: Context) -> tuple[float, float, float]:
        """Return trials, wins and summed rewards of a context, each trial by its weight."""
        trials = wins = rewards = 0.0
        for _, end, n, reward in self._led(*context):
            if end != UNKNOWN:
                trials, rewards = trials + n, rewards + n * reward
                wins += n * (end == SUCCESS)
        return trials, wins, rewards

    def posterior(self, contexts: Sequence[Context]) -> Beta:
        """Return what is believed of the success rate of the last context.

        A context without trials of its own passes on its prior; see ``backed_off``.

        Parameters
        ----------
        contexts : sequence of Context
            From the most general to the most specific, each holding those after it.
        """
        *wider, own = (self.totals(context)[:2] for context in contexts)
        return backed_off([*(one for one in wider if one[0]), own], self.prior_strength)

    def seen(self, cell: Cell) -> list[str]:
        """Return the kinds of action that were done somewhere."""
        return list(dict.fromkeys(action for action, *_ in self._led(cell)))

    def moves(self, here: Place, action: str) -> Counter[int]:
        """Return where an action led from a region, and how often."""
        out: Counter[int] = Counter()
        for _, there, n, _ in self._led(here, action):
            out[there] += n  # type: ignore[assignment]
        return out

    def best_whole(self, family: str | None) -> tuple[tuple[str, ...], float]:
        """Return ``best_template`` of the whole episodes of a family of goals, or of all."""
        if family not in self._best:
            tally: Tally = {}
            for template, end, n, _ in self._led((family,)):
                if end != UNKNOWN:
                    more(tally, template, end == SUCCESS, n)
            self._best[family] = best_template(tally)
        return self._best[family]


def best_template(tally: Tally) -> tuple[tuple[str, ...], float]:
    """Return the template with the best Beta(1, 1) mean of success, and how often it was tried.

    Ties go to the shorter one. Nothing ever won: an empty template.
    """
    won = [(n, w, template) for template, (n, w) in tally.items() if w and template]
    if not won:
        return (), 0
    trials, _, best = min(won, key=lambda c: (-(c[1] + 1) / (c[0] + 2), len(c[2]), c[2]))
    return best, trials


def more(tally: Tally, template: tuple[str, ...], won: bool, weight: float) -> None:
    """Count one more try of a template."""
    trials, wins = tally.get(template, (0, 0))
    tally[template] = (trials + weight, wins + won * weight)


class RegionCounts:
    """The episodes of one epoch of regions, and what was counted of them.

    What episodes came to is kept apart by who may read them, so that every asker gets the counts
    of what it may read, exactly, as a sum of a few.

    Parameters
    ----------
    index : RawIndex
        Whose regions are the states.
    level : int
        Of the regions.
    reading : Reading
        How episodes are read.
    away : set of int
        Nodes of steps that are not counted; after a change ``recount`` them.

    Attributes
    ----------
    epoch : int
        The epoch whose hubs it counts by.
    deletions : int
        How many nodes the index had lost when it was begun.
    hubs : set of int
        The regions; once the index has moved on, also those that it could not trajectory back.
    trajectories : list of Trajectory
        The episodes it has, oldest first.
    counted : list of Trajectory
        The same without the steps that are away.
    """

    def __init__(self, index: RawIndex, level: int, reading: Reading, away: set[int]) -> None:
        self.index = index
        self.level = level
        self.reading = reading
        self.away = away
        self.epoch = index.region_epoch
        self.deletions = index.deletions
        levels = index.region_levels
        # A level with one region tells nothing that counting everywhere does not.
        self.upper = [at for at in levels if at > level and len(index.regions(at)) > 1]
        self.hubs = {int(hub) for hub in index.regions(level)} if level in levels else set()
        self.trajectories: list[Trajectory] = []
        self.counted: list[Trajectory] = []
        self.visits: dict[int, list[int]] = defaultdict(list)
        self.region_of: dict[int, int] = {}
        self._around: dict[int, tuple[int, ...]] = {}
        self._parts: dict[str, ReaderCounts] = {}
        self._known: dict[Collection[str] | None, AskerCounts] = {}

    @property
    def current(self) -> bool:
        """Whether the index is still at the epoch of these counts."""
        return self.index.region_epoch == self.epoch

    def checksum(self) -> int:
        """Return a checksum of the hubs, those above them, and their vectors.

        It tells regions apart where numbers of epochs, which each index counts for itself, do not.

        It tells something while they are current: hubs of an epoch before may be gone.
        """
        found = 0
        for hub in sorted(self.hubs):
            row = np.asarray(vector_of(self.index, hub), dtype="<f4")
            found = zlib.crc32(row.tobytes(), zlib.crc32(hub.to_bytes(8, "little"), found))
        for level in self.upper:
            above = np.sort(np.asarray(self.index.regions(level), dtype="<i8"))
            found = zlib.crc32(above.tobytes(), found)
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
        """Return the region of each node as ``region_assignments`` would.

        None for a node without a vector, or one that was deleted. A hub lies in its own region,
        also where another one is as near.
        """
        found: list[int | None] = [None] * len(nodes)
        places: list[int] = []
        rows: list[Vector] = []
        for place, (node, given) in enumerate(zip(nodes, vectors, strict=True)):
            if node in self.hubs:
                found[place] = node
                continue
            vector = vector_of(self.index, node) if given is None else given
            if vector is not None:
                places.append(place)
                rows.append(vector)
        if rows:
            for place, region in zip(places, self.assign(rows), strict=True):
                found[place] = region
        return found

    def places(self, region: int) -> list[Place]:
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

    def to_dict(self, readers: Collection[str] | None) -> dict[str, dict[str, Any]]:
        """Return what was counted that an asker may know, by who may read it."""
        return {
            name: part.to_dict()
            for name, part in self._parts.items()
            if readers is None or name in readers
        }

    def restore(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over what ``to_dict`` returned of episodes that are added uncounted."""
        for name, counted in told.items():
            part = self._parts[name] = ReaderCounts(self.reading)
            part.restore(counted)
        self._known.clear()

    def add(self, trajectory: Trajectory, *, count: bool = True) -> None:
        """Take in an episode, and count it."""
        counted = trajectory.without(self.away)
        if count:
            self._count(counted, 1)
        for region in dict.fromkeys(trajectory.regions):
            self.visits[region].append(len(self.trajectories))
        self.region_of.update(zip(trajectory.nodes, trajectory.regions, strict=True))
        self.trajectories.append(trajectory)
        self.counted.append(counted)

    def recount(self, nodes: Set[int]) -> None:
        """Count the episodes that have some of these steps again, without those that are away."""
        regions = {region for node in nodes if (region := self.region_of.get(node)) is not None}
        for number in sorted({number for region in regions for number in self.visits[region]}):
            if not nodes.isdisjoint(self.trajectories[number].nodes):
                self._count(self.counted[number], -1)
                self.counted[number] = self.trajectories[number].without(self.away)
                self._count(self.counted[number], 1)

    def _count(self, trajectory: Trajectory, times: int) -> None:
        part = self._parts.get(trajectory.readers)
        if part is None:
            part = self._parts[trajectory.readers] = ReaderCounts(self.reading)
        part.count(trajectory, self.places, times)
        # What was chosen as the best of these counts is chosen anew.
        self._known.clear()

    def known(self, readers: Collection[str] | None) -> AskerCounts:
        """Return what an asker may know: what was counted of the episodes that it may read.

        Parameters
        ----------
        readers : collection of str, optional
            Names that the asker goes by, hashable; ``None`` may know everything.
        """
        found = self._known.get(readers)
        if found is None:
            # Sums are made in the order in which the parts came, whoever asks.
            parts = [p for name, p in self._parts.items() if readers is None or name in readers]
            found = self._known[readers] = AskerCounts(self.reading.prior_strength, parts)
        return found

    def readable(self, readers: Collection[str] | None) -> Iterator[Trajectory]:
        """Yield what is counted of each episode that an asker may read, oldest first."""
        return (t for t in self.counted if t.weight and (readers is None or t.readers in readers))

    def forget(self, most: int) -> bool:
        """Let go of so many entries, and tell whether any are left; it can only be thrown away.

        To free large ones at once takes as long as several updates.
        """
        tables: list[list[Any] | dict[Any, Any]] = [
            self.trajectories, self.counted, self.visits, self.region_of, self._around,
            *(
                held
                for part in self._parts.values()
                for held in (part.names, part.table.rows, part.table.pair_of, part.table.pairs_at)
            ),
        ]  # fmt: skip
        for table in tables:
            while table and most > 0:
                table.pop() if isinstance(table, list) else table.popitem()
                most -= 1
            if table:
                return True
        return False

    def remainders(self, region: int, family: str | None, readers: Collection[str] | None) -> Tally:
        """Return how often what was done from the first visit to a region on was tried, and won."""
        tally: Tally = {}
        for trajectory in self._through(region, readers):
            won = trajectory.won(self.reading.success_above)
            if won is not None and family in (None, trajectory.task_type):
                more(
                    tally,
                    trajectory.template(trajectory.regions.index(region)),
                    won,
                    trajectory.weight,
                )
        return tally

    def _through(self, region: int, readers: Collection[str] | None) -> Iterator[Trajectory]:
        """Yield the readable episodes that pass a region, newest first."""
        for number in reversed(self.visits.get(region, ())):
            trajectory = self.counted[number]
            told = trajectory.weight and (readers is None or trajectory.readers in readers)
            if told and region in trajectory.regions:
                yield trajectory

    def doers(self, region: int, action: str, readers: Collection[str] | None) -> Iterator[int]:
        """Yield the nodes at which a kind of action was done in a region, newest first."""
        for trajectory in self._through(region, readers):
            for place in range(len(trajectory.nodes) - 1, -1, -1):
                if trajectory.regions[place] == region and trajectory.actions[place] == action:
                    yield trajectory.nodes[place]
