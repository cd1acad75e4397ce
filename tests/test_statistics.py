"""Intervals of rates, and of figures that are counted in groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.statistics import Beta, bootstrap, ratio, wilson


@given(st.integers(1, 500), st.data())
def test_wilsons_interval_is_that_of_scipy(n: int, data: st.DataObject) -> None:
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    k = data.draw(st.integers(0, n))
    theirs = binomtest(k, n).proportion_ci(method="wilson")
    mine = wilson(k / n, n)
    assert mine.low == pytest.approx(theirs.low, abs=1e-9)
    assert mine.high == pytest.approx(theirs.high, abs=1e-9)


@given(st.floats(-2, 5), st.floats(-2, 5), st.floats(0.01, 0.999))
def test_the_interval_of_a_belief_is_that_of_scipy(a: float, b: float, share: float) -> None:
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    belief = Beta(10.0**a, 10.0**b)
    ends = betaincinv(belief.alpha, belief.beta, [(1 - share) / 2, 1 - (1 - share) / 2])
    assert belief.interval(share) == pytest.approx(ends.tolist(), abs=1e-10)


@pytest.mark.parametrize("belief", [Beta(1e18, 1.0), Beta(1e-320, 1.0), Beta(1.0, 1e18)])
def test_the_interval_of_a_belief_on_the_edge_lies_within_bounds(belief: Beta) -> None:
    low, high = belief.interval()
    assert 0.0 <= low <= high <= 1.0


def test_one_group_has_no_spread_and_no_bounds() -> None:
    low, high = bootstrap(np.array([[3.0, 5.0]]), ratio, resamples=10, seed=0)
    assert np.isnan([*low, *high]).all()


@given(st.integers(2, 12), st.integers(1, 300), st.integers(0, 9))
def test_bounds_are_percentiles_of_means_of_drawn_groups(
    groups: int, resamples: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sums = np.column_stack([rng.random(groups), rng.integers(0, 3, groups)])
    low, high = bootstrap(sums, ratio, resamples=resamples, seed=seed)
    again = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        counts = again.multinomial(groups, [1 / groups] * groups)
        drawn = np.repeat(sums, counts, axis=0)
        if drawn[:, 1].sum() > 0:
            means.append(drawn[:, 0].sum() / drawn[:, 1].sum())
    if means:
        assert [*low, *high] == pytest.approx(np.quantile(means, [0.025, 0.975]).tolist())
    else:
        assert np.isnan([*low, *high]).all()
