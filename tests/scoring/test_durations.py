"""Times to success: the chance that a success is through by a time, against a naive twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.scoring import Durations

successes = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=25)


def _durations(told: list[tuple[str, int]]) -> Durations:
    durations = Durations()
    for context, time in told:
        durations.add(context, time)
    return durations


@given(successes, st.integers(0, 15), st.sampled_from("abc"))
def test_the_chance_is_the_share_that_was_through(
    told: list[tuple[str, int]], time: int, context: str
) -> None:
    through = sum(t <= time for _, t in told)
    own = [t for c, t in told if c == context]
    prior = through / (len(told) + 1) if told else 1.0
    expected = (sum(t <= time for t in own) + prior) / (len(own) + 1)
    assert _durations(told).done_by(time, context) == pytest.approx(expected)


@given(successes.filter(bool), st.sampled_from("abc"))
def test_the_chance_rises_with_time_and_stays_below_one(
    told: list[tuple[str, int]], context: str
) -> None:
    durations = _durations(told)
    chances = [durations.done_by(time, context) for time in range(-1, 15)]
    assert chances == sorted(chances)
    assert chances[0] == 0
    assert chances[-1] < 1


def test_the_chance_is_calibrated_for_the_next_success() -> None:
    rng = np.random.default_rng(3)
    hits, told = [], []
    for _ in range(4000):
        durations = Durations()
        *past, latest = rng.exponential(10, 6)
        for time in past:
            durations.add("plan", time)
        hits.append(latest <= 8)
        told.append(durations.done_by(8, "another plan"))
    assert np.mean(told) == pytest.approx(5 / 6 * np.mean(hits), abs=0.02)


def test_a_plan_of_its_own_pace_is_known_by_it() -> None:
    durations = _durations([("a", 3)] * 20 + [("b", 12)] * 20)
    assert durations.done_by(5, "a") > 0.95
    assert durations.done_by(5, "b") < 0.05
    assert durations.done_by(5, "c") == pytest.approx(20 / 41)


@pytest.mark.parametrize("time", [-1.0, math.nan, "5", None])
def test_a_time_that_is_none_is_refused(time: object) -> None:
    durations = Durations()
    with pytest.raises(InvalidInputError, match="time is"):
        durations.add("plan", time)  # type: ignore[arg-type]
    assert durations.done_by(1, "plan") == 1.0
