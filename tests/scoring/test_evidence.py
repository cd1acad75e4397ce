"""A chance of success from what similar things came to, and how sure that makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from cvx.errors import InvalidInputError
from cvx.scoring import Beta, evidence_posterior

outcomes = st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1)), max_size=30)


@pytest.mark.requirement("V11")
@given(outcomes, st.floats(0.01, 0.99), st.floats(0.01, 10), st.floats(0, 6))
def test_it_is_the_prior_and_a_share_of_a_trial_for_each_outcome(
    pairs: list[tuple[float, float]], mean: float, strength: float, exponent: float
) -> None:
    rewards, similarities = [r for r, _ in pairs], [s for _, s in pairs]
    found = evidence_posterior(
        rewards, similarities, mean=mean, strength=strength, exponent=exponent
    )
    a, b = strength * mean, strength * (1 - mean)
    for reward, similarity in pairs:
        if similarity > 0:
            a += similarity**exponent * reward
            b += similarity**exponent * (1 - reward)
    assert found == pytest.approx((a, b))
    assert min(mean, *rewards, 1) - 1e-9 <= found.mean <= max(mean, *rewards, 0) + 1e-9


@given(st.floats(0.05, 200), st.floats(0.05, 200), st.floats(0.5, 0.99))
def test_its_interval_is_that_of_the_beta_distribution(a: float, b: float, level: float) -> None:
    low, high = Beta(a, b).interval(level)
    theirs = stats.beta(a, b).interval(level)
    assert (low, high) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.requirement("V11")
def test_without_evidence_it_says_so_by_a_wide_interval() -> None:
    nothing = evidence_posterior([], [], mean=0.4)
    much = evidence_posterior([1, 0] * 50, np.ones(100), mean=0.4)
    assert nothing.mean == 0.4
    assert nothing.interval()[1] - nothing.interval()[0] > 0.9
    assert much.interval()[1] - much.interval()[0] < 0.2


def test_an_unknown_outcome_is_no_evidence() -> None:
    assert evidence_posterior([1, float("nan")], [1, 1]) == evidence_posterior([1], [1])


@pytest.mark.parametrize(
    ("rewards", "similarities", "kw", "error"),
    [
        ([1.5], [1.0], {}, InvalidInputError),
        ([1.0], [float("inf")], {}, InvalidInputError),
        ([1.0], [1.0, 1.0], {}, InvalidInputError),
        ([1.0], [1.0], {"mean": 1.0}, InvalidInputError),
        ([1.0], [1.0], {"strength": 0.0}, InvalidInputError),
        ([1.0], [1.0], {"exponent": -1.0}, InvalidInputError),
    ],
)
def test_what_is_no_evidence_is_refused(
    rewards: list[float], similarities: list[float], kw: dict[str, float], error: type[Exception]
) -> None:
    with pytest.raises(error):
        evidence_posterior(rewards, similarities, **kw)


def test_a_level_that_is_no_probability_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        Beta(1.0, 1.0).interval(1.0)
