"""Several processes and threads on one folder."""

import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from cvx.errors import StoreError
from cvx.memory import Memory
from cvx.types import Event
from tests.store.processes import CONTEXT, consistent, embedder


def answer(folder: str, talk: Connection) -> None:
    """Do what is asked, in another process."""
    with Memory.open(folder, embedder=embedder()) as memory:
        talk.send("ready")
        while True:
            what, *arguments = talk.recv()
            if what == "end":
                break
            if what == "scores":
                talk.send(scores(memory, *arguments))
                continue
            value = getattr(memory, what)(*arguments)
            if what == "recall":
                value = [hit.event.text for hit in value if hit.event]
            talk.send(value)
    talk.send("closed")


def scores(memory: Memory, cue: str) -> dict[str, float]:
    """What a recall thinks of every event."""
    return {hit.event.text: hit.score for hit in memory.recall(cue) if hit.event}


def start(folder: Path) -> tuple[Connection, object]:
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=answer, args=(str(folder), there), daemon=True)
    process.start()
    there.close()
    assert here.recv() == "ready"
    return here, process


def ask(talk: Connection, *question: object) -> object:
    talk.send(question)
    return talk.recv()


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    ("key", "before", "after", "cue"),
    [
        ("speaker", "Ann", "Zoe", "What did Zoe do with the horse?"),
        ("name", "Ann", "Zoe Lee", "What did Lee do with the horse?"),
        ("title", "The Fair", "Red River", "Who sold a horse at Red River?"),
        ("session", "fair", "home", "Who sold the horse?"),
        # Equal in Python, and not the same session.
        ("session", 1, True, "Who sold the horse?"),
    ],
)
def test_a_changed_metadata_value_is_recalled_by_at_once_by_every_process(
    tmp_path: Path, key: str, before: object, after: object, cue: str
) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.add("Bob bought a horse", entity="1", timestamp=1, metadata={key: before})
        event = memory.add("I sold it", entity="2", timestamp=10**12, metadata={key: before}).id
        talk, _ = start(folder)
        first = scores(memory, cue)
        assert ask(talk, "scores", cue) == first
        memory.update(event, metadata={key: after})
        changed = scores(memory, cue)
        assert ask(talk, "scores", cue) == changed
        with Memory.open(folder, embedder=embedder()) as anew:
            assert scores(anew, cue) == changed
        assert changed != first
        talk.send(("end",))
        assert talk.recv() == "closed"


@pytest.mark.requirement("B9", "X9")
def test_two_processes_see_each_others_commits_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        talk, _ = start(folder)
        for number in range(20):
            memory.add(f"from here {number}")
            assert ask(talk, "recall", f"from here {number}", 1) == [f"from here {number}"]
            event = ask(talk, "add", f"from there {number}")
            assert isinstance(event, Event)
            assert memory.get(event).text == f"from there {number}"
            hits = memory.recall(f"from there {number}", 1)
            assert [hit.event.event_id for hit in hits if hit.event] == [event.id]
        memory.link(1, 2, "caused")
        ask(talk, "forget", 1)
        assert memory.recall("from here 0", 1)[0].event != memory.get(1)
        ask(talk, "update", 2)
        erased = memory.get(3)
        memory.erase(3)
        assert erased.text not in ask(talk, "recall", erased.text, 50)  # type: ignore[operator]
        talk.send(("end",))
        assert talk.recv() == "closed"
        assert len(memory.index) == memory.index.stats()["nodes"] == 39
    consistent(folder)


def add_some(folder: str, name: str, n: int, done: Connection) -> None:
    with Memory.open(folder, embedder=embedder()) as memory:
        for number in range(n):
            memory.add(f"{name} {number}")
    done.send(name)


@pytest.mark.requirement("B9")
def test_writers_in_four_processes_get_their_turn_and_node_ids_of_their_own(
    tmp_path: Path,
) -> None:
    here = []
    for name in "abcd":
        receive, send = CONTEXT.Pipe(duplex=False)
        CONTEXT.Process(target=add_some, args=(str(tmp_path / "m"), name, 30, send)).start()
        send.close()
        here.append(receive)
    assert sorted(receive.recv() for receive in here) == list("abcd")
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert len(memory) == 120
        nodes = [event.node for event in memory.record.events()]
        assert sorted(nodes) == list(range(120))  # type: ignore[type-var]
    consistent(tmp_path / "m")


def test_a_store_opened_twice_in_one_process_is_one_store(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as one,
        Memory.open(tmp_path / "m", embedder=embedder()) as two,
    ):
        for number in range(10):
            (one, two)[number % 2].add(f"event {number}")
            other = (two, one)[number % 2]
            assert other.recall(f"event {number}", 1)[0].node == number
        with one.record.transaction(), pytest.raises(StoreError, match="already"):
            two.add("inside")
        one.close()
        assert len(two) == 10
        two.add("after the other was closed")
    consistent(tmp_path / "m")


def test_threads_write_through_two_memories_without_losing_anything(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as one,
        Memory.open(tmp_path / "m", embedder=embedder()) as two,
    ):
        failures: list[BaseException] = []

        def work(memory: Memory, name: int) -> None:
            try:
                for number in range(15):
                    memory.add(f"t{name} {number}")
                    assert memory.recall(f"t{name} {number}", 3)
            except BaseException as error:
                failures.append(error)

        threads = [
            threading.Thread(target=work, args=((one, two)[name % 2], name)) for name in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(one) == len(two) == 60
    consistent(tmp_path / "m")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_refused_and_the_parent_goes_on(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("before")
        read, write = os.pipe()
        # A single-threaded child that only tries, reports and leaves without cleaning up.
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            said = []
            try:
                for call in (lambda: memory.add("no"), lambda: memory.recall("x")):
                    with pytest.raises(StoreError, match="open it again in the child"):
                        call()
                memory.close()
                said.append("refused")
            except BaseException as error:
                said.append(repr(error))
            try:
                with Memory.open(tmp_path / "m", embedder=embedder()) as own:
                    own.add("from the child")
                said.append("wrote")
            except BaseException as error:
                said.append(repr(error))
            os.write(write, "|".join(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        told = os.read(read, 4000).decode().split("|")
        os.close(read)
        assert told == ["refused", "wrote"]
        memory.add("after")
        assert len(memory) == 3
        assert memory.admin.check() == []
    consistent(tmp_path / "m")
