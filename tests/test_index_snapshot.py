"""Snapshots: everything comes back, and no damage goes unnoticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cvx.errors import (
    InvalidInputError,
    SnapshotError,
)
from cvx.index import RawIndex
from tests.index_twin import Twin, built, twins, vectors

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot with every kind of content."""
    rng = np.random.default_rng(0)
    index = RawIndex(8, seed=3)
    index.bulk_insert(
        np.arange(60) % 5,
        np.arange(60),
        [*rng.normal(size=(58, 8)), None, None],
        rewards=[None if n % 3 else 0.5 for n in range(60)],
        namespaces=["" if n % 4 else "other" for n in range(60)],
        tags=[{"x", "y"} if n % 2 else set() for n in range(60)],
        actions=[None if n % 5 else "go to the desk" for n in range(60)],
    )
    index.declare_edge_kind("reminds_of")
    index.add_edge(1, 2, "caused_success", 0.5)
    index.add_edge(2, 59, "reminds_of", 0.25)
    index.delete([7])
    index.center = rng.normal(size=8)
    index.refresh_regions()
    index.save(tmp_path / "a.cvx")
    return tmp_path / "a.cvx"


@pytest.mark.requirement("V10", "V19")
@SHARED_FOLDER
@given(twins(), st.lists(vectors(), min_size=1, max_size=3), st.booleans())
def test_everything_comes_back(
    tmp_path: Path, twin: Twin, queries: list[list[int]], walked: bool
) -> None:
    index = built(twin, exact_below=0 if walked else 10_000)
    index.declare_edge_kind("reminds_of")
    index.refresh_regions()
    index.save(tmp_path / "a.cvx")
    read = RawIndex.load(tmp_path / "a.cvx")
    assert read.params == index.params
    # Bytes are of what is reserved, which growth leaves larger than need be.
    assert read.stats() | {"bytes": 0} == index.stats() | {"bytes": 0}
    assert read.edges() == index.edges()
    assert read.edge_kinds == index.edge_kinds
    assert (read.region_epoch, read.region_levels) == (index.region_epoch, index.region_levels)
    for n in twin.live():
        assert read.step(n) == index.step(n)
        assert (read.namespace(n), read.tags(n)) == (index.namespace(n), index.tags(n))
        assert read.recallable(n) == index.recallable(n)
    ours, theirs = index.search(queries, 9), read.search(queries, 9)
    assert ours[0].tobytes() == theirs[0].tobytes()
    assert ours[1].tobytes() == theirs[1].tobytes()
    for level in index.region_levels:
        assert read.regions(level).tolist() == index.regions(level).tolist()
    read.save(tmp_path / "b.cvx")
    assert (tmp_path / "a.cvx").read_bytes() == (tmp_path / "b.cvx").read_bytes()
    # Ids go on where they stopped, deleted ones included.
    assert read.insert(1, 1, queries[0]) == index.insert(1, 1, queries[0]) == len(twin.rows)


def test_saving_over_a_snapshot_replaces_it_and_leaves_nothing_beside(saved: Path) -> None:
    index = RawIndex.load(saved)
    index.insert(1, 1, np.ones(8))
    index.save(saved)
    assert len(RawIndex.load(saved)) == len(index)
    assert [p.name for p in saved.parent.iterdir()] == ["a.cvx"]


@pytest.mark.parametrize("spoil", ["path.write_bytes(b'')", "shutil.copyfile(other, path)"])
def test_a_process_that_read_a_snapshot_outlives_what_is_done_to_the_file(
    tmp_path: Path, spoil: str
) -> None:
    index = RawIndex(64)
    index.bulk_insert(
        np.zeros(3000, int), np.arange(3000), np.random.default_rng(0).random((3000, 64))
    )
    index.save(tmp_path / "a.cvx")
    RawIndex(64).save(tmp_path / "b.cvx")
    # A process of its own: the system ends one whose map lost its file.
    code = f"""
import pathlib, shutil
import numpy as np
from cvx.index import RawIndex
path, other = pathlib.Path("a.cvx"), pathlib.Path("b.cvx")
index = RawIndex.load(path)
{spoil}
index.validate()
print(len(index), len(index.search(np.ones(64), 3000)[0]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "3000 3000\n"), ran.stderr


def test_a_mapped_snapshot_takes_no_memory_and_outlives_its_replacement(saved: Path) -> None:
    read, mapped = RawIndex.load(saved), RawIndex.load(saved, mmap=True)
    assert mapped.stats()["bytes"] < read.stats()["bytes"]
    RawIndex(8).save(saved)
    found = [index.search(np.ones((2, 8)), 60) for index in (read, mapped)]
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert found[0][1].tobytes() == found[1][1].tobytes()


def test_saving_onto_what_is_no_regular_file_is_refused(saved: Path, tmp_path: Path) -> None:
    index = RawIndex(2)
    (tmp_path / "link").symlink_to(saved)
    for place in ("link", ""):
        with pytest.raises(SnapshotError, match=r"no regular file.*check the path"):
            index.save(tmp_path / place)
    assert (tmp_path / "link").is_symlink()
    assert len(RawIndex.load(saved)) > 0


def test_the_centre_and_the_rows_as_inserted_come_back(saved: Path) -> None:
    index = RawIndex.load(saved)
    assert index.center is not None
    rows = np.random.default_rng(0).normal(size=(58, 8)).astype(np.float32)
    vector = index.vector(3)
    assert vector is not None
    assert vector.tobytes() == rows[3].tobytes()


def test_every_truncation_is_noticed(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    cut = tmp_path / "cut.cvx"
    for length in {*range(0, len(whole), 97), *range(60), len(whole) - 1}:
        cut.write_bytes(whole[:length])
        with pytest.raises((SnapshotError, SnapshotError), match=r"."):
            RawIndex.load(cut)


def test_every_flipped_bit_is_noticed(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    rng = np.random.default_rng(1)
    bits = {*range(8 * 64), *rng.integers(0, 8 * len(whole), 600).tolist()}
    spoilt = tmp_path / "spoilt.cvx"
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        spoilt.write_bytes(damaged)
        with pytest.raises(SnapshotError):
            RawIndex.load(spoilt, verify=True)


def test_only_damage_to_the_rows_is_left_for_the_first_read(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    good = RawIndex.load(saved)
    rows = [good.vector(n) for n in range(60) if n in good]
    spoilt = tmp_path / "spoilt.cvx"
    opened = noticed = 0
    for bit in np.random.default_rng(2).integers(0, 8 * len(whole), 600).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        spoilt.write_bytes(damaged)
        try:
            index = RawIndex.load(spoilt)
        except SnapshotError:
            continue
        opened += 1
        assert [index.step(n) for n in range(60) if n in index] == [
            good.step(n) for n in range(60) if n in good
        ]
        try:
            read = [index.vector(n) for n in range(60) if n in index]
        except SnapshotError:
            noticed += 1
            assert len(index) == len(good)
            with pytest.raises(SnapshotError):
                index.save(spoilt)
        else:
            # It is in a code, which nobody asked for.
            for row, other in zip(rows, read, strict=True):
                assert repr(row) == repr(other)
    assert opened > noticed > 0


def test_metadata_comes_back_under_the_checksum_of_the_header(saved: Path) -> None:
    index = RawIndex.load(saved)
    assert index.metadata == b""
    index.save(saved, metadata=b"store 7, commit 12")
    assert RawIndex.read_metadata(saved) == b"store 7, commit 12"
    assert RawIndex.load(saved).metadata == b"store 7, commit 12"
    whole = saved.read_bytes()
    at = whole.index(b"commit")
    saved.write_bytes(whole[:at] + b"C" + whole[at + 1 :])
    with pytest.raises(SnapshotError, match="header"):
        RawIndex.read_metadata(saved)
    with pytest.raises(InvalidInputError, match=r"65537 bytes.*65,536"):
        index.save(saved, metadata=bytes(65_537))


def test_an_index_of_any_life_is_sound(saved: Path) -> None:
    index = RawIndex.load(saved, verify=True)
    index.validate()
    index.delete([1, 2, 3])
    index.validate()


@SHARED_FOLDER
@given(st.binary(max_size=300), st.integers(0, 40))
def test_any_bytes_are_refused_by_name(tmp_path: Path, content: bytes, kept: int) -> None:
    path = tmp_path / "any.cvx"
    if not (tmp_path / "good").exists():
        RawIndex(2).save(tmp_path / "good")
    whole = (tmp_path / "good").read_bytes()
    for data in (content, whole[:kept] + content):
        path.write_bytes(data)
        if data != whole:
            with pytest.raises(SnapshotError):
                RawIndex.load(path)


def test_what_went_wrong_has_its_own_name(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    path = tmp_path / "b.cvx"
    path.write_bytes(b"PK\x03\x04" + b"0" * 500)
    with pytest.raises(SnapshotError, match=r"b\.cvx|snapshot"):
        RawIndex.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SnapshotError):
        RawIndex.load(path)
    path.write_bytes(whole[:-1] + b"?")
    with pytest.raises(SnapshotError):
        RawIndex.load(path)
    path.write_bytes(whole[:8] + b"\xff\x00\x00\x00" + whole[12:])
    with pytest.raises(SnapshotError, match="255"):
        RawIndex.load(path)
    with pytest.raises(SnapshotError, match=r"nowhere\.cvx"):
        RawIndex.load(tmp_path / "nowhere.cvx")
    with pytest.raises(SnapshotError, match="nowhere"):
        RawIndex.load(saved).save(tmp_path / "nowhere" / "a.cvx")
    with pytest.raises(SnapshotError):
        RawIndex.load(tmp_path)
