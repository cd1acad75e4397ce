"""How long it takes until something succeeds, where some of it was cut off before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple


class _Trial(NamedTuple):
    time: float
    cut_off: bool


class Durations:
    """Times to success of what can succeed: the product limit of Kaplan and Meier.

    A trial that was cut off says only that success takes longer than that. Trials of a context
    that never succeeded are left out, since it may be one that never does. One success more is
    taken to take longer than any that was seen, so that the chance stays below 1.

    References
    ----------
    Kaplan and Meier, "Nonparametric estimation from incomplete observations", JASA 53, 1958.

    Examples
    --------
    >>> durations = Durations()
    >>> for time in (4, 6, 9):
    ...     durations.add("plan", time, cut_off=False)
    >>> [durations.done_by(time) for time in (3, 4, 6, 50)]
    [0.0, 0.25, 0.5, 0.75]
    >>> durations.add("plan", 5, cut_off=True)
    >>> round(durations.done_by(6), 2)      # 1 of 5 by 4, then 1 of the 3 that were seen longer
    0.47
    """

    def __init__(self) -> None:
        self._trials: defaultdict[Hashable, list[_Trial]] = defaultdict(list)

    def add(self, context: Hashable, time: float, *, cut_off: bool) -> None:
        """Take in how long a trial took to succeed, or after how long it was cut off.

        Parameters
        ----------
        context : hashable
            What was tried.
        time : float
            In any unit, at least 0.
        cut_off : bool
            Whether it had not succeeded by then.
        """
        self._trials[context].append(_Trial(time, cut_off))

    def done_by(self, time: float) -> float:
        """Return the chance that what succeeds has done so by a time; 1 where nothing is known."""
        able = [each for each in self._trials.values() if not all(one.cut_off for one in each)]
        if not able:
            return 1.0
        trials = sorted(trial for each in able for trial in each)
        still, not_done = len(trials) + 1, 1.0
        for trial in trials:
            if trial.time > time:
                break
            if not trial.cut_off:
                not_done *= 1 - 1 / still
            still -= 1
        return 1 - not_done
