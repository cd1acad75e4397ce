"""The Gaussian process of an advisor, on what no course of episodes happens to bring up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cvx.learn.advisor.gaussian_process import GaussianProcess, Likeness, Sample


def likeness_of(*table: list[float]) -> Likeness:
    """Return how alike actions are, by a table of them."""
    return lambda a, b: np.array(table)[np.ix_(a, b)]


@pytest.mark.requirement("B11")
def test_likenesses_that_make_no_covariance_are_fitted_all_the_same() -> None:
    # The second action is like both others, which are unlike each other.
    like = likeness_of([1.0, 0.95, 0.0], [0.95, 1.0, 0.95], [0.0, 0.95, 1.0])
    process = GaussianProcess()
    process.logs |= {"likeness": 0.0, "words": math.log(3.0), "own": math.log(0.02)}
    worth = np.array([1.0, 0.0, 1.0])
    pairs = np.ones((3, 1)), np.arange(3), np.zeros(3, np.int64), np.zeros((3, 3))
    sample = Sample(*pairs, worth, np.full(3, 1e-4))
    overlap = process._overlap(pairs, pairs, like)
    assert np.linalg.eigvalsh(process._kernel(process.logs, overlap) + 0.02 * np.eye(3))[0] < 0
    mean, variance = process.fit(sample, ["word"], like, (0.0, 1.0))
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    told, doubt = process.predict(*pairs, like)
    assert np.isfinite(told).all()
    assert (doubt > 0).all()


@pytest.mark.requirement("B11")
def test_relevances_stay_numbers_where_likenesses_make_no_covariance() -> None:
    # What a word explains is a root of a sum of squares, which comes out below 0 here.
    like = likeness_of([1.0, 0.5, 0.95], [0.5, 1.0, 0.95], [0.95, 0.95, 1.0])
    process = GaussianProcess()
    process.logs |= {"likeness": 0.0, "words": math.log(3.0), "own": math.log(0.02)}
    pairs = np.ones((3, 1)), np.arange(3), np.zeros(3, np.int64), np.zeros((3, 3))
    sample = Sample(*pairs, np.array([0.0, 1.0, 1.0]), np.full(3, 1e-4))
    for _ in range(2):  # what is learned of words holds from the next fit on
        mean, _ = process.fit(sample, ["word"], like, (0.0, 1.0), tries=0)
        assert np.isfinite(mean).all()
    assert np.isfinite(process.lam).all()
    assert np.isfinite(process.predict(*pairs, like)[0]).all()
    # What such a process saved by an earlier version is not taken over.
    saved = process.saved()
    saved["words"][1] = np.array([math.nan])
    with pytest.raises(ValueError, match="no number"):
        GaussianProcess().restore(saved, *pairs)
