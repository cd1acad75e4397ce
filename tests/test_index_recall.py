"""Recall on real sentence vectors, plain and under filters; one index for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cvx.index import RawIndex
from cvx.types import Filter

FRACTIONS = (0.5, 0.1, 0.01, 0.001)
K = 10


@dataclass
class Real:
    """The base and the queries of shared/data/ann, and the index over them."""

    rows: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    index: RawIndex

    def recall(
        self, ids: npt.NDArray[np.int64], accepted: npt.NDArray[np.bool_] | None = None
    ) -> float:
        cosines = self.queries @ self.rows.T
        if accepted is not None:
            cosines[:, ~accepted] = -np.inf
        # By value, so that a duplicate of a neighbour counts as it.
        worst = -np.sort(-cosines, axis=1)[:, K - 1 : K]
        found = np.take_along_axis(cosines, ids, axis=1)
        return float((found >= worst - 1e-6).mean())


def tag(fraction: float) -> str:
    return f"{fraction:g}"


def accepted(rows: int, fraction: float) -> npt.NDArray[np.bool_]:
    mask = np.zeros(rows, np.bool_)
    mask[np.random.default_rng(int(1 / fraction)).permutation(rows)[: round(rows * fraction)]] = (
        True
    )
    return mask


@pytest.fixture(scope="module")
def real(data: Path) -> Real:
    rows = np.load(data / "ann" / "text_base_f16.npy").astype(np.float32)
    queries = np.load(data / "ann" / "text_q_f16.npy").astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    masks = {f: accepted(len(rows), f) for f in FRACTIONS}
    tags = [[tag(f) for f, mask in masks.items() if mask[n]] for n in range(len(rows))]
    index = RawIndex(rows.shape[1])
    index.bulk_insert(np.arange(len(rows)) // 50, np.arange(len(rows)), rows, tags=tags)
    return Real(rows, queries, index)


@pytest.mark.slow
@pytest.mark.requirement("V19")
def test_default_settings_find_95_of_100_neighbours(real: Real) -> None:
    assert real.recall(real.index.search(real.queries, K)[0]) >= 0.95


@pytest.mark.slow
@pytest.mark.requirement("V19")
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_filters_find_99_of_100_neighbours(real: Real, fraction: float) -> None:
    ids, _ = real.index.search(real.queries, K, where=Filter(tags=[tag(fraction)]))
    assert (ids >= 0).all()
    assert real.recall(ids, accepted(len(real.rows), fraction)) >= 0.99


@pytest.mark.slow
@pytest.mark.requirement("V19")
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_window_in_time_finds_99_of_100_neighbours(real: Real, fraction: float) -> None:
    count = round(len(real.rows) * fraction)
    since = (len(real.rows) - count) // 2
    window = np.zeros(len(real.rows), np.bool_)
    window[since : since + count] = True
    ids, _ = real.index.search(real.queries, K, where=Filter(since=since, until=since + count))
    assert (ids >= 0).all()
    assert real.recall(ids, window) >= 0.99


@pytest.mark.slow
@pytest.mark.requirement("V2")
def test_assigned_regions_are_the_exact_ones_for_99_of_100(real: Real) -> None:
    real.index.refresh_regions()
    # Level 0 has more hubs than a scan is allowed: there the walk has to find them.
    for level in (0, 1):
        hubs = real.index.regions(level)
        cosines = real.queries @ real.rows[hubs].T
        found = np.asarray(real.index.assign_region(real.queries, level))
        chosen = cosines[np.arange(len(found)), np.searchsorted(hubs, found)]
        assert (cosines.max(axis=1) - chosen < 1e-6).mean() >= 0.99
