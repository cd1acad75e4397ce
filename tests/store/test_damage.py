"""Damaged files: an index is built again, a row is named, a lost tail is said."""

import random
import shutil
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from cvx.errors import (
    CvxError,
    DamagedRowsWarning,
    DamagedStoreError,
    LostTailError,
    SnapshotError,
)
from cvx.memory import Memory
from cvx.store import Record
from cvx.store.rows import COLUMNS, KEYS
from cvx.store.snapshots import load
from cvx.types import Cue, Filter
from tests.store.index_comparison import repaired
from tests.store.planted import sql
from tests.store.processes import embedder

GOLDEN = Path(__file__).parent / "golden"


def filled(folder: Path, n: int = 20) -> list[object]:
    with Memory.open(folder, embedder=embedder()) as memory:
        for number in range(n):
            memory.add(f"thing {number} lies in drawer {number % 3}", reward=number / n)
        memory.link(1, 2, "caused", weight=0.5)
        memory.admin.snapshot()
        memory.add("the newest thing")
        return answers(memory)


def answers(memory: Memory) -> list[object]:
    queries = np.random.default_rng(3).normal(size=(4, 16)).astype(np.float32)
    return [
        [(h.node, h.distance, h.reward) for h in memory.recall(Cue(vector=q), k=12)]
        for q in queries
    ]


def snapshots(folder: Path) -> list[Path]:
    return sorted((folder / "index").glob("*.cvx"))


def newest(folder: Path) -> Path:
    return max(snapshots(folder), key=lambda path: int(path.stem))


@pytest.mark.requirement("X9")
def test_every_truncation_of_a_snapshot_is_survived(tmp_path: Path) -> None:
    expected = filled(tmp_path / "m", 6)
    path = newest(tmp_path / "m")
    whole = path.read_bytes()
    manifest = path.with_suffix(".json")
    sidecar = manifest.read_bytes()
    # Every length of the manifest, and lengths over all of the snapshot.
    cuts = random.Random(0).sample(range(len(whole)), 60)
    for length in range(len(sidecar)):
        alone(path, whole)
        write(manifest, sidecar[:length])
        with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
            assert memory.admin.stats()["rebuilds"] == 1
            if length % 20 == 0:
                assert answers(memory) == expected
    for length in cuts:
        alone(path, whole[:length])
        write(manifest, sidecar)
        with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
            assert memory.admin.stats()["rebuilds"] == 1
            assert memory.admin.stats()["snapshots_refused"]
            assert answers(memory) == expected


def test_damaged_tags_that_a_filter_reads_are_called_damage(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug", tags=["kitchen"])
        memory.add("a bed", tags=["bedroom"])
    sql("UPDATE events SET tags = '[kitchen' WHERE event_id = 1")(tmp_path / "m")
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as memory,
        pytest.raises(DamagedStoreError, match="malformed JSON"),
    ):
        memory.recall("mug", where=Filter(tags=["bedroom"]))


def test_a_manifest_that_is_not_what_was_written_is_named_once(tmp_path: Path) -> None:
    filled(tmp_path / "m", 6)
    newest(tmp_path / "m").with_suffix(".json").write_text("?")
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        refused = memory.admin.stats()["snapshots_refused"]
    assert [why.partition(": ")[2] for why in refused] == ["not what was written"]


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def alone(path: Path, content: bytes) -> None:
    for other in path.parent.iterdir():
        other.unlink()
    write(path, content)


@pytest.mark.requirement("X9")
def test_no_flipped_bit_of_a_snapshot_changes_an_answer(tmp_path: Path) -> None:
    expected = filled(tmp_path / "m")
    path = newest(tmp_path / "m")
    whole = path.read_bytes()
    rng = random.Random(1)
    built = 0
    flips = 2000
    for number in range(flips):
        broken = bytearray(whole)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        manifest = path.with_suffix(".json").read_bytes()
        alone(path, bytes(broken))
        write(path.with_suffix(".json"), manifest)
        # Loading is what reads it: all flips go through that, some through a whole open.
        if number % 40 == 0:
            # A rebuild wrote nothing new: there was nothing to add to the newest number.
            with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
                assert answers(memory) == expected
                built += memory.admin.stats()["rebuilds"]
        else:
            with pytest.raises(SnapshotError):
                load(path, len(broken), verify=True)
    assert built == 0 or built <= flips // 40
    print(f"{flips} flips, every one detected")


@pytest.mark.requirement("X9")
def test_a_snapshot_of_another_store_or_history_is_passed_over(tmp_path: Path) -> None:
    expected = filled(tmp_path / "one")
    with Memory.open(tmp_path / "two", embedder=embedder()) as memory:
        for number in range(21):
            memory.add(f"quite another thing {number}")
    for path in (tmp_path / "one" / "index").iterdir():
        path.unlink()
    for path in (tmp_path / "two" / "index").iterdir():
        shutil.copy(path, tmp_path / "one" / "index")
    with Memory.open(tmp_path / "one", embedder=embedder()) as memory:
        assert memory.admin.stats()["rebuilds"] == 1
        assert answers(memory) == expected


@pytest.mark.requirement("X9")
def test_a_record_that_is_gone_is_a_lost_tail_and_lock_goes_on_saying_so(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    filled(folder)
    (folder / "memory.db").unlink()
    for _ in range(2):
        with pytest.raises(LostTailError, match="doctor --repair NEW_FOLDER"):
            Memory.open(folder, embedder=embedder())
    with Memory.open(repaired(folder), embedder=embedder()) as memory:
        assert len(memory) == 0
        memory.add("a new beginning")


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("by", ["lock", "snapshot"])
def test_a_record_that_ends_too_early_is_a_lost_tail(tmp_path: Path, by: str) -> None:
    folder = tmp_path / "m"
    filled(folder)
    older = (folder / "memory.db").read_bytes()
    with Memory.open(folder, embedder=embedder()) as memory:
        lost = memory.add("what will be lost").id
    (folder / "memory.db").write_bytes(older)
    if by == "snapshot":
        (folder / "LOCK").unlink()
    else:
        for path in (folder / "index").iterdir():
            path.unlink()
    with pytest.raises(LostTailError, match="doctor --repair NEW_FOLDER"):
        Memory.open(folder, embedder=embedder())
    new = repaired(folder)
    with Memory.open(new, embedder=embedder()) as memory:
        assert len(memory) == 21
        assert memory.add("another history now").id == lost
    with Memory.open(new, embedder=embedder()) as memory:
        assert memory.get(lost).text == "another history now"
        top = memory.recall("another history now", k=1)[0]
        assert top.event
        assert top.event.event_id == lost


@pytest.mark.requirement("X9")
def test_five_hundred_flips_in_rows_are_all_found_and_named(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        loop = memory.learning.loop()
        for number in range(4):
            run = loop.begin(f"goal {number}", "clean")
            for place in ("sink", "table"):
                decision = loop.recall(Cue(step=f"at the {place}"))
                loop.act(decision, f"go to {place}", decision.hits[:1])
            loop.close(run, float(number % 2 == 0))
        memory.add("an event", aliases=["other words"], metadata={"a": "b"}, source="x")
        memory.link(1, 2, "caused", weight=0.5, why="why", evidence="seen")
    rng = random.Random(5)
    db = sqlite3.connect(tmp_path / "m" / "memory.db", isolation_level=None)
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA ignore_check_constraints = ON")
    record = Record(tmp_path / "m" / "memory.db")
    assert record.damage() == []
    flips = 0
    while flips < 500:
        table = rng.choice([name for name in COLUMNS if name != "meta"])
        column = rng.choice([name for name in COLUMNS[table] if name not in KEYS[table]])
        keys = db.execute(f"SELECT {', '.join(KEYS[table])} FROM {table}").fetchall()
        if not keys:
            continue
        key = rng.choice(keys)
        where = " AND ".join(f"{name} IS ?" for name in KEYS[table])
        (value,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", key).fetchone()
        bad = flipped(value, rng)
        if bad == value or (table, column) in {("events", "node"), ("events", "episode")}:
            continue
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (bad, *key))
        (stored,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", key).fetchone()
        if stored != value:
            assert f"{table} {list(key)}" in record.damage()
            flips += 1
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *key))
    assert record.damage() == []
    db.close()
    record.close()


def flipped(value: object, rng: random.Random) -> object:
    if isinstance(value, bytes) and value:
        out = bytearray(value)
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        return bytes(out)
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + chr(ord(value[at]) ^ (1 << rng.randrange(5))) + value[at + 1 :]
    if isinstance(value, int):
        return value ^ (1 << rng.randrange(20))
    if isinstance(value, float):
        raw = bytearray(np.float64(value).tobytes())
        raw[rng.randrange(6)] ^= 1 << rng.randrange(8)
        return float(np.frombuffer(bytes(raw))[0])
    return value


def test_a_damaged_row_is_refused_when_it_is_read(tmp_path: Path) -> None:
    filled(tmp_path / "m")
    db = sqlite3.connect(tmp_path / "m" / "memory.db")
    db.execute("UPDATE events SET text = 'thing 3 lies in a trap' WHERE event_id = 4")
    db.commit()
    db.close()
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        with pytest.raises(DamagedStoreError, match=r"row \[4\] of events"):
            memory.get(4)
        assert memory.admin.check() == ["events [4]"]
        assert memory.get(5).text.startswith("thing 4")


@pytest.mark.requirement("X9")
def test_one_damaged_row_is_left_out_of_a_rebuild_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    filled(folder)
    for path in (folder / "index").iterdir():
        path.unlink()
    db = sqlite3.connect(folder / "memory.db")
    db.execute("UPDATE events SET text = 'thing 3 lies in a trap' WHERE event_id = 4")
    db.execute("UPDATE links SET weight = 0.75")
    db.execute("UPDATE journal SET body = '[]' WHERE seq = 7")
    db.commit()
    db.close()
    for _ in range(2):
        # No snapshot is made of an index that lacks rows: the damage is named at every opening.
        with pytest.warns(DamagedRowsWarning, match=r"events \[4\]"):
            memory = Memory.open(folder, embedder=embedder())
        with memory:
            assert memory.admin.stats()["damaged"] == ["events [4]", "links [0, 1, 'caused']"]
            assert 3 not in memory.index
            found = {h.event.event_id for h in memory.recall("thing drawer", k=30) if h.event}
            assert found >= set(range(1, 22)) - {4, 21}
            with pytest.raises(DamagedStoreError, match=r"\[4\] of events"):
                memory.get(4)
            assert "journal [7]" in memory.admin.check()


def test_random_bytes_over_the_file_are_typed_errors_or_right_answers(tmp_path: Path) -> None:
    filled(tmp_path / "m")
    path = tmp_path / "m" / "memory.db"
    whole = path.read_bytes()
    rng = random.Random(9)
    refused = 0
    warnings.simplefilter("ignore", DamagedRowsWarning)
    for _ in range(60):
        broken = bytearray(whole)
        at = rng.randrange(len(broken))
        broken[at : at + 64] = rng.randbytes(64)[: len(broken) - at]
        path.write_bytes(broken)
        try:
            with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
                events = memory.record.events()
                for event in events:
                    assert event.text.startswith(("thing", "the newest"))
                if len(events) < 21:
                    assert memory.admin.check()
        except CvxError:
            refused += 1
        for name in ("memory.db-wal", "memory.db-shm"):
            (tmp_path / "m" / name).unlink(missing_ok=True)
    assert refused


def rows_at(path: Path, section: bytes) -> slice:
    """Return where a section of a snapshot lies."""
    raw = path.read_bytes()
    for at in range(24, 24 + 24 * int.from_bytes(raw[16:20], "little"), 24):
        if raw[at : at + 4] == section:
            first, size = (int.from_bytes(raw[at + n : at + n + 8], "little") for n in (8, 16))
            return slice(first, first + size)
    raise AssertionError(section)


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("replaying", [False, True])
def test_of_two_threads_that_meet_damaged_rows_one_builds_the_index(
    tmp_path: Path, replaying: bool
) -> None:
    filled(tmp_path / "m", 300)
    path = newest(tmp_path / "m")
    raw, place = bytearray(path.read_bytes()), rows_at(path, b"ROWS")
    raw[place] = bytes(byte ^ 0x40 for byte in raw[place])
    path.write_bytes(raw)
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as memory,
        ThreadPoolExecutor(1) as other,
    ):
        replica, query = memory._shared.store.replica, np.ones(16, dtype=np.float32)
        with memory._shared.record.reading():
            replica._replaying = replaying
            asked = other.submit(replica.index.search, query, 5)
            while not replica.index._native.damaged():
                sleep(0.001)
            wait([asked], timeout=0.2)
            replica._replaying = False
            here = replica.index.search(query, 5)
        there = asked.result()
        assert [node.tolist() for node in here] == [node.tolist() for node in there]
        assert memory.admin.stats()["rebuilds"] == 1
        assert len(memory.admin.stats()["snapshots_refused"]) == 1


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("section", [b"ROWS", b"CODE"])
def test_rows_found_damaged_by_a_recall_cost_a_rebuild_and_change_no_answer(
    tmp_path: Path, section: bytes
) -> None:
    expected = filled(tmp_path / "m", 300)
    for turn in range(6):
        path = newest(tmp_path / "m")
        raw, place = bytearray(path.read_bytes()), rows_at(path, section)
        raw[place.start + turn * (place.stop - place.start - 1) // 5] ^= 0x40
        path.write_bytes(raw)
        with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
            assert memory.admin.stats()["rebuilds"] == 0
            queries = np.random.default_rng(turn).normal(size=(300, 16)).astype(np.float32)
            for query in queries:
                memory.recall(Cue(vector=query), k=12)
            assert memory.admin.stats()["rebuilds"] == 1
            assert "not what was written" in str(memory.admin.stats()["snapshots_refused"])
            assert answers(memory) == expected
        # Closing left a sound one in its place.
        load(newest(tmp_path / "m"), newest(tmp_path / "m").stat().st_size, verify=True)


@pytest.mark.requirement("X9")
def test_damaged_rows_are_found_by_changes_and_never_written_on(tmp_path: Path) -> None:
    filled(tmp_path / "m", 300)
    path = newest(tmp_path / "m")
    raw, place = bytearray(path.read_bytes()), rows_at(path, b"ROWS")
    raw[place.stop - 1] ^= 0x40
    path.write_bytes(raw)
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.forget(7)
        memory.erase(8)
        assert len(memory.index) == 300
        assert memory.admin.snapshot()
        assert memory.admin.stats()["rebuilds"] == 1
    load(newest(tmp_path / "m"), newest(tmp_path / "m").stat().st_size, verify=True)
