"""A store can be read where nothing can be written, and is not changed by it."""

import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from cvx.errors import (
    CvxError,
    LostTailError,
    ReadOnlyError,
    RecordIOError,
    StoreNotFoundError,
    StoreVersionError,
)
from cvx.memory import Memory
from cvx.store.lock import FileLock, Tail
from tests.cli.command import Cvx
from tests.store.facade import texts
from tests.store.processes import embedder

NOBODY = 65534
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def store() -> Iterator[Path]:
    # Not tmp_path: other users may not look into that.
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        folder = Path(top) / "m"
        with Memory.open(folder, embedder=embedder()) as memory:
            rain = memory.add("it rained all night", key="rain")
            flood = memory.add("the cellar is under water", entity="house")
            memory.link(rain, flood, "caused", why="the drain is too small")
        yield folder
        lock(folder, locked=False)


def lock(folder: Path, *, locked: bool = True) -> None:
    """Take away, or give back, the right to write."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod((0o555 if path.is_dir() else 0o444) if locked else 0o755)


def without_rights(ask: Callable[[], object]) -> str:
    """Answer in a child process that may not write anywhere, whoever runs the tests."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            said = str(ask())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as told:
        return told.read()


def recalled(folder: Path, read_only: bool = True) -> list[str]:
    with Memory.open(folder, embedder=embedder(), read_only=read_only) as memory:
        return texts(memory, "cellar water", k=1)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.requirement("W26", "X9")
def test_reading_changes_no_byte_and_writing_is_refused_by_name(store: Path) -> None:
    before = contents(store)
    with Memory.open(store, embedder=embedder(), read_only=True) as memory:
        assert texts(memory, "cellar water", k=1) == ["the cellar is under water"]
        assert [step.edge.why for step in memory.why(2).steps] == ["the drain is too small"]
        assert memory.context("cellar water").decision is None
        assert memory.frames.events().height == len(memory) == 2
        assert memory.admin.check() == []
        assert not memory.admin.snapshot()
        writes: list[Callable[[], object]] = [
            lambda: memory.add("no"),
            lambda: memory.link(2, 1, "caused"),
            lambda: memory.update(1, reward=1.0),
            lambda: memory.forget(1),
            lambda: memory.erase(1),
            lambda: memory.learning.recall_with({"dense": 1.0}),
            lambda: memory.record.compact(),
            lambda: memory.admin.transaction().__enter__(),
            lambda: memory.learning.active.close(memory.learning.active.begin("tidy up"), 1.0),
            lambda: memory.feedback(memory.recall("cellar water"), helped=True),
        ]
        for write in writes:
            with pytest.raises(ReadOnlyError, match="open it without read_only"):
                write()
    kept = {name: found for name, found in contents(store).items() if name in before}
    assert kept == before


@pytest.mark.requirement("W26")
def test_what_others_commit_is_seen(store: Path) -> None:
    with (
        Memory.open(store, embedder=embedder()) as writer,
        Memory.open(store, embedder=embedder(), read_only=True) as reader,
    ):
        for number in range(3):
            writer.add(f"the boiler rattles {number}")
            assert texts(reader, f"boiler rattles {number}", k=1) == [
                f"the boiler rattles {number}"
            ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_folder_that_cannot_be_written_to_is_recalled_from(store: Path, snapshot: bool) -> None:
    expected = recalled(store)
    if not snapshot:
        shutil.rmtree(store / "index")
    lock(store)
    assert without_rights(lambda: recalled(store)) == str(expected)
    said = without_rights(lambda: recalled(store, read_only=False))
    assert said.startswith("RecordIOError")
    assert "read_only=True" in said


def _output(cvx: Cvx, command: tuple[object, ...]) -> str:
    return cvx(*command).out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_command_reads_where_it_cannot_write(store: Path) -> None:
    cvx = Cvx(store)
    commands: list[tuple[object, ...]] = [
        ("recall", "cellar water", "--json"),
        ("why", 2),
        ("list", "--entity", "house"),
        ("export", "-"),
    ]
    # Modules are loaded as one is asked for; the child may not be able to.
    expected = [cvx(*command) for command in commands]
    counted = cvx("stats").out
    lock(store)
    for command, before in zip(commands, expected, strict=True):
        assert before.code == 0
        assert without_rights(partial(_output, cvx, command)) == before.out
    assert without_rights(lambda: cvx("stats").out) == counted
    assert "read_only=True" in without_rights(lambda: cvx("add", "no").err)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_store_in_use_is_read_by_somebody_without_rights(store: Path) -> None:
    with Memory.open(store, embedder=embedder()) as memory:
        memory.add("the boiler rattles")
        lock(store)
        answer = without_rights(
            lambda: texts(Memory.open(store, embedder=embedder(), read_only=True), "boiler", k=1)
        )
    assert answer == "['the boiler rattles']"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_log_that_was_not_written_back_is_named(store: Path, tmp_path: Path) -> None:
    copy = store.parent / "copy"
    with Memory.open(store, embedder=embedder()) as memory:
        memory.add("only in the log")
        shutil.copytree(store, copy)
    (copy / "memory.db-shm").unlink()
    lock(copy)
    said = without_rights(lambda: recalled(copy))
    lock(copy, locked=False)
    assert said.startswith("RecordIOError")
    assert "copy the whole folder" in said
    assert recalled(copy)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_file_that_changes_while_it_is_read_as_it_stands_is_refused(store: Path) -> None:
    def ask() -> str:
        with Memory.open(store, embedder=embedder(), read_only=True) as memory:
            texts(memory, "cellar water", k=1)
            os.write(ready, b"!")
            os.read(go, 1)
            return str(texts(memory, "cellar water", k=1))

    asked, ready = os.pipe()
    go, written = os.pipe()
    lock(store)
    # The writer: this process, whose rights come back once the reader has opened.

    def write() -> None:
        os.read(asked, 1)
        lock(store, locked=False)
        with Memory.open(store, embedder=embedder()) as memory:
            memory.add("written meanwhile")
        os.write(written, b"!")

    thread = threading.Thread(target=write)
    thread.start()
    said = without_rights(ask)
    thread.join()
    assert said.startswith("RecordIOError")
    assert "open it again" in said


def test_what_cannot_be_read_without_writing_is_refused(tmp_path: Path, store: Path) -> None:
    def refused(folder: Path, error: type[CvxError], cure: str) -> None:
        with pytest.raises(error, match=cure):
            Memory.open(folder, embedder=embedder(), read_only=True)

    refused(tmp_path / "nothing", StoreNotFoundError, "no store")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "memory.db").touch()
    refused(tmp_path / "empty", StoreNotFoundError, "open it to write")
    (tmp_path / "old").mkdir()
    shutil.copy(GOLDEN / "v1.db", tmp_path / "old" / "memory.db")
    refused(tmp_path / "old", StoreVersionError, "open it once without read_only")
    with FileLock(store / "LOCK") as noted:
        noted.note(Tail(99, 7))
    refused(store, LostTailError, "up to change 99")
    refused(store / "memory.db", RecordIOError, "is a file")
