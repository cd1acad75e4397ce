"""Learning transitions and outcomes by region, in batch and step by step, epoch by epoch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from cvx.errors import InvalidParameterError, StaleRegionsError
from cvx.mdp.actions import classify_action
from cvx.mdp.counts import SuccessCounts
from cvx.mdp.trace import (
    EpisodeLike,
    RegionIndex,
    Trace,
    default_level,
    locate_by_vector,
    read_trace,
)
from cvx.types import Vector

ANYWHERE = -1


class RegionLearner:
    """Counts what episodes did in each region, and keeps the counts true to the regions in force.

    ``RegionMDP`` has the parameters, and the answers.
    """

    def __init__(
        self,
        index: RegionIndex,
        level: int | None = None,
        *,
        score: Literal["beta", "mean"] = "beta",
        prior_strength: float = 2.0,
        success_above: float = 0.5,
        classify: Callable[[str], str] = classify_action,
        on_stale: Literal["relearn", "error"] = "relearn",
    ) -> None:
        if score not in ("beta", "mean"):
            raise InvalidParameterError(f"score is {score!r}: give 'beta' or 'mean'")
        if on_stale not in ("relearn", "error"):
            raise InvalidParameterError(f"on_stale is {on_stale!r}: give 'relearn' or 'error'")
        if not prior_strength > 0:
            raise InvalidParameterError(f"prior_strength is {prior_strength}: give one above 0")
        self.index = index
        self.score = score
        self.success_above = success_above
        self.classify = classify
        self.on_stale = on_stale
        self._wanted_level = level
        self._counts = SuccessCounts(prior_strength)
        self._moves: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        self._seen: dict[tuple[int, int | None, str | None], Counter[str]] = defaultdict(Counter)
        self._templates: dict[tuple[int | None, str | None], dict[tuple[str, ...], list[int]]] = {}
        self._strategies: dict[tuple[int | None, str | None], tuple[str, ...]] = {}
        self._region_of: dict[int, int] = {}
        self._around: dict[int, tuple[int, ...]] = {}
        self._hubs: frozenset[int] | None = None
        self.traces: list[Trace] = []
        self._start_epoch()

    @property
    def prior_strength(self) -> float:
        """How many episodes the more general estimate is worth."""
        return self._counts.prior_strength

    def __len__(self) -> int:
        """Return how many episodes it has learned from."""
        return len(self.traces)

    def _start_epoch(self) -> None:
        index = self.index
        self.epoch = index.region_epoch
        wanted = self._wanted_level
        if wanted is None:
            self.level = default_level(index)
        else:
            self.level = max((at for at in index.region_levels if at <= wanted), default=0)
        # A level with one region tells nothing that counting everywhere does not.
        self._upper = [
            level
            for level in index.region_levels
            if level > self.level and len(index.regions(level)) > 1
        ]
        self._hubs = None
        self._counts.clear()
        self._around.clear()
        self._moves.clear()
        self._seen.clear()
        self._templates.clear()
        self._strategies.clear()
        self._region_of.clear()

    def _fresh(self) -> None:
        if self.index.region_epoch == self.epoch:
            return
        if self.on_stale == "error" and self.traces:
            raise StaleRegionsError(
                f"learned on regions of epoch {self.epoch}, the index is at "
                f"{self.index.region_epoch}: call relearn()"
            )
        self.relearn()

    def relearn(self) -> None:
        """Learn all remembered episodes again on the present regions; deleted nodes drop out."""
        self._start_epoch()
        if not self.traces:
            return
        where = self._assignments()
        for number, trace in enumerate(self.traces):
            live = [i for i, node in enumerate(trace.nodes) if node in where]
            self.traces[number] = Trace(
                trace.task_type,
                [trace.nodes[i] for i in live],
                [trace.actions[i] for i in live],
                [trace.rewards[i] for i in live],
                [where[trace.nodes[i]] for i in live],
            )
        for trace in self.traces:
            self._count(trace)

    def _assignments(self) -> dict[int, int]:
        nodes, regions = self.index.region_assignments(self.level)
        return dict(zip(nodes.tolist(), regions.tolist(), strict=True))

    def learn_from_episodes(self, index: RegionIndex, episodes: Iterable[EpisodeLike]) -> None:
        """Add episodes to what is known.

        Parameters
        ----------
        index : TemporalIndex
            Where their nodes are; the one the model was made with.
        episodes : iterable of Episode
            Anything with an ``entity_id``. ``steps`` whose nodes are known are taken as they
            are, else the entity's whole timeline is read. ``reward`` is the outcome of every
            step; without it each step's reward in the index is. ``task_type`` and ``namespace``
            are used if they are there.

        Raises
        ------
        InvalidParameterError
            Another index than the model's.
        StaleRegionsError
            See ``on_stale``.
        """
        if index is not self.index:
            raise InvalidParameterError(
                "this model belongs to another index: make a RegionMDP for this one"
            )
        self._fresh()
        where = self._assignments()
        for episode in episodes:
            self._learn(episode, lambda nodes, _: [where.get(node) for node in nodes])

    def update(self, episode: EpisodeLike) -> None:
        """Add one episode, with the same result as learning it together with all others.

        Raises
        ------
        StaleRegionsError
            See ``on_stale``.
        """
        self._fresh()
        if self._hubs is None:
            self._hubs = frozenset(int(hub) for hub in self.index.regions(self.level))
        hubs = self._hubs
        self._learn(
            episode,
            lambda nodes, vs: locate_by_vector(self.index, self.level, hubs, nodes, vs),
        )

    def retract(self) -> None:
        """Take back the episode that was learned last."""
        trace = self.traces.pop()
        self._count(trace, times=-1)

    def _learn(
        self,
        episode: EpisodeLike,
        locate: Callable[[list[int], list[Vector | None]], Sequence[int | None]],
    ) -> None:
        trace = read_trace(self.index, episode, self.classify, locate)
        self.traces.append(trace)
        self._count(trace)

    def _count(self, trace: Trace, times: int = 1) -> None:
        task = trace.task_type
        families = (None,) if task is None else (None, task)
        self._count_templates(trace, families, times)
        if times > 0:
            self._region_of.update(zip(trace.nodes, trace.regions, strict=True))
        else:
            for node in trace.nodes:
                self._region_of.pop(node, None)
        for region, action, arrived, reward in trace.moves(self.success_above):
            self._moves[(region, action)][arrived] += times
            places: list[tuple[int, int | None]] = [(ANYWHERE, None), *self._places(region)]
            cells = [(level, at, family) for level, at in places for family in families]
            for cell in cells:
                self._seen[cell][action] += times
            if reward is not None:
                self._counts.add(
                    [(*cell, kind) for cell in cells for kind in (None, action)],
                    reward,
                    reward > self.success_above,
                    times,
                )

    def _count_templates(self, trace: Trace, families: tuple[str | None, ...], times: int) -> None:
        self._strategies.clear()
        if not trace.rewards or trace.rewards[-1] is None:
            return
        won = trace.rewards[-1] > self.success_above
        starts: dict[int | None, int] = {None: 0}
        for place, region in enumerate(trace.regions):
            starts.setdefault(region, place)
        for start, place in starts.items():
            template = trace.template(place)
            for family in families:
                tally = self._templates.setdefault((start, family), {})
                cell = tally.setdefault(template, [0, 0])
                cell[0] += times
                cell[1] += won * times

    def _places(self, region: int) -> list[tuple[int, int]]:
        """The region and the larger ones around it, smallest first, as (level, region)."""
        around = self._around.get(region)
        if around is None:
            vector = self.index.vector(region) if self._upper else None
            around = self._around[region] = (
                ()
                if vector is None
                else tuple(int(self._assign(vector, level)) for level in self._upper)
            )
        return [(self.level, region), *zip(self._upper, around, strict=False)]

    def _assign(self, vector: Vector, level: int) -> int:
        return int(np.asarray(self.index.assign_region(vector, level)).reshape(-1)[0])
