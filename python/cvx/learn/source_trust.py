"""Trust in labelled sources: what they report, compared with what others found there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypeAlias

from cvx.learn.advisor_episode import Observation, Run

_ALIKE = 0.5
"""A claim is broken where it paid less than so much of what was claimed."""
_MOST_BROKEN = 2
"""So many more broken claims than kept ones, and a source is left out."""

Place: TypeAlias = tuple[str, str, Hashable, Hashable]
"""A task, a goal, what is seen, and what is done there."""


class SourceTrust:
    """What sources claimed of places, and how often that held when another one did the same.

    The unlabelled source is whoever asks, and a source of more than half of the episodes is too:
    neither is doubted. Nothing can be held against a planted episode that goes by their label.

    Attributes
    ----------
    kept, broken : Counter of str
        By source: how often another source ended a place as it had claimed, and for less.
    out : set of str
        Sources whose claims kept failing: their episodes are not counted.
    """

    def __init__(self) -> None:
        self._claims: dict[Place, dict[str, tuple[int, float]]] = {}
        self._episodes = Counter[str]()
        self.kept, self.broken = Counter[str](), Counter[str]()
        self.out: set[str] = set()

    def doubted(self, source: str) -> bool:
        """Return whether a source is one beside the asker's."""
        return bool(source) and 2 * self._episodes[source] <= self._episodes.total()

    def close(self, run: Run) -> set[str]:
        """Take in an episode that ended: weigh it, and return the sources that are newly out.

        Of several episodes in which a doubted source did the same at a place, the n-th counts as
        one n-th: copies of one claim do not corroborate it.
        """
        places = [_place(run, step.observation, step.action) for step in run.steps]
        before = set(self.out)
        # Whoever is doubted cannot speak for or against another.
        if places and not run.truncated and not self.doubted(run.source):
            paid = run.steps[-1].reward if run.outcome is None else run.outcome
            self._judge(run.source, places[-1], paid)
        worth, claimed = run.outcome or 0.0, dict[Place, float]()
        for place, step in zip(reversed(places), reversed(run.steps), strict=True):
            worth += step.reward if run.outcome is None else 0.0
            claimed[place] = max(worth, claimed.get(place, worth))
        copies = 0
        for place, most in claimed.items():
            told = self._claims.setdefault(place, {})
            times, earlier = told.get(run.source, (0, most))
            told[run.source] = times + 1, max(most, earlier)
            copies = max(copies, times)
        self._episodes[run.source] += 1
        if self.doubted(run.source):
            run.share = 0.0 if run.source in self.out else 1.0 / (1 + copies)
        return self.out - before

    def _judge(self, source: str, place: Place, paid: float) -> None:
        for other, (_, claimed) in self._claims.get(place, {}).items():
            if other == source or not self.doubted(other):
                continue
            failed = claimed - paid > _ALIKE * max(abs(claimed), abs(paid))
            (self.broken if failed else self.kept)[other] += 1
            if self.broken[other] - self.kept[other] >= _MOST_BROKEN:
                self.out.add(other)

    def alone(self, run: Run, observation: Observation, action: Hashable) -> str:
        """Return the doubted source that alone tells of an action here, or nothing."""
        told = self._claims.get(_place(run, observation, action), {})
        (only, *others) = told or ("",)
        return only if not others and only not in self.out and self.doubted(only) else ""


def _place(run: Run, observation: Observation, action: Hashable) -> Place:
    seen: Hashable = " ".join((observation.text or "").casefold().split())
    if observation.text is None and observation.vector is not None:
        seen = observation.vector.round(4).tobytes()
    return run.task, run.goal, seen, action
