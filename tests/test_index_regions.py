"""Regions: hubs of a level, who belongs to them, when they change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
    UnknownError,
)
from cvx.index import RawIndex
from tests.index_twin import Twin, built, twins

Matrix = npt.NDArray[np.float64]


def clusters(rows: int, seed: int = 0, dim: int = 12) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(30, dim))
    return np.asarray(centres[rng.integers(0, 30, rows)] + 0.3 * rng.normal(size=(rows, dim)))


def index_of(rows: Matrix, *, seed: int = 0, exact_below: int = 10_000) -> RawIndex:
    index = RawIndex(rows.shape[1], m=8, seed=seed, exact_below=exact_below)
    index.bulk_insert(np.arange(len(rows)) % 20, np.arange(len(rows)), rows)
    index.refresh_regions()
    return index


def nearest_hub(rows: Matrix, hubs: npt.NDArray[np.int64], vectors: Matrix) -> Matrix:
    """Cosine to each hub, exactly."""
    unit = rows[hubs] / np.linalg.norm(rows[hubs], axis=1, keepdims=True)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ unit.T)


@pytest.mark.requirement("V2", "V19")
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_a_region_is_its_hub_and_what_lies_nearest_to_it(seed: int) -> None:
    rows = clusters(600, seed)
    index = index_of(rows, seed=seed)
    for level in index.region_levels:
        hubs = index.regions(level)
        nodes, regions = index.region_assignments(level)
        assert nodes.tolist() == list(range(600))
        cosines = nearest_hub(rows, hubs, rows)
        given_ = cosines[np.arange(600), np.searchsorted(hubs, regions)]
        np.testing.assert_allclose(given_, cosines.max(axis=1), atol=1e-5)
        assert np.array_equal(index.assign_region(rows, level), regions)
        assert index.assign_region(rows[5], level) == regions[5]
        members = [index.region_members(int(hub), level).tolist() for hub in hubs]
        assert sorted(n for part in members for n in part) == nodes.tolist()
        for hub, part in zip(hubs.tolist(), members, strict=True):
            assert hub in part
            assert part == nodes[regions == hub].tolist()


@pytest.mark.requirement("V2")
def test_levels_thin_out_and_the_ground_level_is_every_node() -> None:
    index = index_of(clusters(2000))
    counts = [len(index.regions(level)) for level in index.region_levels]
    assert index.region_levels == tuple(range(len(counts)))
    assert counts[0] == 2000
    # One in m = 8 goes up a level.
    assert 180 < counts[1] < 330
    assert counts == sorted(counts, reverse=True)
    assert set(index.regions(1)) >= set(index.regions(2))


@pytest.mark.requirement("V2")
def test_the_same_seed_gives_the_same_regions_and_another_seed_others() -> None:
    rows = clusters(800)
    one, two, other = (index_of(rows, seed=s) for s in (5, 5, 6))
    assert one.regions(1).tolist() == two.regions(1).tolist()
    assert one.region_assignments(1)[1].tolist() == two.region_assignments(1)[1].tolist()
    assert one.regions(1).tolist() != other.regions(1).tolist()


def test_regions_do_not_depend_on_size_thresholds_or_batches() -> None:
    rows = clusters(700)
    whole = index_of(rows)
    walked = index_of(rows, exact_below=0)
    slowly = RawIndex(12, m=8)
    for start in range(0, 700, 90):
        part = np.arange(start, min(start + 90, 700))
        slowly.bulk_insert(part % 20, part, rows[part])
    slowly.refresh_regions()
    for index in (walked, slowly):
        assert index.region_levels == whole.region_levels
        assert index.regions(1).tolist() == whole.regions(1).tolist()
        assert np.array_equal(index.region_assignments(1)[1], whole.region_assignments(1)[1])


@pytest.mark.requirement("V2")
def test_assignment_agrees_with_the_exact_nearest_hub_on_real_vectors(data: Path) -> None:
    rows = np.load(data / "ann" / "text_base_f16.npy")[:8000].astype(np.float64)
    queries = np.load(data / "ann" / "text_q_f16.npy").astype(np.float64)
    index = RawIndex(rows.shape[1])
    index.bulk_insert(np.zeros(len(rows), int), np.arange(len(rows)), rows)
    index.refresh_regions()
    for level in (0, 1, 2):
        hubs = index.regions(level)
        cosines = nearest_hub(rows, hubs, queries)
        found = index.assign_region(queries, level)
        chosen = cosines[np.arange(len(queries)), np.searchsorted(hubs, found)]
        assert (cosines.max(axis=1) - chosen < 1e-6).mean() >= 0.99


def test_an_epoch_lasts_until_the_vectors_double_a_hub_goes_or_the_centre_moves() -> None:
    rows = clusters(500)
    index = index_of(rows[:200])
    epoch, hubs = index.region_epoch, index.regions(1).tolist()
    index.bulk_insert(np.zeros(150, int), np.arange(150), rows[200:350])
    assert (index.region_epoch, index.regions(1).tolist()) == (epoch, hubs)
    assert len(index.region_assignments(1)[0]) == 350
    index.bulk_insert(np.zeros(60, int), np.arange(60), rows[350:410])
    assert index.region_epoch > epoch
    assert len(index.regions(1)) > len(hubs)

    epoch = index.region_epoch
    no_hub = next(n for n in range(410) if n not in index.regions(1))
    index.delete(int(index.regions(1)[0]))
    assert index.region_epoch > epoch
    epoch = index.region_epoch
    index.center = "mean"
    assert index.region_epoch > epoch
    epoch = index.region_epoch
    index.refresh_regions()
    assert index.region_epoch > epoch
    assert no_hub in index


@pytest.mark.requirement("V19", "V5")
@given(twins(max_rows=30, metric="l2"), st.integers(1, 5), st.sampled_from([0.25, 0.5, 1.0]))
def test_region_trajectory_smooths_the_shares_of_each_window(
    twin: Twin, window: int, alpha: float
) -> None:
    index = built(twin)
    index.refresh_regions()
    if not index.region_levels:
        assert not [n for n in twin.live() if twin.rows[n].vector is not None]
        return
    level = index.region_levels[0]
    hubs = index.regions(level).tolist()
    nodes, regions = index.region_assignments(level)
    region_of = dict(zip(nodes.tolist(), regions.tolist(), strict=True))
    for entity in range(4):
        line = [n for n in twin.timeline("", entity) if n in region_of]
        if not line:
            continue
        centres, shares = index.region_trajectory(entity, level, window, alpha)
        first = twin.rows[line[0]].timestamp
        windows = (twin.rows[line[-1]].timestamp - first) // window + 1
        assert shares.shape == (windows, len(hubs))
        smooth = np.zeros(len(hubs))
        for w in range(windows):
            start = first + w * window
            inside = [n for n in line if start <= twin.rows[n].timestamp < start + window]
            present = np.array([sum(region_of[n] == hub for n in inside) for hub in hubs], float)
            if inside:
                present /= len(inside)
                smooth = present if w == 0 else alpha * present + (1 - alpha) * smooth
            np.testing.assert_allclose(shares[w], smooth, atol=1e-6)
            assert centres[w] == pytest.approx(start + window / 2)


def test_what_is_no_level_region_or_window_is_refused() -> None:
    index = index_of(clusters(300))
    for level in (-1, 99):
        for call in (
            lambda: index.regions(level),  # noqa: B023
            lambda: index.region_members(0, level),  # noqa: B023
            lambda: index.region_assignments(level),  # noqa: B023
            lambda: index.assign_region(np.ones(12), level),  # noqa: B023
            lambda: index.region_trajectory(1, level, 5, 0.5),  # noqa: B023
        ):
            with pytest.raises(UnknownError, match=rf"{level}.*0, 1"):
                call()
    no_hub = next(n for n in range(300) if n not in index.regions(1))
    with pytest.raises(UnknownError, match=str(no_hub)):
        index.region_members(no_hub, 1)
    with pytest.raises(InvalidVectorError, match="dimensions"):
        index.assign_region(np.ones(3), 1)
    with pytest.raises(UnknownError, match="77"):
        index.region_trajectory(77, 1, 5, 0.5)
    for window, alpha in ((0, 0.5), (5, 0.0), (5, 1.5), (5, float("nan"))):
        with pytest.raises(InvalidInputError):
            index.region_trajectory(1, 1, window, alpha)


def test_an_empty_index_has_no_regions() -> None:
    index = RawIndex(3)
    index.refresh_regions()
    assert index.region_levels == ()
    with pytest.raises(UnknownError):
        index.regions(0)
