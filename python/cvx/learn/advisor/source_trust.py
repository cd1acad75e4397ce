"""Trust in sources of episodes: leaves out of advice what others could not confirm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from cvx.learn.advisor.types import Observation, Run, digest, plain
from cvx.statistics import Beta

_HALF = 0.5
"""A report fails where others found less than so much of it."""
_TAIL = 0.05
"""How much of a belief may lie beyond the end of its interval that is compared."""
_LEAST_FOUND = 2
"""Of fewer findings nothing is concluded."""
_BEYOND = 2.0
"""A report of more than so many times what anybody else was paid is unlikely before it is tried."""
_MORE = 0.1
"""Others have to promise so much of the range of what was paid more than what is known to pay."""

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
    Labels cost nothing, so that a source of which nothing was confirmed yet is taken for what
    such sources proved to be when somebody else first did what they reported.

    Attributes
    ----------
    standings : dict of str to Standing
        By doubted source.
    newcomers : Standing
        Of the first finding about each doubted source.
    out : set of str
        Sources whose reports fail, as far as is known now: their episodes are not counted.
    waiting : set of str
        Sources that are not counted either, since nothing of theirs was confirmed and the reports
        of newcomers fail.
    """

    def __init__(self) -> None:
        self._reports: dict[StateAction, dict[str, list[float]]] = {}
        self._compared: set[tuple[str, StateAction]] = set()
        # By task and action: in how many states each source did it.
        self._did: dict[int, Counter[str]] = {}
        self._paid: dict[str, tuple[float, float]] = {}
        self._episodes = Counter[str]()
        self.standings: defaultdict[str, Standing] = defaultdict(Standing)
        self.newcomers = Standing()
        self.out: set[str] = set()
        self.waiting: set[str] = set()

    def doubted(self, source: str) -> bool:
        """Return whether a source is one beside the asker's."""
        return bool(source) and 2 * self._episodes[source] <= self._episodes.total()

    def beside(self, source: str) -> bool:
        """Return the same where anybody is not: not of several that tell about as much each."""
        return self.doubted(source) and not all(map(self.doubted, self._episodes))

    def close(self, run: Run) -> set[str]:
        """Count an ended episode; return sources newly left out or taken back.

        Of several episodes in which a doubted source did the same at a place, the n-th counts as
        one n-th: copies of one report do not corroborate it.
        """
        places = [_place(run, step.observation, step.action) for step in run.steps]
        before = self.out | self.waiting
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
        actions = {place: step.action for place, step in zip(places, run.steps, strict=True)}
        for place, most in reported.items():
            known = self._reports.setdefault(place, {})
            if run.source not in known:
                did = self._did.setdefault(digest(run.task, actions[place]), Counter())
                did[run.source] += 1
            told = known.setdefault(run.source, [])
            copies = max(copies, len(told))
            if run.source:
                told.append(most)
        self._episodes[run.source] += 1
        if self.doubted(run.source):
            if self._is_to_wait(run.source):
                self.waiting.add(run.source)
            run.share, run.left_out = 1.0 / (1 + copies), self.leaves_out(run.source)
        return (self.out | self.waiting) ^ before

    def leaves_out(self, source: str) -> bool:
        """Return whether the episodes of a source are not counted."""
        return source in self.out or source in self.waiting

    def _is_to_wait(self, source: str) -> bool:
        known = self.standings.get(source)
        confirmed = known is not None and known.found > _HALF * known.findings
        return self.newcomers.fails and self.doubted(source) and not confirmed

    def _compare(self, run: Run, place: StateAction, paid: float) -> None:
        low, high = self._paid.get(run.named, (paid, paid))
        self._paid[run.named] = low, high = min(low, paid), max(high, paid)
        others = [
            one
            for one in self._reports.get(place, {}).items()
            if one[0] != run.source and self.doubted(one[0])
        ]
        for other, reports in others:
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
            if standing.findings == 1:
                first = self.newcomers
                first.reports, first.told = first.reports + 1, first.told + 1
                first.findings, first.found = first.findings + 1, first.found + standing.found
                first.likely = min(first.likely, standing.likely)
            (self.out.add if standing.fails else self.out.discard)(other)
        if others:
            self.waiting = {source for source in self._episodes if self._is_to_wait(source)}

    def alone(self, run: Run, observation: Observation, action: Hashable) -> str:
        """Return the one doubted source that alone reports an action here, or nothing."""
        told = self._reports.get(_place(run, observation, action), {})
        (only, *others) = told or ("",)
        alone = not others and not self.leaves_out(only) and self.doubted(only)
        return only if alone else ""

    def hearsay(self, run: Run, observation: Observation, action: Hashable) -> bool:
        """Return whether doubted sources alone report an action here.

        Or, where nobody does, whether they did it in more states of the task than all others.
        """
        if len(self._episodes) < 2:
            # Who alone tells of all episodes is not doubted.
            return False
        if told := self._reports.get(_place(run, observation, action)):
            return all(self.doubted(source) for source in told)
        did = self._did.get(digest(run.task, action), Counter())
        return 2 * sum(n for one, n in did.items() if self.doubted(one)) > did.total()

    def promises_more(self, task: str, promised: float, own: float) -> bool:
        """Return whether others promise clearly more than what whoever asks found in a task.

        Measured by what whoever asks was paid: a claim is no measure of itself.
        """
        low, high = self._paid.get(task, (0.0, 0.0))
        return promised - own > _MORE * (high - low)

    def saved(self) -> dict[str, Any]:
        """Return all of it as lists and arrays."""
        own = [place for place, told in self._reports.items() if [*told] == [""]]
        others = {place: told for place, told in self._reports.items() if [*told] != [""]}
        own_did = [one for one in self._did.items() if [*one[1]] == [""]]
        return {
            "own": np.array(own, dtype=np.uint64),
            "reports": [[place, [*told.items()]] for place, told in others.items()],
            "did": [[at, [*did.items()]] for at, did in self._did.items() if [*did] != [""]],
            "own_did": [
                np.array([at for at, did in own_did], dtype=np.uint64),
                np.array([did[""] for at, did in own_did], dtype=np.int64),
            ],
            "compared": [*self._compared],
            "paid": [*self._paid.items()],
            "episodes": [*self._episodes.items()],
            "standings": [[source, astuple(one)] for source, one in self.standings.items()],
            "newcomers": [*astuple(self.newcomers)],
            "out": [*self.out],
            "waiting": [*self.waiting],
        }

    @classmethod
    def restored(cls, told: Mapping[str, Any]) -> Self:
        """Return what was saved."""
        made = cls()
        made._reports = {place: {"": []} for place in told["own"].tolist()}
        made._reports.update((place, dict(reports)) for place, reports in told["reports"])
        made._did = {at: Counter(dict(did)) for at, did in told["did"]}
        own_did = zip(*(column.tolist() for column in told["own_did"]), strict=True)
        made._did.update((at, Counter({"": n})) for at, n in own_did)
        made._compared = {(source, place) for source, place in told["compared"]}
        made._paid = {task: (low, high) for task, (low, high) in told["paid"]}
        made._episodes.update(dict(told["episodes"]))
        made.standings.update((source, Standing(*one)) for source, one in told["standings"])
        made.newcomers = Standing(*told["newcomers"])
        made.out, made.waiting = set(told["out"]), set(told["waiting"])
        return made


def _share(most: float, paid: float) -> float:
    """Return how much was paid of what was told at the most, from 0 to 1."""
    scale = max(abs(most), abs(paid))
    return min(1.0, max(0.0, 1.0 - (most - paid) / scale)) if scale else 1.0


def _place(run: Run, observation: Observation, action: Hashable) -> StateAction:
    return digest(run.named, plain(run.goal), observation.key, action)
