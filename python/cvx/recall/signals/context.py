"""Signals from where an event stands: who says it, when, and in which session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from cvx.recall.signals.dates import MICROSECONDS_A_DAY, DateNamed
from cvx.recall.signals.scene import Scene
from cvx.recall.signals.view import FloatArray
from cvx.types import IntArray

_DAYS_OF_DECAY = 4.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def speaker_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Compare who speaks with whom the question names.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``speaker``: 1 where the event is of an entity that is named, 0 where nobody is named,
        -1 where only others are.
    """
    named = scene.question.entities
    if not named:
        return {"speaker": np.zeros(scene.rows.size)}
    speakers = scene.view.entities[scene.rows]
    # Few are named: comparing with each is several times faster than np.isin.
    agrees = np.logical_or.reduce([speakers == entity for entity in named])
    return {"speaker": np.where(agrees, 1.0, -1.0)}


def date_signals(scene: Scene) -> Mapping[str, FloatArray]:
    """Compare when the event happened with the dates that the question names.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``date_near``: e^(-days/4) from the nearest day that is named. ``date_month``: 1 in a month
        that is named, or that a named day is in. ``date_year``: 1 in a year that is named.
    """
    dates = scene.question.dates
    nothing = np.zeros(scene.rows.size)
    if not dates:
        return {"date_near": nothing, "date_month": nothing, "date_year": nothing}
    stamps = scene.view.timestamps[scene.rows]
    when = stamps.astype("datetime64[us]")
    years = when.astype("datetime64[Y]").astype(np.int64) + 1970
    months = when.astype("datetime64[M]").astype(np.int64) % 12 + 1
    near, month, year = nothing.copy(), nothing.copy(), nothing.copy()
    for named in dates:
        in_year = np.ones(years.shape, bool) if named.year is None else years == named.year
        if named.year is not None:
            year = np.maximum(year, in_year)
        if named.month is not None:
            month = np.maximum(month, in_year & (months == named.month))
        if named.day is not None:
            near = np.maximum(near, np.exp(-_days_from(named, stamps, years) / _DAYS_OF_DECAY))
    return {"date_near": near, "date_month": month, "date_year": year}


def _days_from(named: DateNamed, stamps: IntArray, years: IntArray) -> npt.NDArray[np.float64]:
    """Return days between each time and the day that is named; of its own year, if none is."""
    out = np.full(stamps.shape, np.inf)
    for year in {named.year} if named.year is not None else set(years.tolist()):
        try:
            day = datetime(year, named.month or 1, named.day or 1, 12, tzinfo=UTC)
        except ValueError:  # 29 February of another year
            continue
        noon = (day - _EPOCH) // timedelta(microseconds=1)
        out = np.minimum(out, np.abs(stamps - noon) / MICROSECONDS_A_DAY)
    return out


def session_signals(scene: Scene, score: FloatArray) -> Mapping[str, FloatArray]:
    """Say how good the session of an event is, by its candidates.

    Parameters
    ----------
    scene : Scene
        The question and its candidates.
    score : ndarray of shape (n,)
        Of each candidate by itself.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        ``session_best``: the highest score in its session. ``session_mean``: the mean of the three
        highest. ``session_coverage``: share of the question's idf that the candidates of its
        session hold together.
    """
    sessions = scene.view.sessions[scene.rows]
    kinds, group = np.unique(sessions, return_inverse=True)
    held = np.zeros((kinds.size, scene.idf.size))
    holders, words = np.nonzero(scene.holds[scene.own])
    held[group[holders], words] = 1.0
    total = float(scene.idf.sum())
    covered = held @ scene.idf / total if total else np.zeros(kinds.size)
    best, mean = _best_and_mean_of_three(score, group, kinds.size)
    return {
        "session_best": best[group],
        "session_mean": mean[group],
        "session_coverage": covered[group],
    }


def _best_and_mean_of_three(
    score: FloatArray, group: IntArray, groups: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the highest score of each group, and the mean of its three highest."""
    order = np.lexsort((-score, group))
    ordered, descending = group[order], score[order].astype(np.float64)
    starts = np.searchsorted(ordered, np.arange(groups))
    first = np.arange(order.size) - starts[ordered] < 3
    some = ordered[first]
    sums = np.bincount(some, weights=descending[first], minlength=groups)
    return descending[starts], sums / np.bincount(some, minlength=groups)
