"""A folder from somebody else: links in it are not followed, and only our own files are deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cvx.errors import CvxError, RecordIOError
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store.database import describe
from cvx.store.doctor import check, repair
from cvx.store.doctor.findings import Check
from cvx.store.files import HALF_IMPORT
from cvx.store.store import size_of
from tests.store import planted
from tests.store.processes import embedder

pytestmark = pytest.mark.requirement("B16")


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign") / "m"
    planted.rich_store(folder)
    return folder


@pytest.fixture
def store(rich: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rich, tmp_path / "m"))


RECORD = ("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of the user's with files of every name, which nobody may touch."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("1.json", "5.cvx", "thesis.txt", "a.tmp", "LOCK", *RECORD):
        (folder / name).write_text(f"my {name}, longer than a lock would ever be, and dear to me")
    return folder


def state(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def use(folder: Path) -> None:
    """Everything that writes to a store, or deletes files of it."""

    def opened(work: Callable[[Memory], object]) -> None:
        with Memory.open(folder, embedder=embedder()) as memory:
            work(memory)

    for work in (
        lambda memory: memory.add("one more"),
        lambda memory: memory.admin.snapshot(),
        lambda memory: memory.erase([1]),
        lambda memory: memory.admin.compact(),
    ):
        with suppress(CvxError):
            opened(work)
    for way in (
        lambda: Memory.open(folder, embedder=embedder(), read_only=True).close(),
        lambda: describe(folder),
        lambda: check(folder),
        lambda: repair(folder, folder.with_name("rescued")),
    ):
        with suppress(CvxError):
            way()


def test_an_import_whose_index_would_be_a_link_takes_nothing_in(
    store: Path, mine: Path, tmp_path: Path
) -> None:
    before, target = state(mine), tmp_path / "copy"
    with Memory.open(store, embedder=embedder()) as memory:
        memory.admin.export(tmp_path / "all.jsonl")
    target.mkdir()
    (target / "index").symlink_to(mine)
    with pytest.raises(RecordIOError, match=r"index is a symbolic link.*move"):
        import_export(target, tmp_path / "all.jsonl")
    assert [path.name for path in target.iterdir()] == ["index"]
    (target / "index").unlink()
    import_export(target, tmp_path / "all.jsonl")
    assert [path.suffix for path in sorted((target / "index").iterdir())] == [".cvx", ".json"]
    assert state(mine) == before


@pytest.mark.parametrize(
    "name", ["index", "LOCK", "memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal"]
)
def test_a_link_in_a_store_is_not_followed(store: Path, mine: Path, name: str) -> None:
    before = state(mine)
    path = store / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(mine if name == "index" else mine / name)
    with pytest.raises(RecordIOError, match=f"{name} is a symbolic link.*move"):
        Memory.open(store, embedder=embedder())
    found = check(store).findings
    assert [(one.check, one.where) for one in found if "symbolic link" in one.what] == [
        (Check.MISPLACED, name)
    ]
    use(store)
    assert state(mine) == before
    assert path.is_symlink()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("name", ["memory.db-wal", "memory.db-shm", "memory.db-journal"])
def test_a_folder_or_a_pipe_in_the_place_of_a_file_of_sqlite_is_named(
    store: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(store / name)
    for way in (
        lambda: Memory.open(store, embedder=embedder()),
        lambda: Memory.open(store, embedder=embedder(), read_only=True),
        lambda: repair(store, store.with_name("rescued")),
    ):
        with pytest.raises(RecordIOError, match=f"{name} is no regular file: move it away"):
            way()
    assert [one.where for one in check(store).findings] == [name]


def test_a_journal_that_names_another_file_deletes_nothing(store: Path, mine: Path) -> None:
    before = state(mine)
    planted.journal_that_names(store / "memory.db", mine / "thesis.txt")
    use(store)
    assert state(mine) == before
    with pytest.raises(RecordIOError, match=r"journal names another file.*remove that journal"):
        Memory.open(store, embedder=embedder())
    found = check(store)
    assert [(one.check, one.where) for one in found.findings] == [
        (Check.MISPLACED, "memory.db-journal")
    ]
    (store / "memory.db-journal").unlink()
    with Memory.open(store, embedder=embedder()) as memory:
        assert memory.recall("cellar")


@pytest.mark.parametrize("ending", ["json", "cvx"])
def test_a_linked_snapshot_is_passed_over(store: Path, tmp_path: Path, ending: str) -> None:
    # What it leads to would do as a snapshot: it is the link that is refused.
    newest = planted.manifest(store).with_suffix(f".{ending}")
    outside = newest.rename(tmp_path / newest.name)
    newest.symlink_to(outside)
    with Memory.open(store, embedder=embedder()) as memory:
        assert "symbolic link" in "".join(memory.admin.stats()["snapshots_refused"])
    assert outside.exists()


def test_a_link_that_never_ends_holds_nobody_up(store: Path) -> None:
    os.mkfifo(store / "index" / "7.json")
    (store / "index" / "8.json").symlink_to("/dev/zero")
    (store / "LOCK").unlink()
    os.mkfifo(store / "LOCK")
    for way in (
        lambda: Memory.open(store, embedder=embedder()),
        lambda: describe(store / "nothing"),
    ):
        with pytest.raises(CvxError):
            way()
    assert Check.MISPLACED in {one.check for one in check(store).findings}
    (store / "LOCK").unlink()
    Memory.open(store, embedder=embedder()).close()


def test_a_lock_that_is_another_file_is_not_written_to(store: Path, mine: Path) -> None:
    before = state(mine)
    (store / "LOCK").unlink()
    os.link(mine / "thesis.txt", store / "LOCK")
    use(store)
    assert state(mine) == before
    with pytest.raises(RecordIOError, match=r"LOCK holds [0-9]+ bytes, a lock at most 30: move it"):
        Memory.open(store, embedder=embedder())


def test_only_files_of_our_own_are_deleted(store: Path) -> None:
    theirs = [
        store / "notes.tmp",
        store / "draft.partial",
        store / "index" / "thesis.txt",
        store / "index" / "0007.cvx",
        store / "index" / "x.cvx",
        store / "index" / "notes.json.bak",
        store / "index" / "folder" / "5.cvx",
    ]
    ours = [
        store / "index" / "9.cvx",
        store / "index" / "9.json.tmp",
        store / "index" / "9.cvx.1234-0.tmp",
        store / "all.jsonl.1234.partial",
        store / HALF_IMPORT / "memory.db",
    ]
    for path in (*theirs, *ours):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    strays = {one.where for one in check(store).findings if one.check is Check.STRAY_FILE}
    assert strays == {str(path.relative_to(store)).removesuffix("/memory.db") for path in ours}
    use(store)
    assert not any(path.exists() for path in ours if path.parent.name == "index")
    assert all(path.read_text() == "x" for path in theirs)


def test_a_linked_staging_folder_is_left_alone(store: Path, mine: Path, tmp_path: Path) -> None:
    with Memory.open(store, embedder=embedder()) as memory:
        memory.admin.export(tmp_path / "all.jsonl")
    before = state(mine)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / HALF_IMPORT).symlink_to(mine)
    with pytest.raises(RecordIOError, match=f"{HALF_IMPORT} is a symbolic link"):
        import_export(tmp_path / "new", tmp_path / "all.jsonl")
    (store / HALF_IMPORT).symlink_to(mine)
    check(store)
    assert state(mine) == before


def test_a_snapshot_is_never_written_through_a_link(store: Path, mine: Path) -> None:
    before = state(mine)
    with Memory.open(store, embedder=embedder()) as memory:
        memory.add("one more")
        seq = memory.record.tail().seq
        for name in (f"{seq}.json.tmp", f"{seq}.json", f"{seq}.cvx"):
            (store / "index" / name).symlink_to(mine / "thesis.txt")
        assert memory.admin.snapshot()
    assert state(mine) == before
    with Memory.open(store, embedder=embedder()) as memory:
        assert memory.admin.stats()["snapshot_seq"] == seq


def test_what_a_link_leads_to_is_not_counted(store: Path, tmp_path: Path) -> None:
    before = size_of(store)
    (tmp_path / "large").write_bytes(bytes(1_000_000))
    (store / "a link").symlink_to(tmp_path / "large")
    assert size_of(store) < before + 1000
