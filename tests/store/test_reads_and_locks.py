"""Reads are one snapshot; waiting for the lock stops nobody but the writer, and not for ever."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from cvx.errors import (
    LockTimeoutError,
    NotWrittenWarning,
    RecordIOError,
    StoreError,
)
from cvx.memory import Memory
from cvx.store import Record
from cvx.store.erase import check_erasable
from cvx.store.files import refuse_network
from cvx.store.lock import FileLock
from cvx.store.transactions import Follower
from cvx.store.writer import Writer
from cvx.types import Cue, Episode, Event
from tests.store.processes import embedder

LONG = 60


def an_episode(steps: int) -> Episode:
    events = tuple(Event(timestamp=at, text=f"step {at} of {steps}") for at in range(steps))
    return Episode(goal=str(steps), reward=1.0, steps=events)


def add(record: Record, steps: int) -> None:
    with record.transaction() as write:
        write.add_episode(an_episode(steps))


def interfere(record: Record, before: str, act: Callable[[], object]) -> None:
    """Do something once, as another process might, just before a statement of a record runs."""
    todo = [act]

    def see(sql: str) -> None:
        if before in sql and todo:
            todo.pop()()

    # The connection of the next read of this thread.
    with record.reading():
        record.database.connection().set_trace_callback(see)


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("before", ["FROM events", "FROM episodes"])
def test_an_episode_is_read_with_all_its_steps_or_not_at_all(tmp_path: Path, before: str) -> None:
    with Record(tmp_path / "memory.db") as reader, Record(tmp_path / "memory.db") as writer:
        add(writer, 2)
        interfere(reader, before, lambda: add(writer, 3))
        found = reader.episodes()
        assert [len(episode.steps) for episode in found] == [int(one.goal) for one in found]
        assert [len(episode.steps) for episode in reader.episodes()] == [2, 3]


@pytest.mark.requirement("B17")
def test_a_recall_sees_one_state_though_another_process_commits_in_its_middle(
    tmp_path: Path,
) -> None:
    with (
        Memory.open(tmp_path / "m", embedder=embedder()) as reader,
        Memory.open(tmp_path / "m", embedder=embedder()) as writer,
    ):
        first = writer.add("the lamp is red", timestamp=1)
        reader.recall("lamp")
        # The event is archived after it was ranked, and before its row is read.
        interfere(reader.record, "crc FROM events", lambda: writer.forget(first))
        (hit,) = reader.recall("the red lamp")
        assert hit.event is not None
        assert hit.event.state == "active"
        assert reader.recall("the red lamp") == []


@pytest.mark.requirement("B17")
def test_an_index_is_built_of_one_state(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as writer:
        lamp, cup = writer.add("the lamp is red"), writer.add("the cup is blue")
        record = Record(tmp_path / "m" / "memory.db")
        interfere(record, "FROM links", lambda: writer.link(lamp, cup))
        with record.reading():
            before = (record.tail(), record.links())
        assert before == (before[0], [])
        assert len(record.links()) == 1
        record.close()


def test_nothing_is_written_inside_a_read_and_the_read_goes_on(tmp_path: Path) -> None:
    with Record(tmp_path / "memory.db") as record:
        with record.reading():
            with pytest.raises(StoreError, match="being read"):
                add(record, 1)
            with record.reading():
                assert record.episodes() == []
        add(record, 1)
        with record.transaction(), record.reading():
            assert len(record.episodes()) == 1


def elsewhere(act: Callable[[], object]) -> object:
    """Run something in another thread, which must not take long."""
    out: Future[object] = Future()

    def run() -> None:
        try:
            out.set_result(act())
        except BaseException as error:
            out.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return out.result(LONG)


class Holder:
    """Another thread that has the lock of a file, through an object of its own."""

    def __init__(self, path: Path) -> None:
        self.has, self.may_go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold, args=(path,), daemon=True)

    def hold(self, path: Path) -> None:
        with FileLock(path):
            self.has.set()
            self.may_go.wait(LONG)

    def __enter__(self) -> None:
        self.thread.start()
        assert self.has.wait(LONG)

    def __exit__(self, *exc: object) -> None:
        self.may_go.set()
        self.thread.join()


@pytest.mark.requirement("B17")
def test_a_thread_that_waits_for_the_lock_does_not_stop_its_siblings(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")
        begun = threading.Event()

        def write() -> None:
            begun.set()
            memory.add("the cup is blue")

        waiting = threading.Thread(target=write, daemon=True)
        with Holder(tmp_path / "m" / "LOCK"):
            waiting.start()
            assert begun.wait(LONG)
            for _ in range(50):
                elsewhere(lambda: memory.recall("the red lamp"))
            assert len(memory) == 1
        waiting.join(LONG)
        assert len(memory) == 2


class Writing:
    """Another thread in the middle of a transaction, or of a block of them."""

    def __init__(self, memory: Memory, *, block: bool = False, fail: bool = False) -> None:
        self.memory, self.block, self.fail = memory, block, fail
        self.has, self.may_go = threading.Event(), threading.Event()
        self.found: list[str] = []
        self.thread = threading.Thread(target=self.write, daemon=True)

    def write(self) -> None:
        record = self.memory.record
        with suppress(ZeroDivisionError):
            if not self.block:
                with record.transaction() as write:
                    write.set_meta("half", "written")
                    self.wait()
                return
            with record.together():
                self.memory.add("the cup is blue")
                self.found = [hit.text for hit in self.memory.recall("the blue cup")]
                self.wait()

    def wait(self) -> None:
        self.has.set()
        assert self.may_go.wait(LONG)
        if self.fail:
            raise ZeroDivisionError

    def __enter__(self) -> Writing:
        self.thread.start()
        assert self.has.wait(LONG)
        return self

    def __exit__(self, *exc: object) -> None:
        self.may_go.set()
        self.thread.join(LONG)


@pytest.mark.requirement("B17")
def test_who_reads_does_not_wait_for_a_transaction_of_this_process(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        red = memory.add("the lamp is red")
        again = memory.add("the door is green")
        memory.link(red, again)
        memory.record.draw_decision_number()
        with Writing(memory):
            for read in (
                lambda: memory.recall("the red lamp")[0].text,
                lambda: memory.context("the red lamp"),
                lambda: memory.get(red).text,
                lambda: len(memory),
                memory.events,
                lambda: memory.why(again),
                memory.record.episodes,
                memory.record.damage,
                lambda: memory.recall("the green door")[0].text,
            ):
                elsewhere(read)
            assert elsewhere(lambda: memory.record.meta("half")) is None
        assert memory.record.meta("half") == "written"


@pytest.mark.requirement("B17")
def test_rows_are_read_by_several_threads_at_once(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        red = memory.add("the lamp is red")
        add(memory.record, 2)
        with memory.record.reading():
            assert len(memory.record.episodes()) == 1
            assert elsewhere(lambda: memory.record.events([red.id])[0].text) == "the lamp is red"
            elsewhere(memory.record.episodes)
            # What is written meanwhile is of no concern to a read that has begun.
            elsewhere(lambda: add(memory.record, 3))
            assert len(memory.record.episodes()) == 1
        assert len(memory.record.episodes()) == 2


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("fail", [False, True])
def test_nobody_recalls_what_a_block_of_another_thread_may_take_back(
    tmp_path: Path, fail: bool
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")
        asked = Future[list[str]]()

        def ask() -> None:
            asked.set_result([hit.text for hit in memory.recall("the blue cup", min_relevance=0)])

        with Writing(memory, block=True, fail=fail) as writing:
            assert writing.found[0] == "the cup is blue"
            threading.Thread(target=ask, daemon=True).start()
            assert elsewhere(lambda: len(memory.record.events())) == 1
        assert ("the cup is blue" in asked.result(LONG)) is not fail
        assert memory.recall("the red lamp")[0].text == "the lamp is red"


def test_an_erase_waits_for_a_transaction_of_another_thread(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        event = memory.add("the lamp is red")
        with Writing(memory, block=True, fail=False):
            check_erasable(memory.record, [event.id])
        with memory.admin.transaction(), pytest.raises(StoreError, match="end that one first"):
            check_erasable(memory.record, [event.id])


def test_a_step_that_is_being_written_stays_while_another_thread_learns_anew(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        episode = memory.episode("get out")
        episode.act("look", observation="hall")
        memory.erase([memory.add("the cup is blue").id])

        class Meanwhile(Follower):
            done = False

            def begun(self, write: Writer) -> None:
                del write
                if not self.done:
                    self.done = True
                    thread = threading.Thread(target=episode._learner.catch_up)
                    thread.start()
                    thread.join(LONG)

        meanwhile = Meanwhile()
        memory.record.follow(meanwhile)
        episode.act("push", observation="door")
        assert meanwhile.done
        assert [step.action for step in episode.events] == ["look", "push"]
        episode.end(1.0)


@pytest.mark.requirement("B17")
def test_feedback_finds_a_decision_that_another_thread_is_writing_down(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")
        number = memory.context("the red lamp").decision
        assert number is not None
        begun, may_go, given = threading.Event(), threading.Event(), Future[None]()

        def write_down() -> None:
            with memory._shared.writing():
                begun.set()
                assert may_go.wait(LONG)

        def give() -> None:
            try:
                given.set_result(memory.feedback(number, helped=True))
            except BaseException as error:
                given.set_exception(error)

        writing = threading.Thread(target=write_down, daemon=True)
        writing.start()
        assert begun.wait(LONG)
        threading.Thread(target=give, daemon=True).start()
        with pytest.raises(TimeoutError):
            given.result(0.2)
        may_go.set()
        writing.join(LONG)
        assert given.result(LONG) is None


def all_at_once(*works: Callable[[], object]) -> list[BaseException]:
    """Run something in threads of its own, and return what was raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for one in threads:
        one.start()
    until = time.monotonic() + LONG / 2
    for one in threads:
        # The lock of the file is waited for as long as LONG: nobody here has to.
        one.join(max(until - time.monotonic(), 0))
    return raised + [TimeoutError(one.name) for one in threads if one.is_alive()]


@pytest.mark.requirement("B17")
def test_contexts_and_writes_of_several_threads_never_wait_for_each_other_in_a_circle(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")

        def ask() -> None:
            for _ in range(100):
                memory.context("the red lamp")

        def write(colour: str) -> None:
            for number in range(100):
                memory.add(f"cup {number} is {colour}")

        assert all_at_once(ask, partial(write, "blue"), ask, partial(write, "grey")) == []
        assert len(memory) == 201


@pytest.mark.requirement("B17")
def test_a_loop_reads_what_it_found_while_another_thread_replaces_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        for number in range(8):
            memory.add(f"lamp {number} is red", key=str(number), action="look", reward=1.0)
        loop = memory.learning.loop()
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                loop.recall(Cue(step="the red lamp"))

        def replace() -> None:
            try:
                for number in range(150):
                    memory.add(f"lamp {number} is green", key=str(number % 8))
            finally:
                done.set()

        assert all_at_once(ask, ask, replace) == []


@pytest.mark.requirement("B17")
def test_a_read_that_begins_to_write_is_told_so_while_another_thread_writes(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory, Writing(memory):

        def write_in_a_read() -> None:
            with memory.record.reading():
                add(memory.record, 1)

        with pytest.raises(StoreError, match="being read"):
            elsewhere(write_in_a_read)


@pytest.mark.requirement("B17")
def test_readers_leave_few_connections_behind_and_closing_leaves_none(tmp_path: Path) -> None:
    held = Path("/proc/self/fd")
    if not held.is_dir():
        pytest.skip("descriptors are counted in /proc")

    def of_ours() -> int:
        names = []
        for one in held.iterdir():
            with suppress(OSError):
                names.append(str(one.readlink()))
        return sum(name.startswith(str(tmp_path)) for name in names)

    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")
        together = threading.Barrier(12)

        def read() -> None:
            with memory.record.database.one_state():
                together.wait(LONG)
                memory.record.episodes()

        counts = []
        for _ in range(4):
            threads = [threading.Thread(target=read) for _ in range(12)]
            for one in threads:
                one.start()
            for one in threads:
                one.join(LONG)
            counts.append(of_ours())
        assert counts[-1] <= counts[0] < 2 * 12
    assert of_ours() == 0


@pytest.mark.requirement("B17")
def test_the_lock_is_waited_for_so_long_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "LOCK"
    lock = FileLock(path, timeout_s=0.05)
    with Holder(path):
        for _ in range(2):
            with pytest.raises(LockTimeoutError, match=r"LOCK was held for more than 0\.05 s"):
                lock.acquire()
    # Whoever gave up holds nothing, now or later.
    with FileLock(path, timeout_s=LONG), pytest.raises(StoreError):
        lock.acquire()
    with lock:
        pass


HOLD = """
import sys, pathlib
from cvx.store.lock import FileLock
with FileLock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.requirement("B17")
def test_another_process_is_waited_for_and_a_timeout_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "LOCK"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(LockTimeoutError):
            FileLock(path, timeout_s=0.05).acquire()
        patient = FileLock(path, timeout_s=LONG)
        got = threading.Event()

        def take() -> None:
            with patient:
                got.set()

        waiting = threading.Thread(target=take, daemon=True)
        waiting.start()
        other.stdin.write(b"\n")
        other.stdin.flush()
        assert got.wait(LONG)
        waiting.join(LONG)
    with FileLock(path, timeout_s=LONG):
        pass


TRANSACTION = """
import sys, cvx
with cvx.Memory.open(sys.argv[1]) as memory, memory.admin.transaction():
    memory.add("the gate is shut")
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.requirement("B17")
def test_nothing_that_reads_waits_for_the_transaction_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvx.memory.memory.CLOSE_WAITS_S", 0.05)
    memory = Memory.open(tmp_path, embedder="lexical")
    memory.add_many([f"the lamp of room {n} is red" for n in range(20)])
    episode = memory.episode("light")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", TRANSACTION, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        began = time.monotonic()
        assert memory.recall("which lamp is red?") != []
        # More decisions than are written at once, and more than are kept.
        blocks = [memory.context(f"which lamp is red? {n}") for n in range(300)]
        assert len({block.decision for block in blocks}) == 300
        assert 128 <= len(memory._shared.noted.decided) <= 256
        assert len(episode.advise("a dark hall", ["lamp", "wait"])) == 2
        with Memory.open(tmp_path) as second:
            assert len(second) == 20
        with pytest.warns(NotWrittenWarning, match=r"without writing down \d+ decisions"):
            memory.close()
        assert time.monotonic() - began < LONG
        assert memory.record.closed
        other.stdin.write(b"\n")
        other.stdin.flush()
        assert other.wait(LONG) == 0
    with Memory.open(tmp_path) as memory:
        assert len(memory) == 21
        # Once nobody is in the way, what is noted is written by the next recalls.
        for n in range(20):
            memory.context(f"which lamp is red? {n}")
        assert memory.frames.decisions().height > 0


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_lock_is_noticed_and_made_anew(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "m" / "LOCK"
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the lamp is red")
        path.unlink()
        if replaced:
            path.write_bytes(b"")
        memory.add("the cup is blue")
        with memory.record.locked(), pytest.raises(LockTimeoutError):
            # It is the file at the path that keeps others out.
            elsewhere(FileLock(path, 0.05).acquire)
        with Memory.open(tmp_path / "m", embedder=embedder()) as second:
            second.add("the door is green")
        assert len(memory) == 3
    assert path.stat().st_size == 30


@pytest.mark.requirement("B16")
@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
            memory.add("the lamp is red")
            memory.admin.snapshot()
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in (tmp_path / "m", *(tmp_path / "m").rglob("*"))
            }
    finally:
        os.umask(before)
    folders = {"m", "index"}
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert all(modes[name] == 0o700 for name in folders)
    assert len(modes) >= 6


MOUNTS = """\
22 1 0:20 / / rw shared:1 - ext4 /dev/root rw
30 22 0:30 / /home\\040of/nfs rw - nfs4 server:/x rw
31 30 0:31 / /home\\040of/nfs/local rw - ext4 /dev/sdb rw
32 22 0:32 / /mnt/share rw,relatime shared:7 - cifs //a/b rw
"""


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/home of/nfs/m", "nfs4"), ("/home of/nfs", "nfs4"), ("/mnt/share/a/b", "cifs")],
)
def test_a_network_file_system_is_refused_by_name(folder: str, kind: str) -> None:
    with pytest.raises(RecordIOError, match=kind):
        refuse_network(Path(folder), MOUNTS)


@pytest.mark.parametrize("folder", ["/", "/home of", "/home of/nfs/local/m", "/mnt/shared"])
def test_a_local_file_system_is_not_refused(folder: str) -> None:
    refuse_network(Path(folder), MOUNTS)
    refuse_network(Path(folder), "no such form\n- - -\n")


def test_a_store_in_a_folder_that_does_not_exist_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Record(tmp_path / "none" / "memory.db")
    assert list(tmp_path.iterdir()) == []
