"""How long it takes until something succeeds."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable

from cvx.arguments import number

_a_time = number(0.0)


class Durations:
    """Times that successes took, by context: what share of them is through by a time.

    Of n successes, k of which were through by then, the next one is with chance k / (n + 1), since
    it may fall into any gap between them. That is the prior of each context, worth one success.

    Only successes are taken in. What counts is success within the time allowed, so a trial that
    used all of it has failed, and one that was cut off before had its chance so far as successes
    are that quick.

    Examples
    --------
    >>> durations = Durations()
    >>> for time in (4, 6, 9):
    ...     durations.add("plan", time)
    >>> [durations.done_by(time, "another plan") for time in (3, 4, 6, 50)]
    [0.0, 0.25, 0.5, 0.75]
    >>> durations.done_by(50, "plan")
    0.9375
    """

    def __init__(self) -> None:
        self._all: list[float] = []
        self._own: defaultdict[Hashable, list[float]] = defaultdict(list)

    def add(self, context: Hashable, time: float) -> None:
        """Take in how long a success took.

        Parameters
        ----------
        context : hashable
            What succeeded.
        time : float
            In any unit, 0 or more.

        Raises
        ------
        InvalidParameterError
            The time is no such number.
        """
        time = _a_time("time", time)
        insort(self._all, time)
        insort(self._own[context], time)

    def done_by(self, time: float, context: Hashable) -> float:
        """Return the chance that a success is through by a time; 1 where nothing is known.

        Parameters
        ----------
        time : float
            In the unit of the others.
        context : hashable
            What is tried.
        """
        if not self._all:
            return 1.0
        own = self._own.get(context, [])
        prior = bisect_right(self._all, time) / (len(self._all) + 1)
        return (bisect_right(own, time) + prior) / (len(own) + 1)
