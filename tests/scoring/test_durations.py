"""Times to success, with what was cut off: the product limit, against a naive twin and a truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.scoring import Durations

trials = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=25)


def _durations(told: list[tuple[int, bool]], context: str = "plan") -> Durations:
    durations = Durations()
    for time, cut_off in told:
        durations.add(context, time, cut_off=cut_off)
    return durations


def _twin(told: list[tuple[int, bool]], time: int) -> float:
    """The product over times of the share that did not succeed then, of those seen up to then."""
    kept = [*told, (10**6, True)]
    left = 1.0
    for at in sorted({t for t, cut_off in told if not cut_off and t <= time}):
        seen = sum(t >= at for t, _ in kept)
        left *= 1 - sum(t == at and not cut_off for t, cut_off in told) / seen
    return 1 - left


@given(trials, st.integers(0, 15))
def test_the_chance_is_the_product_limit(told: list[tuple[int, bool]], time: int) -> None:
    able = any(not cut_off for _, cut_off in told)
    expected = _twin(told, time) if able else 1.0
    assert _durations(told).done_by(time) == pytest.approx(expected)


@given(trials.filter(lambda told: any(not cut_off for _, cut_off in told)))
def test_the_chance_rises_with_time_and_stays_below_one(told: list[tuple[int, bool]]) -> None:
    durations = _durations(told)
    chances = [durations.done_by(time) for time in range(15)]
    assert chances == sorted(chances)
    assert chances[0] >= 0
    assert chances[-1] < 1


@given(trials, trials)
def test_what_never_succeeded_says_nothing_of_how_long_success_takes(
    told: list[tuple[int, bool]], vain: list[tuple[int, bool]]
) -> None:
    durations, alone = _durations(told), _durations(told)
    for time, _ in vain:
        durations.add("vain", time, cut_off=True)
    assert [durations.done_by(t) for t in range(13)] == [alone.done_by(t) for t in range(13)]


def test_cutting_off_does_not_make_success_look_quicker() -> None:
    rng = np.random.default_rng(3)
    times, ends = rng.exponential(10, 4000), rng.uniform(0, 30, 4000)
    durations = Durations()
    for time, end in zip(times, ends, strict=True):
        durations.add("plan", min(time, end), cut_off=bool(end < time))
    for time in (3, 10, 20):
        assert durations.done_by(time) == pytest.approx(1 - np.exp(-time / 10), abs=0.03)
    seen = times[times <= ends]
    assert np.mean(seen <= 10) > durations.done_by(10) + 0.1, "wins alone are the quick ones"
