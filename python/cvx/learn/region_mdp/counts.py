"""Counts of the region model, kept apart for each group of readers."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cvx.learn.region_mdp.trajectories import Trajectory, locate_by_vector, vector_of
from cvx.statistics import Beta, backed_off
from cvx.types import Vector

if TYPE_CHECKING:
    from cvx.index import RawIndex


ANYWHERE = -1

Cell: TypeAlias = tuple[int, int | None, str | None, *tuple[str | None, ...]]
"""Level, region, family of goals; then the kind of action, and the phase, where they count."""

Context = Hashable
Totals: TypeAlias = tuple[float, float, float]
"""Trials, wins and summed rewards."""

NO_TRIAL = 1e-9
"""No trial weighs so little: what is left of a sum of weights that were taken back is less."""

_NEVER = (0, 0, 0.0)

Place: TypeAlias = tuple[int, int | None]
"""Level and region."""

Moves: TypeAlias = dict[int, float]
"""Where an action led, and how often."""

Tally: TypeAlias = dict[tuple[str, ...], tuple[float, float]]
"""How often a sequence of kinds of action was tried, and how often it won."""

Phase: TypeAlias = Callable[[Sequence[str]], str]
"""From the kinds of action done so far in an episode to a word for where it stands."""


class SuccessCounts:
    """Trials, successes and summed rewards by context, with estimates that back off.

    Parameters
    ----------
    prior_strength : float, default 2.0
        How many trials the more general context is worth; above 0.
    parts : sequence of SuccessCounts, optional
        Count nothing here: what these count is added up, also what they count later.

    Attributes
    ----------
    cells : mapping of context to (float, float, float)
        Trials, wins and summed rewards, each trial by its weight; whole numbers where all weigh 1.

    Examples
    --------
    >>> counts = SuccessCounts(prior_strength=2.0)
    >>> for won in (True, True, True, False):
    ...     counts.add(["everywhere"], float(won), won)
    >>> counts.add(["everywhere", "here"], 1.0, True)
    >>> round(counts.estimate(["everywhere"]), 4)          # (4 + 2 * 1/2) / (5 + 2)
    0.7143
    >>> round(counts.estimate(["everywhere", "here"]), 4)  # (1 + 2 * 2/3) / (1 + 2)
    0.7778
    """

    def __init__(
        self, prior_strength: float = 2.0, parts: Sequence[SuccessCounts] | None = None
    ) -> None:
        self.prior_strength = prior_strength
        # Tuples of numbers: the garbage collector passes over them.
        self.own: dict[Context, Totals] = {}
        self.cells: Mapping[Context, Totals] = (
            self.own if parts is None else _Sums([part.cells for part in parts])
        )

    def add(self, contexts: Iterable[Context], reward: float, won: bool, times: float = 1) -> None:
        """Count one trial in each of the contexts, ``times`` of it; less than 0 takes it back."""
        cells = self.own
        reward *= times
        win = times if won else 0
        for context in contexts:
            trials, wins, rewards = cells.get(context, _NEVER)
            if trials + times > NO_TRIAL:
                cells[context] = (trials + times, wins + win, rewards + reward)
            else:
                del cells[context]

    def trials(self, context: Context) -> float:
        """Return how often the context was counted."""
        return self.cells.get(context, _NEVER)[0]

    def wins(self, context: Context) -> float:
        """Return how often it was counted as a success."""
        return self.cells.get(context, _NEVER)[1]

    def mean_reward(self, context: Context) -> float | None:
        """Return the mean reward, or None where nothing was counted."""
        cell = self.cells.get(context)
        return cell[2] / cell[0] if cell else None

    def estimate(self, chain: Sequence[Context]) -> float:
        """Return the success rate of the last context, smoothed by those before it.

        The mean of ``posterior``.
        """
        return self.posterior(chain).mean

    def posterior(self, chain: Sequence[Context]) -> Beta:
        """Return what is believed of the success rate of the last context.

        A context without trials of its own passes on its prior; see ``backed_off``.

        Parameters
        ----------
        chain : sequence of contexts
            From the most general to the most specific, each holding those after it.
        """
        cells = [(cell[0], cell[1]) for at in chain if (cell := self.cells.get(at)) is not None]
        if chain and chain[-1] not in self.cells:
            # Nothing was counted there: only the prior that the wider contexts give it is left.
            cells.append((0.0, 0.0))
        return backed_off(cells, self.prior_strength)


class _Sums(Mapping[Context, Totals]):
    """The cells of several counts, added up when they are asked for."""

    def __init__(self, parts: Sequence[Mapping[Context, Totals]]) -> None:
        self._parts = parts

    def __getitem__(self, context: Context) -> Totals:
        found = [cell for part in self._parts if (cell := part.get(context)) is not None]
        if not found:
            raise KeyError(context)
        trials, wins, rewards = map(sum, zip(*found, strict=True))
        return trials, wins, rewards

    def __iter__(self) -> Iterator[Context]:
        return iter({context: None for part in self._parts for context in part})

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
    classify : callable
        From a command to a kind of action.
    """

    prior_strength: float
    success_above: float
    phase_of: Phase
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
    counts : SuccessCounts
        Trials and wins by cell.
    moves : dict of (int, str) to Counter
        How often an action led where, by region and kind of action.
    seen : dict of cell to Counter
        How often each kind of action was done there.
    whole : dict of (str or None) to Tally
        Whole episodes by family of goals.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.episodes = 0
        self.counts = SuccessCounts(reading.prior_strength)
        self.moves: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        self.seen: dict[Cell, Counter[str]] = defaultdict(Counter)
        self.whole: dict[str | None, Tally] = defaultdict(dict)

    def tables(self) -> Sequence[dict[Any, Any]]:
        """Return everything that grows."""
        return self.counts.own, self.moves, self.seen, self.whole

    def to_list(self) -> list[Any]:
        """Return all that was counted as lists of pairs."""
        own, *nested = self.tables()
        listed = ([[key, [*inner.items()]] for key, inner in table.items()] for table in nested)
        return [self.episodes, [*own.items()], *listed]

    def restore(self, told: Sequence[Any]) -> None:
        """Take over what ``to_list`` returned, be it read from JSON."""
        self.episodes, own, moves, seen, whole = told
        self.counts.own.update((tuple(key), tuple(totals)) for key, totals in own)
        for table, listed in ((self.moves, moves), (self.seen, seen)):
            table.update((tuple(key), Counter(dict(inner))) for key, inner in listed)
        for family, inner in whole:
            self.whole[family] = {tuple(template): tuple(n) for template, n in inner}

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
        weight: Any = times * trajectory.weight
        task = trajectory.task_type
        families = (None,) if task is None else (None, task)
        success_above = self.reading.success_above
        won = trajectory.won(success_above)
        moves = list(trajectory.moves(success_above))
        done: list[str] = []
        phases = []
        # Phases are the caller's to name: should that fail, nothing is counted yet.
        for move in moves:
            phases.append(self.reading.phase_of(done))
            done.append(move.action)
        self.episodes += times
        if won is not None:
            for family in families:
                more(self.whole[family], trajectory.template(), won, weight)
        for (region, action, arrived, reward, success), phase in zip(moves, phases, strict=True):
            tallied: list[tuple[Counter[Any], object]] = [(self.moves[(region, action)], arrived)]
            around: list[Place] = [(ANYWHERE, None), *places(region)]
            cells = [(level, at, family) for level, at in around for family in families]
            tallied += [(self.seen[cell], action) for cell in cells]
            for counter, key in tallied:
                counter[key] += weight
                if times < 0 and counter[key] <= NO_TRIAL:
                    del counter[key]
            if success is not None and reward is not None:
                contexts: list[Cell] = [(*cell, kind) for cell in cells for kind in (None, action)]
                contexts += [(*around[1], family, action, phase) for family in families]
                self.counts.add(contexts, reward, success, weight)


class AskerCounts:
    """What one asker may know: the counts of several groups of readers, added up.

    Parameters
    ----------
    reading : Reading
        How episodes are read.
    parts : sequence of ReaderCounts
        Of the episodes that the asker may read; they may go on counting.

    Attributes
    ----------
    counts : SuccessCounts
        Trials and wins by cell.
    """

    def __init__(self, reading: Reading, parts: Sequence[ReaderCounts]) -> None:
        self._parts = parts
        self.counts = (
            parts[0].counts
            if len(parts) == 1
            else SuccessCounts(reading.prior_strength, [part.counts for part in parts])
        )
        self._best: dict[str | None, tuple[tuple[str, ...], float]] = {}

    def __len__(self) -> int:
        return sum(part.episodes for part in self._parts)

    def seen(self, cell: Cell) -> list[str]:
        """Return the kinds of action that were done somewhere."""
        found = (part.seen.get(cell) for part in self._parts)
        return list(dict.fromkeys(action for seen in found if seen for action in seen))

    def moves(self, region: int, action: str) -> Mapping[int, float]:
        """Return where an action led from a region, and how often."""
        out: Counter[int] = Counter()
        for part in self._parts:
            for there, n in part.moves.get((region, action), {}).items():
                out[there] += n
        return out

    def best_whole(self, family: str | None) -> tuple[tuple[str, ...], float]:
        """Return ``best_template`` of the whole episodes of a family of goals, or of all."""
        if family not in self._best:
            tally: Tally = {}
            for part in self._parts:
                for template, (trials, wins) in part.whole.get(family, {}).items():
                    before = tally.get(template, (0, 0))
                    tally[template] = before[0] + trials, before[1] + wins
            self._best[family] = best_template(tally)
        return self._best[family]

    def forget_best(self) -> None:
        """Choose the best anew: something was counted, or taken back."""
        self._best.clear()


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
    """Count one more try of a template, or one less."""
    trials, wins = tally.get(template, (0, 0))
    if trials + weight > NO_TRIAL:
        tally[template] = (trials + weight, wins + won * weight)
    else:
        del tally[template]


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

    def __init__(self, index: RawIndex, level: int, reading: Reading, away: Set[int]) -> None:
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
        """Return the region of each node, None for one without a vector."""
        return locate_by_vector(self.index, self.assign, self.hubs, nodes, vectors)

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

    def to_dict(self, readers: Collection[str] | None) -> dict[str, list[Any]]:
        """Return what was counted that an asker may know, by who may read it."""
        return {
            name: part.to_list()
            for name, part in self._parts.items()
            if readers is None or name in readers
        }

    def restore(self, told: Mapping[str, Sequence[Any]]) -> None:
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
            self._known.clear()
        part.count(trajectory, self.places, times)
        for known in self._known.values():
            known.forget_best()

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
            found = self._known[readers] = AskerCounts(self.reading, parts)
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
            *(table for part in self._parts.values() for table in part.tables()),
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
