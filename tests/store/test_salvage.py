"""What can still be read of a database with damaged pages goes on in a new store."""

import importlib
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cvx.errors import (
    DamagedStoreError,
    FileError,
    RecordIOError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from cvx.memory import Memory
from cvx.store import rows
from cvx.store.doctor import repair
from tests.store import planted
from tests.store.index_comparison import check
from tests.store.processes import embedder

EVENTS = 600


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("salvage") / "m"
    with Memory.open(made, embedder=embedder()) as memory, memory.admin.transaction():
        for number in range(EVENTS):
            memory.add(f"thing {number} lies in drawer {number % 9}", aliases=["a thing"])
        for number in range(1, EVENTS, 3):
            memory.link(number, number + 1, why="next to it")
    return made


def test_a_sound_store_is_saved_whole(template: Path, tmp_path: Path) -> None:
    saved = repair(template, tmp_path / "new")
    assert (saved.broken, set(saved.wrong.values())) == ((), {0})
    assert planted.contents(tmp_path / "new") == planted.contents(template)
    assert check(tmp_path / "new", deep=True).findings == ()


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("seed", range(6))
def test_a_page_of_garbage_costs_what_was_on_it_and_no_more(
    template: Path, tmp_path: Path, seed: int
) -> None:
    folder = shutil.copytree(template, tmp_path / "m")
    path = folder / "memory.db"
    raw = bytearray(path.read_bytes())
    rng = random.Random(seed)
    # The first pages hold the list of tables, without which nothing is found.
    page = rng.randrange(40, len(raw) // 4096)
    raw[page * 4096 : (page + 1) * 4096] = rng.randbytes(4096)
    path.write_bytes(raw)
    assert not check(folder).sound
    saved = repair(folder, tmp_path / "new")
    assert path.read_bytes() == raw
    before = {row[0]: row for row in planted.contents(template)["events"]}
    after = {row[0]: row for row in planted.contents(tmp_path / "new")["events"]}
    # A page high in a tree hides the rows below it; most seeds meet a leaf.
    assert len(after) > EVENTS // 2
    assert all(before[number] == row for number, row in after.items())
    assert saved.counts["events"] >= len(after)
    assert check(tmp_path / "new", deep=True).findings == ()
    with Memory.open(tmp_path / "new", embedder=embedder()) as memory:
        assert memory.add("the next one").id == EVENTS + 1
        assert memory.recall("drawer 3")


def test_a_row_that_lost_what_it_refers_to_is_saved(template: Path, tmp_path: Path) -> None:
    shutil.copytree(template, tmp_path / "m")
    with planted.opened(tmp_path / "m") as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("UPDATE events SET episode = 777 WHERE event_id = 5")
        db.execute(rows.renew_crc_sql("events", "event_id = 5"))
    repair(tmp_path / "m", tmp_path / "new")
    assert check(tmp_path / "new").sound
    with Memory.open(tmp_path / "new", embedder=embedder()) as memory:
        assert memory.get(5).text == "thing 4 lies in drawer 4"


def test_what_cannot_be_saved_is_refused(template: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there already"):
        repair(template, tmp_path)
    with pytest.raises(StoreNotFoundError):
        repair(tmp_path / "none", tmp_path / "new")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "memory.db").write_bytes(bytes(8192))
    with pytest.raises(DamagedStoreError, match="restore a copy"):
        repair(tmp_path / "m", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(RecordIOError, match="cannot be made"):
        repair(template, tmp_path / "m" / "memory.db" / "new")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="there already"):
        repair(template, tmp_path / "link")


@pytest.mark.parametrize(("version", "cure"), [(2, "open it once"), (4, "the cvx that wrote it")])
def test_a_store_of_another_version_is_refused(
    template: Path, tmp_path: Path, version: int, cure: str
) -> None:
    folder = shutil.copytree(template, tmp_path / "m")
    planted.sql(f"UPDATE meta SET value = '{version}' WHERE key = 'schema_version'")(folder)
    with pytest.raises(StoreVersionError, match=cure):
        repair(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_is_saved_is_of_one_moment(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(template, tmp_path / "m")
    module = importlib.import_module("cvx.store.doctor.salvage")
    read = module._readable

    def written_meanwhile(db: Any, table: str) -> Any:
        if table == "links":
            with Memory.open(folder, embedder=embedder()) as memory:
                memory.link(memory.add("one more"), 1)
        return read(db, table)

    monkeypatch.setattr(module, "_readable", written_meanwhile)
    saved = repair(folder, tmp_path / "new")
    assert set(saved.wrong.values()) == {0}
    assert planted.contents(tmp_path / "new") == planted.contents(template)


def test_a_repair_that_fails_leaves_nothing(template: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(template, tmp_path / "m")
    row = (9_000_000, 1, "insert", "[]", 1)
    with planted.opened(folder) as db:
        db.execute(rows.insert_sql("journal"), (*row, rows.row_crc(*row)))
    with pytest.raises(DamagedStoreError, match="changes are missing"):
        repair(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_repair_that_was_killed_left_no_empty_memory(template: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys; from cvx.store.doctor import repair; from cvx.store import fulltext;"
        "fulltext.refill = lambda db: os._exit(9); repair(sys.argv[1], sys.argv[2])"
    )
    told = [sys.executable, "-c", code, str(template), str(tmp_path / "new")]
    assert subprocess.run(told, check=False).returncode == 9
    with pytest.raises(StoreError, match="a repair into"):
        Memory.open(tmp_path / "new", embedder=embedder())
