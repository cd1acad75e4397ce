"""Trust in sources of episodes: leaves out of advice what others could not confirm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from cvx.learn.advisor.types import Observation, Run, digest
from cvx.statistics import Beta

_HALF = 0.5
"""A report fails where others found less than so much of it."""
_TAIL = 0.05
"""How much of a belief may lie beyond the end of its interval that is compared."""
_LEAST_FOUND = 2
"""Of fewer findings nothing is concluded."""
_BEYOND = 2.0
"""A report of more than so many times what anybody else was paid is unlikely before it is tried."""

StateAction: TypeAlias = int
"""Digest of a task, a goal, what is seen, and what is done there."""


@dataclass(slots=True)
class Standing:
    """What a source reported, and what others found at the same places.

    Attributes
    ----------
    reports, told : float
        How many reports, and their sum, each as a share of the highest at its place.
    findings, found : float
        How often others ended there, and the sum of what they were paid, in the same shares.
    likely : float
        How likely the least likely of its reports was before it was tried, at most 1.
    """

    reports: float = 0.0
    told: float = 0.0
    findings: float = 0.0
    found: float = 0.0
    likely: float = 1.0

    @property
    def fails(self) -> bool:
        """Whether confirmed success lies clearly below what the source reported."""
        if self.findings < _LEAST_FOUND:
            return False
        prior = _HALF * self.likely
        found = Beta(prior + self.found, 1.0 - prior + self.findings - self.found)
        told = Beta(0.5 + self.told, 0.5 + self.reports - self.told)
        return found.quantile(1.0 - _TAIL) < min(_HALF, told.quantile(_TAIL))


class SourceTrust:
    """Leaves a source out of advice while its reports fail when another one does the same.

    The unlabelled source is whoever asks, and a source of more than half of the episodes is too:
    neither is doubted. Nothing can be held against a planted episode that goes by their label.

    Attributes
    ----------
    standings : dict of str to Standing
        By doubted source.
    out : set of str
        Sources whose reports fail, as far as is known now: their episodes are not counted.
    """

    def __init__(self) -> None:
        self._reports: dict[StateAction, dict[str, list[float]]] = {}
        self._compared: set[tuple[str, StateAction]] = set()
        self._paid: dict[str, tuple[float, float]] = {}
        self._episodes = Counter[str]()
        self.standings: defaultdict[str, Standing] = defaultdict(Standing)
        self.out: set[str] = set()

    def doubted(self, source: str) -> bool:
        """Return whether a source is one beside the asker's."""
        return bool(source) and 2 * self._episodes[source] <= self._episodes.total()

    def close(self, run: Run) -> set[str]:
        """Count an ended episode; return sources newly left out or taken back.

        Of several episodes in which a doubted source did the same at a place, the n-th counts as
        one n-th: copies of one report do not corroborate it.
        """
        places = [_place(run, step.observation, step.action) for step in run.steps]
        before = set(self.out)
        # Whoever is doubted cannot speak for or against another. Only ends are compared: who
        # showed the first steps is not to blame for what was done after them.
        if places and not run.truncated and not self.doubted(run.source):
            paid = run.steps[-1].reward if run.outcome is None else run.outcome
            self._compare(run, places[-1], paid)
        worth, reported = run.outcome or 0.0, dict[StateAction, float]()
        for place, step in zip(reversed(places), reversed(run.steps), strict=True):
            worth += step.reward if run.outcome is None else 0.0
            reported[place] = max(worth, reported.get(place, worth))
        copies = 0
        for place, most in reported.items():
            told = self._reports.setdefault(place, {}).setdefault(run.source, [])
            copies = max(copies, len(told))
            if run.source:
                told.append(most)
        self._episodes[run.source] += 1
        if self.doubted(run.source):
            run.share, run.left_out = 1.0 / (1 + copies), run.source in self.out
        return self.out ^ before

    def _compare(self, run: Run, place: StateAction, paid: float) -> None:
        low, high = self._paid.get(run.task, (paid, paid))
        self._paid[run.task] = low, high = min(low, paid), max(high, paid)
        for other, reports in self._reports.get(place, {}).items():
            if other == run.source or not self.doubted(other):
                continue
            standing, most = self.standings[other], max(reports)
            if (other, place) not in self._compared:
                self._compared.add((other, place))
                standing.reports += len(reports)
                standing.told += sum(_share(most, one) for one in reports)
            standing.findings += 1
            standing.found += _share(most, paid)
            if low < high and most:
                known = _BEYOND * max(abs(low), abs(high)) / abs(most)
                standing.likely = min(standing.likely, known)
            (self.out.add if standing.fails else self.out.discard)(other)

    def alone(self, run: Run, observation: Observation, action: Hashable) -> str:
        """Return the one doubted source that alone reports an action here, or None."""
        told = self._reports.get(_place(run, observation, action), {})
        (only, *others) = told or ("",)
        return only if not others and only not in self.out and self.doubted(only) else ""

    def saved(self) -> dict[str, Any]:
        """Return all of it as lists and arrays."""
        own = [place for place, told in self._reports.items() if [*told] == [""]]
        others = {place: told for place, told in self._reports.items() if [*told] != [""]}
        return {
            "own": np.array(own, dtype=np.uint64),
            "reports": [[place, [*told.items()]] for place, told in others.items()],
            "compared": [*self._compared],
            "paid": [*self._paid.items()],
            "episodes": [*self._episodes.items()],
            "standings": [[source, astuple(one)] for source, one in self.standings.items()],
            "out": [*self.out],
        }

    @classmethod
    def restored(cls, told: Mapping[str, Any]) -> Self:
        """Return what was saved."""
        made = cls()
        made._reports = {place: {"": []} for place in told["own"].tolist()}
        made._reports.update((place, dict(reports)) for place, reports in told["reports"])
        made._compared = {(source, place) for source, place in told["compared"]}
        made._paid = {task: (low, high) for task, (low, high) in told["paid"]}
        made._episodes.update(dict(told["episodes"]))
        made.standings.update((source, Standing(*one)) for source, one in told["standings"])
        made.out = set(told["out"])
        return made


def _share(most: float, paid: float) -> float:
    """Return how much was paid of what was told at the most, from 0 to 1."""
    scale = max(abs(most), abs(paid))
    return min(1.0, max(0.0, 1.0 - (most - paid) / scale)) if scale else 1.0


def _place(run: Run, observation: Observation, action: Hashable) -> StateAction:
    return digest(run.task, run.goal, observation.key, action)
