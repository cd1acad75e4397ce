"""Several changes in one block become durable together or not at all."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from cvx.errors import (
    RecordIOError,
    StoreError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Cue
from tests.store.facade import memory, texts
from tests.store.processes import CONTEXT, consistent, embedder

__all__ = ["memory"]


@pytest.mark.requirement("V16")
def test_an_error_takes_back_everything_that_was_written_together(memory: Memory) -> None:
    before = memory.add("it was dry", reward=0.25).id
    with suppress(ZeroDivisionError), memory.admin.transaction():
        rain = memory.add("it rained all night").id
        flood = memory.add("the cellar is under water").id
        memory.link(rain, flood)
        memory.update(before, reward=1.0)
        assert texts(memory, "rained all night", k=1) == ["it rained all night"]
        raise ZeroDivisionError
    assert memory.frames.events()["text"].to_list() == ["it was dry"]
    assert "it rained all night" not in texts(memory, "it was dry, it rained all night", k=9)
    assert memory.index.reward(0) == 0.25
    assert memory.index.edges() == []
    assert memory.add("it is over").id == before + 1
    assert texts(memory, "it is over", k=1) == ["it is over"]
    assert memory.admin.check() == []


def test_what_fails_alone_is_taken_back_alone(memory: Memory) -> None:
    with memory.admin.transaction():
        memory.add("one")
        with pytest.raises(UnknownError):
            memory.forget([1, 99])
        memory.add("two")
        with pytest.raises(StoreError), memory.admin.transaction():
            pass
    assert memory.frames.events()["text"].to_list() == ["one", "two"]
    assert texts(memory, "two", k=1) == ["two"]


def test_a_memory_is_not_closed_in_the_middle_of_what_is_written_together(memory: Memory) -> None:
    memory.recall("anything")
    with memory.admin.transaction():
        memory.add("one")
        with pytest.raises(StoreError):
            memory.close()
        memory.add("two")
    memory.add("three")
    assert memory.frames.events()["text"].to_list() == ["one", "two", "three"]
    memory.close()
    with pytest.raises(StoreError):
        memory.add("four")


def test_a_memory_is_not_closed_while_its_thread_writes_to_the_folder_elsewhere(
    tmp_path: Path,
) -> None:
    one, two = (Memory.open(tmp_path / "store", embedder=embedder()) for _ in range(2))
    with one.admin.transaction():
        one.add("one")
        for close in (two.close, two.record.close):
            with pytest.raises(StoreError):
                close()
    assert [event.text for event in two.events()] == ["one"]
    two.close()
    one.close()


def add_after_sqlite_has_given_up(memory: Memory) -> None:
    with memory.admin.transaction():
        memory.add("one")
        # As SQLite does after an I/O error in the middle of a transaction.
        memory.record.query("ROLLBACK")
        with suppress(RecordIOError):
            memory.add("two")


def test_a_block_that_sqlite_took_back_cannot_be_stored_by_half(memory: Memory) -> None:
    memory.add("before")
    with pytest.raises(RecordIOError, match="write it again"):
        add_after_sqlite_has_given_up(memory)
    assert memory.frames.events()["text"].to_list() == ["before"]
    memory.add("after")
    assert texts(memory, "after", k=1) == ["after"]
    assert memory.admin.check() == []


def test_what_writes_the_files_anew_is_refused_within(memory: Memory) -> None:
    secret = memory.add("a secret")
    with memory.admin.transaction():
        memory.add("one")
        with pytest.raises(StoreError, match="end that one first"):
            memory.erase(secret)
        memory.add("two")
    assert memory.frames.events()["text"].to_list() == ["a secret", "one", "two"]
    assert memory.erase(secret).complete


@pytest.mark.requirement("V16")
def test_a_loop_over_what_was_taken_back_says_so(memory: Memory) -> None:
    loop = memory.learning.loop()
    with suppress(ZeroDivisionError), memory.admin.transaction():
        run = loop.begin("wash the cup", "clean")
        loop.act(loop.recall(Cue(step="at the sink")), "open tap")
        loop.close(run, 1.0)
        raise ZeroDivisionError
    with pytest.raises(StoreError, match="make a new one"):
        loop.begin("wash the cup", "clean")
    again = memory.learning.loop()
    assert list(again.episodes) == []
    run = again.begin("wash the cup", "clean")
    again.act(again.recall(Cue(step="at the sink")), "open tap")
    assert again.close(run, 1.0).steps[0].node == 0


def half_a_block(folder: str) -> None:
    memory = Memory.open(folder, embedder=embedder())
    memory.add("before")
    with memory.admin.transaction():
        memory.add("within")
        memory.add("within, too")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.requirement("X9", "V16")
def test_a_death_within_leaves_nothing_of_it(tmp_path: Path) -> None:
    child = CONTEXT.Process(target=half_a_block, args=(str(tmp_path / "m"),))
    child.start()
    child.join()
    assert child.exitcode == -9
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.frames.events()["text"].to_list() == ["before"]
    consistent(tmp_path / "m")


def test_how_to_recall_is_taken_back_too(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path, embedder=embedder()) as memory,
        Memory.open(tmp_path, embedder=embedder()) as other,
    ):
        memory.add("it rained all night")
        with suppress(ZeroDivisionError), memory.admin.transaction():
            memory.learning.recall_with({"dense": 1.0})
            assert memory.learning.weights == {"dense": 1.0}
            raise ZeroDivisionError
        # The journal now ends as it did within the block: it tells what was there before.
        other.learning.recall_with({"bm25": 1.0})
        assert memory.learning.weights == {"bm25": 1.0}
