from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.evaluation.metrics import interval

VALUES = st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd")), min_size=1, max_size=30)


@given(VALUES, st.integers(0, 5))
def test_bounds_hold_the_means_of_groups_and_are_the_same_for_the_same_seed(
    rows: list[tuple[float, str]], seed: int
) -> None:
    values, groups = (list(column) for column in zip(*rows, strict=True))
    found = interval(values, groups, seed=seed, resamples=200)
    again = interval(values, groups, seed=seed, resamples=200)
    assert found == pytest.approx(again, rel=0, abs=0, nan_ok=True)
    means = [np.mean([v for v, g in rows if g == group]) for group in set(groups)]
    if len(means) > 1:
        assert min(means) - 1e-9 <= found.low <= found.high <= max(means) + 1e-9
    assert found.mean == pytest.approx(np.mean(values))
    assert found.n == len(values)


def test_one_group_says_nothing_of_its_spread() -> None:
    found = interval([0.0, 1.0, 1.0], ["a"] * 3)
    assert found.mean == pytest.approx(2 / 3)
    assert np.isnan([found.low, found.high]).all()


def test_it_covers_the_true_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    groups = [str(at // 5) for at in range(200)]
    covered = 0
    for seed in range(200):
        # Questions of one group share a shift: the spread is that of 40 groups, not 200 values.
        values = np.repeat(rng.normal(size=40), 5) + 0.1 * rng.normal(size=200)
        found = interval(values, groups, seed=seed, resamples=300)
        covered += found.low <= 0.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(
    ("values", "groups", "level"), [([], [], 0.95), ([1.0], ["a", "b"], 0.95), ([1.0], ["a"], 1.0)]
)
def test_what_has_no_interval_is_refused(
    values: list[float], groups: list[str], level: float
) -> None:
    with pytest.raises(InvalidInputError):
        interval(values, groups, level=level)
