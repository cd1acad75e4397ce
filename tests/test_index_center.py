"""Centering: distances are taken between what is left after the centre."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, InvalidVectorError, UnknownError
from cvx.index import RawIndex
from tests.index_twin import DIM, Twin, assert_nearest, built, twins, vectors


@pytest.mark.requirement("V19")
@given(twins(), vectors(), st.integers(1, 20), st.booleans())
def test_search_is_a_search_among_centred_rows(
    twin: Twin, query: list[int], k: int, walked: bool
) -> None:
    index = built(twin, exact_below=0 if walked else 10_000)
    # A quarter keeps every difference away from zero, and exact.
    center = np.array([0.25, -0.5, 0.25, 0.75])
    index.center = center
    twin.center = center
    ids, distances = index.search(query, k, ef=64)
    assert_nearest(twin, ids, distances, query, k, None)
    assert index.center is not None
    assert index.center.tolist() == center.tolist()
    index.center = None
    twin.center = None
    ids, distances = index.search(query, k, ef=64)
    assert_nearest(twin, ids, distances, query, k, None)


def test_the_mean_is_that_of_the_stored_vectors() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, DIM)) + 5
    index = RawIndex(DIM)
    index.bulk_insert(np.zeros(300, int), np.arange(300), rows)
    index.delete(range(100, 300))
    index.center = "mean"
    assert index.center is not None
    np.testing.assert_allclose(index.center, rows[:100].mean(axis=0), rtol=1e-5)


@pytest.mark.requirement("V19")
def test_a_common_part_hides_the_differences_and_centering_shows_them() -> None:
    rng = np.random.default_rng(1)
    shape = rng.normal(size=(2000, 16))
    index = RawIndex(16, exact_below=0)
    index.bulk_insert(np.zeros(2000, int), np.arange(2000), shape + 40)
    queries = shape[:50] + 0.05 * rng.normal(size=(50, 16)) + 40
    before = index.search(queries, 2)[1]
    index.center = np.full(16, 40.0)
    ids, after = index.search(queries, 2)
    assert ids[:, 0].tolist() == list(range(50))
    # Second best, seen against best: nothing before, plain to see after.
    assert (before[:, 1] < 0.01).all()
    assert (after[:, 1] > 0.05).all()


def test_what_is_inserted_later_is_centred_too() -> None:
    index = RawIndex(2, "l2")
    index.center = [1, 1]
    index.insert(1, 1, [2, 1])
    assert index.search([1, 2])[1].tolist() == [2.0]


def test_a_centre_that_cannot_be_is_refused_and_changes_nothing() -> None:
    index = RawIndex(2)
    with pytest.raises(UnknownError, match="vector"):
        index.center = "mean"
    index.bulk_insert([1, 1], [1, 2], [[1, 0], [0, 1]])
    with pytest.raises(InvalidVectorError, match="3 dimensions"):
        index.center = [1, 2, 3]
    with pytest.raises(InvalidVectorError):
        index.center = [np.nan, 1]
    with pytest.raises(InvalidInputError, match="median"):
        index.center = "median"
    assert index.center is None
    assert index.search([1, 0], 1)[0].tolist() == [0]
