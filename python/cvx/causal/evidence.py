"""Evidence for and against a causal link: cases, timing, Granger test, and the weight from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import a_share, above_zero, among, check_fields, number, whole
from cvx.errors import (
    InvalidInputError,
)
from cvx.extras import needs
from cvx.validation import EVIDENCE_KINDS, evidence_counts


class Observation(NamedTuple):
    """Counts and notes of one kind of evidence.

    Attributes
    ----------
    kind : str
        "stated" (somebody said so), "judged" (a judge did), "precedence" (one came before the
        other), "repetition" (it happened again), "counterexample" (the cause came, the effect did
        not), "granger" (the past of one series helps to predict the other).
    supports, counters : float
        What it counts for and against the link, in cases.
    note : str
        What it rests on.
    """

    kind: str
    supports: float
    counters: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence on one link.

    Parameters
    ----------
    observations : tuple of Observation
        At most one of each kind.
    prior_mean : float, default 0.5
        The weight of a link of which nothing is known, in [0, 1].
    prior_strength : float, default 2.0
        How many cases that is worth; above 0.

    Examples
    --------
    >>> evidence = Evidence().add("repetition", supports=2)
    >>> evidence.weight
    0.75
    >>> evidence.add("counterexample", counters=4).weight
    0.375
    """

    observations: tuple[Observation, ...] = ()
    prior_mean: float = 0.5
    prior_strength: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self, prior_mean=a_share, prior_strength=above_zero)

    @property
    def supports(self) -> float:
        """Cases for the link."""
        return sum(one.supports for one in self.observations)

    @property
    def counters(self) -> float:
        """Cases against the link."""
        return sum(one.counters for one in self.observations)

    @property
    def weight(self) -> float:
        """The mean of the posterior, in [0, 1]."""
        cases = self.supports + self.counters + self.prior_strength
        return (self.supports + self.prior_strength * self.prior_mean) / cases

    @property
    def state(self) -> str:
        """Who spoke: "confirmed" (a person, of a guess), "stated", or "judged" (nobody else)."""
        kinds = {one.kind for one in self.observations}
        if "confirmed" in kinds:
            return "confirmed"
        return "stated" if "stated" in kinds or not kinds else "judged"

    def add(
        self, kind: str, *, supports: float = 0.0, counters: float = 0.0, note: str = ""
    ) -> Evidence:
        """Return the evidence with more of one kind; a new note replaces an older one.

        Raises
        ------
        InvalidInputError
            An unknown kind, or cases below 0.
        """
        cases = number(0.0)
        among(*EVIDENCE_KINDS)("kind", kind)
        supports, counters = cases("supports", supports), cases("counters", counters)
        known = {one.kind: one for one in self.observations}
        old = known.get(kind, Observation(kind, 0.0, 0.0))
        known[kind] = Observation(
            kind, old.supports + supports, old.counters + counters, note or old.note
        )
        return replace(self, observations=tuple(known.values()))

    def judged(self, chance: float, judge: str) -> Evidence:
        """Return the evidence with a judgement as what is expected before cases are counted."""
        return self._said(("judged",), judge, chance)

    def confirmed(self, note: str = "") -> Evidence:
        """Return the evidence with a person's word: certain until cases speak against it."""
        return self._said(("confirmed", "judged"), note, 1.0)

    def _said(self, kinds: tuple[str, ...], note: str, chance: float) -> Evidence:
        """Put somebody's word, of the first kind, in the place of what these kinds said before."""
        kept = tuple(one for one in self.observations if one.kind not in kinds)
        said = Observation(kinds[0], 0.0, 0.0, note)
        return replace(self, observations=(*kept, said), prior_mean=chance)

    @classmethod
    def of(cls, weight: float, text: str) -> Evidence:
        """Return the evidence of a link that has a weight.

        Where nobody has counted yet, the weight that somebody gave it is what is expected of it.

        Examples
        --------
        >>> Evidence.of(0.8, "the plumber").weight
        0.8
        """
        found = cls.from_text(text)
        if found.supports + found.counters > 0 or found.to_text() == text:
            return found
        stated = (Observation("stated", 0.0, 0.0, text.strip()),)
        return replace(found, prior_mean=weight, observations=stated)

    def to_text(self) -> str:
        """Return it as the ``evidence`` of an edge keeps it: JSON."""
        return json.dumps(
            {
                "prior": [self.prior_mean, self.prior_strength],
                "observations": [list(one) for one in self.observations],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str) -> Evidence:
        """Read what ``to_text`` wrote; words of a person become the note of what was stated.

        Raises
        ------
        InvalidInputError
            JSON of this form whose numbers cannot be.
        """
        read = evidence_counts(text)
        if read is None:
            return cls().add("stated", note=text) if text.strip() else cls()
        mean, strength, rows = read
        made = cls(prior_mean=mean, prior_strength=strength)
        for kind, supports, counters, note in rows:
            made = made.add(kind, supports=supports, counters=counters, note=note)
        return made

    def __str__(self) -> str:
        return "; ".join(_phrase(one) for one in self.observations) or "nothing is known"


def _phrase(one: Observation) -> str:
    counts = [
        f"{value:g} {name}"
        for name, value in (("for", one.supports), ("against", one.counters))
        if value
    ]
    said = f" ({one.note})" if one.note else ""
    return f"{one.kind} {', '.join(counts) or '0'}{said}"


class Following(NamedTuple):
    """Counts of how often an effect followed a cause.

    Attributes
    ----------
    causes : int
        How often the cause happened.
    followed : int
        How often the effect came within the window after it.
    expected : float
        How often it would have, had the causes been strewn over the same time at random.
    """

    causes: int
    followed: int
    expected: float


def following(causes: Sequence[int], effects: Sequence[int], window: int) -> Following:
    """Count how often an effect followed a cause within a window.

    Parameters
    ----------
    causes, effects : sequence of int
        When each happened, in any order.
    window : int
        In the unit of the times, at least 1: an effect at ``t < e <= t + window`` follows.

    Raises
    ------
    InvalidInputError
        A window below 1.

    Examples
    --------
    >>> following([0, 100, 200], [5, 105], window=10).followed
    2
    """
    whole(1)("window", window)
    first = np.sort(np.asarray(causes, dtype=np.int64))
    then = np.sort(np.asarray(effects, dtype=np.int64))
    if not len(first):
        return Following(0, 0, 0.0)
    after = np.searchsorted(then, first, side="right")
    until = np.searchsorted(then, first + window, side="right")
    followed = int((until > after).sum())
    # A moment is followed if an effect lies within the window after it: the union of the spans
    # before the effects, cut to the time in which causes were seen.
    begin, end = int(first[0]), int(first[-1]) + 1
    covered, last = 0, begin
    for effect in then.tolist():
        start, stop = max(effect - window, last), min(effect, end)
        covered += max(0, stop - start)
        last = max(last, stop)
    return Following(len(first), followed, len(first) * covered / (end - begin))


def binned(times: Sequence[int], start: int, stop: int, width: int) -> npt.NDArray[np.float64]:
    """Return counts of events by time bin.

    Parameters
    ----------
    times : sequence of int
        When it happened; what lies outside ``start <= t < stop`` is left out.
    start, stop, width : int
        From when, until when, and how long a stretch is.

    Returns
    -------
    ndarray of shape (ceil((stop - start) / width),), float64

    Raises
    ------
    InvalidInputError
        An empty range, or a width below 1.
    """
    if stop <= start or width < 1:
        raise InvalidInputError(
            f"start {start}, stop {stop}, width {width}: give start < stop and width >= 1"
        )
    inside = np.asarray([t for t in times if start <= t < stop], dtype=np.int64)
    length = -(-(stop - start) // width)
    return np.bincount((inside - start) // width, minlength=length).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Granger:
    """Granger's test of one series against another.

    Parameters
    ----------
    p : float
        The smallest p value over the lags, times the number of lags (Bonferroni), at most 1.
    lag : int
        The lag of it, in steps of the series.
    """

    p: float
    lag: int


def granger(cause: npt.ArrayLike, effect: npt.ArrayLike, max_lag: int = 4) -> Granger:
    """Test whether the past of one series helps to predict another one beyond its own past.

    Parameters
    ----------
    cause, effect : array_like of shape (n,)
        Two series over the same steps of time; ``binned`` makes them of events.
    max_lag : int, default 4
        How many steps back, at least 1.

    Raises
    ------
    InvalidInputError
        Series of different lengths.
    InvalidInputError
        A lag below 1; NaN; a series that never changes; fewer steps than the test needs.
    MissingExtraError
        statsmodels is not installed (extra ``causal``).

    References
    ----------
    Granger 1969, Investigating Causal Relations by Econometric Models and Cross-spectral Methods.
    """
    x, y = np.asarray(cause, dtype=np.float64), np.asarray(effect, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidInputError(f"series of shapes {x.shape} and {y.shape}: give two of (n,)")
    whole(1)("max_lag", max_lag)
    if len(x) <= 3 * max_lag + 1:
        raise InvalidInputError(
            f"{len(x)} steps for {max_lag} lags: give more than {3 * max_lag + 1}"
        )
    for name, series in (("cause", x), ("effect", y)):
        if not np.isfinite(series).all() or np.ptp(series) == 0.0:
            raise InvalidInputError(
                f"the series of the {name} holds NaN or never changes: it cannot be tested"
            )
    with needs("causal"):
        from statsmodels.tools.sm_exceptions import (  # type: ignore[import-untyped]
            InfeasibleTestError,
        )
        from statsmodels.tsa.stattools import (  # type: ignore[import-untyped]
            grangercausalitytests,
        )
    try:
        tests = grangercausalitytests(np.column_stack([y, x]), max_lag)
    except InfeasibleTestError as error:
        raise InvalidInputError(f"the series cannot be tested: {error}") from error
    found = {lag: float(result[0]["ssr_ftest"][1]) for lag, result in tests.items()}
    best = min(found, key=lambda lag: found[lag])
    return Granger(min(1.0, found[best] * len(found)), int(best))
