"""Older and later formats, and a disk without room."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cvx.errors import RecordIOError, StoreVersionError, UnknownError
from cvx.memory import Memory
from cvx.store import Record
from cvx.store.database import connect
from cvx.store.doctor import check
from cvx.store.files import HALF_SNAPSHOT
from cvx.store.schema import SCHEMA_VERSION
from cvx.types import Filter
from tests.store.processes import embedder

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.requirement("W26")
def test_a_store_of_the_first_version_is_moved_over(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    shutil.copy(GOLDEN / "v1.db", tmp_path / "m" / "memory.db")
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.record.meta("schema_version") == str(SCHEMA_VERSION)
        assert memory.admin.check() == []
        assert [e.reward for e in memory.record.events()] == [0.75, 1.0, 0.0, None]
        assert memory.record.usage() == [('["node",0]', 1, 0, 0)]
        assert [e.goal for e in memory.record.episodes()] == ["clean the mug", "heat the egg"]
        hits = memory.recall("at the sink")
        assert hits[0].event
        assert hits[0].event.text == "at the sink"
        assert memory.index.tags(0) == {"moment", "task:clean"}
        stove = embedder().embed(["a stove"])[0]
        assert sorted(memory.index.search(stove, 5)[0].tolist()) == [0, 1]
        failed = Filter(recallable=False)
        assert memory.index.search(stove, 5, where=failed)[0].tolist() == [2]
        new = memory.add("written by this version")
        assert memory.get(new).node == 3
        assert [hit.event.event_id for hit in memory.recall("written version", k=1) if hit.event]
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert len(memory) == 5


@pytest.mark.requirement("W26")
def test_a_store_of_the_second_version_is_moved_over(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    shutil.copy(GOLDEN / "v2.db", tmp_path / "m" / "memory.db")
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.record.meta("schema_version") == str(SCHEMA_VERSION)
        assert memory.admin.check() == []
        assert "my_kind" in memory.index.edge_kinds
        assert [(s.event.event_id, s.edge.why) for s in memory.why(2).steps] == []
        memory.update(1, state="active")
        assert [(s.event.event_id, s.edge.why) for s in memory.why(2).steps] == [(1, "it fits")]
        assert (memory.get(1).source, memory.get(1).trust, memory.get(1).key) == ("ana", 0.5, None)
        hits = memory.recall("entrance unlocked", k=1)
        assert [hit.event.text for hit in hits if hit.event] == ["the door is open"]
        assert [d["rendered"] for d in memory.record.decisions()] == ["", "take care"]
        assert memory.record.take_decision_number() == 2
        assert [e.text for e in memory.admin.audit("ana")] == ["the key is under the pot"]
        written = max(e.recorded or 0 for e in memory.record.events())
        with pytest.raises(UnknownError, match="older version"):
            memory.as_of(written - 1)


def test_damage_of_before_is_not_hidden_by_moving_over(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    path = tmp_path / "m" / "memory.db"
    shutil.copy(GOLDEN / "v2.db", path)
    db = sqlite3.connect(path)
    db.execute("UPDATE events SET text = 'the door is ajar' WHERE event_id = 2")
    db.commit()
    db.close()
    with Record(path) as record:
        assert record.damage() == ["events [2]"]


def test_a_store_of_a_later_version_is_refused_untouched(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("something")
    db = sqlite3.connect(tmp_path / "m" / "memory.db")
    db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    db.commit()
    db.close()
    before = (tmp_path / "m" / "memory.db").read_bytes()
    with pytest.raises(StoreVersionError, match="99"):
        Memory.open(tmp_path / "m", embedder=embedder())
    assert (tmp_path / "m" / "memory.db").read_bytes() == before


def test_what_a_save_leaves_that_was_killed_is_known_as_our_own(tmp_path: Path) -> None:
    # Beyond the limit the system ends the process, in the middle of the file.
    code = """
import resource, signal
from cvx.index import RawIndex
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
RawIndex(2).save("7.cvx")
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert ran.returncode == -signal.SIGXFSZ
    (left,) = tmp_path.iterdir()
    assert HALF_SNAPSHOT.fullmatch(left.name)


def test_a_store_maps_its_snapshot(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("written by this version")
        built = memory.index.stats()["bytes"]
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.index.stats()["bytes"] < built


@pytest.mark.requirement("X9")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process need fork")
def test_a_full_disk_is_a_typed_error_and_writing_resumes(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the first")
        wal = (tmp_path / "m" / "memory.db-wal").stat().st_size
        for number in range(20):
            # The write-ahead log may grow by so much; then every write to it fails.
            size = max((tmp_path / "m" / "memory.db-wal").stat().st_size, wal)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + number * 1500, hard))
            refused = 0
            try:
                for turn in range(8):
                    try:
                        memory.add(f"event {number} {turn} " + "x" * 3000)
                    except RecordIOError:
                        refused += 1
                        break
                assert memory.recall("the first", k=1)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert refused, number
            event = memory.add(f"there is room again {number}")
            assert memory.get(event).text == f"there is room again {number}"
            assert len(memory) == len(memory.record.events())
        assert memory.admin.check() == []
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.admin.check() == []
        assert sum(e.text.startswith("there is room") for e in memory.record.events()) == 20


@pytest.mark.requirement("X9")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process need fork")
def test_a_store_that_no_room_is_left_to_open_is_not_called_damaged(tmp_path: Path) -> None:
    import resource

    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(RecordIOError, match="make room"):
            Memory.open(tmp_path / "m", embedder=embedder())
        with pytest.raises(RecordIOError, match="make room"):
            check(tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert check(tmp_path / "m").findings == ()


def test_numbered_parameters_are_bound_by_number() -> None:
    # From Python 3.12 on a sequence for them is a warning, from 3.14 on an error.
    with closing(connect(":memory:")) as db:
        assert db.execute("SELECT ?2, ?1, ?1", (1, 2)).fetchone() == (2, 1, 1)
        assert db.execute("SELECT ?, ?", (1, 2)).fetchone() == (1, 2)
