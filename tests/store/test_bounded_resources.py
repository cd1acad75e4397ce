"""RAM and disk stay bounded in long use and in readers."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError, UnknownError
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store import Record
from cvx.store.doctor import repair
from cvx.types import Cue, Event
from tests.store.index_comparison import check

LOG = 16 * 2**20


def opened(folder: Path | None = None) -> Memory:
    memory = (
        Memory(embedder=LexicalEmbedder())
        if folder is None
        else Memory.open(folder, embedder=LexicalEmbedder())
    )
    if not len(memory):
        memory.add("the spare key is under the green pot")
    return memory


def written(memory: Memory) -> int:
    return int(memory.record.query("SELECT count(*) FROM decisions")[0][0])


def test_what_reading_notes_is_written_down_by_a_process_that_only_reads() -> None:
    memory = opened()
    asked = []
    for n in range(200):
        block = memory.context(f"where is the key? {n}")
        assert block.decision is not None
        asked.append(block.decision)
        # None is lost on the way, and few are waiting.
        waiting = memory._shared.noted.decided
        assert len(waiting) < 64
        assert written(memory) + len(waiting) == n + 1
    assert memory.learning.attribution(asked[0]).shown == (1,)


def test_after_4096_commits_that_nobody_read_the_index_takes_them_in() -> None:
    memory = opened()
    memory.recall("key")
    memory.add("the hall is dark")
    replica = memory._shared.store.replica
    before = replica.seq
    for number in range(4_095):
        assert replica.seq == before
        with memory.record.transaction() as write:
            write.set_state("nobody's", {"number": number})
    assert replica.seq == memory.record.tail().seq
    assert len(replica.index) == 2


def test_of_what_was_handed_out_the_last_10000_texts_are_known() -> None:
    memory = opened()
    shared = memory._shared
    node = memory.get(1).node
    assert node is not None
    for number in range(10_001):
        shared.hand_out_text("", f"text {number}", [node])
    assert shared.told("", "text 0") == []
    assert shared.told("", "text 1") == shared.told("", "text 10000") == [1]


def test_counts_of_what_was_recalled_are_written_down_too() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add_many(Event(timestamp=n, text=f"key {n}") for n in range(5_000))
    for n in range(0, 5_000, 50):
        memory.recall(f"key {n}", k=60)
        noted = memory._shared.noted
        assert len(noted.retrieved) + len(noted.used) <= 2_500


def test_where_nothing_can_be_written_the_oldest_of_what_is_noted_goes(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.record.database.connection().execute("PRAGMA max_page_count = 1")
        asked = []
        for n in range(400):
            block = memory.context(f"where is the key? {n}")
            assert block.decision is not None
            asked.append(block.decision)
            assert len(memory._shared.noted.decided) <= 256
        assert asked[-1] in memory._shared.noted.decided
        memory.record.database.connection().execute("PRAGMA max_page_count = 4294967294")
        memory.add("there is room again")
        assert 128 <= written(memory) <= 256


def test_recalls_go_on_where_the_lock_cannot_be_opened(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        lock = tmp_path / "LOCK"
        held = lock.rename(tmp_path / "LOCK.away")
        lock.mkdir()
        for n in range(40):
            assert memory.recall(f"where is the key? {n}")
        lock.rmdir()
        held.rename(lock)


def log_of(folder: Path) -> int:
    return (folder / "memory.db-wal").stat().st_size


def test_the_log_is_held_at_16_mb_by_small_and_large_transactions(tmp_path: Path) -> None:
    with Record(tmp_path / "memory.db") as record:
        for size, times in ((900_000, 20), (3_000_000, 6)):
            for n in range(times):
                with record.transaction() as write:
                    write.set_state("model", {"weights": "x" * (size + n)})
                assert log_of(tmp_path) <= LOG
        with record.transaction() as write:
            for n in range(40):
                write.set_state(f"model {n}", {"weights": "x" * 1_000_000})
        assert log_of(tmp_path) <= LOG


def test_a_reader_that_kept_the_log_long_gives_it_back(tmp_path: Path) -> None:
    with Record(tmp_path / "memory.db") as record:
        other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM journal").fetchone()
        for n in range(30):
            with record.transaction() as write:
                write.set_state("model", {"weights": "x" * (1_000_000 + n)})
        assert log_of(tmp_path) > LOG
        other.execute("ROLLBACK")
        for n in range(6):
            with record.transaction() as write:
                write.set_state("model", {"weights": "y" * (1_000_000 + n)})
        assert log_of(tmp_path) <= LOG
        other.close()


def journal(memory: Memory) -> list[int]:
    return [seq for (seq,) in memory.record.query("SELECT seq FROM journal ORDER BY seq")]


def test_only_the_newest_decisions_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        assert memory.admin.stats()["history"]["most_decisions"] == 100_000
        memory.admin.keep_history(decisions=40)
    with opened(tmp_path) as memory:
        numbers = []
        for n in range(300):
            block = memory.context(f"where is the key? {n}")
            assert block.decision is not None
            numbers.append(block.decision)
            # As many as were waiting come in at once.
            assert written(memory) <= 40 + 64
        memory.add("something new")
        memory.admin.keep_history(decisions=40)
        told = memory.admin.stats()["history"]
        assert (told["decisions"], told["most_decisions"]) == (40, 40)
        assert memory.learning.attribution(numbers[-1]).shown
        with pytest.raises(UnknownError, match="there is no decision"):
            memory.feedback(numbers[0], helped=True)


def test_only_the_newest_changes_are_kept_and_a_reopened_store_is_whole(tmp_path: Path) -> None:
    ticks = iter(range(1_000, 1_000_000))
    with Memory._opened(tmp_path, LexicalEmbedder(), now=ticks.__next__) as memory:
        memory.admin.keep_history(changes=50)
        early = 0
        for n in range(200):
            memory.add(f"thing {n}")
            early = early or memory.record.now()
            assert len(journal(memory)) <= 50 + 50 // 8 + 3
        told = memory.admin.stats()["history"]
        assert told["changes"] == len(journal(memory))
        assert told["most_changes"] == 50
        late = memory.record.now()
        memory.add("the last thing")
        with pytest.raises(UnknownError, match="reaches no further back"):
            memory.as_of(early)
        assert len(memory.as_of(late)) == 200
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        assert memory.admin.stats()["rebuilds"] == 0
        assert len(memory) == 201
        assert [hit.event.text for hit in memory.recall("thing 7", k=1) if hit.event] == ["thing 7"]
    assert check(tmp_path, deep=True).sound


@pytest.mark.parametrize("ending", ["jsonl", "duckdb"])
def test_a_store_that_dropped_some_of_its_past_is_exported_and_salvaged(
    tmp_path: Path, ending: str
) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder()) as memory:
        memory.admin.keep_history(changes=10, decisions=2)
        for n in range(40):
            memory.add(f"thing {n}")
            memory.context(f"thing {n}")
        limits = memory.admin.stats()["history"]
        memory.admin.export(tmp_path / f"all.{ending}")
    import_export(tmp_path / "again", tmp_path / f"all.{ending}")
    with Memory.open(tmp_path / "again", embedder=LexicalEmbedder()) as memory:
        assert len(memory) == 40
        told = memory.admin.stats()["history"]
        assert (told["most_changes"], told["most_decisions"]) == (10, 2)
        assert limits["most_changes"] == 10
    assert check(tmp_path / "again", deep=True).findings == ()
    repair(tmp_path / "m", tmp_path / "saved")
    assert check(tmp_path / "saved", deep=True).sound


def test_changes_that_a_snapshot_lacks_are_never_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=LexicalEmbedder()) as memory:
        memory.add("before the snapshot")
        assert memory.admin.snapshot()
        held = memory.record.tail().seq
        memory.admin.keep_history(changes=5)
        # Nothing here writes another one.
        with memory.record.transaction() as write:
            write.set_meta("nothing", "")
        for n in range(60):
            with memory.record.transaction() as write:
                write.set_state("model", {"n": n})
        assert journal(memory)[0] == held
        assert len(journal(memory)) == 61
        copied = tmp_path / "killed"
        shutil.copytree(folder, copied)
    with Memory.open(copied, embedder=LexicalEmbedder()) as memory:
        assert memory.admin.stats()["rebuilds"] == 0
        assert memory.admin.stats()["snapshots_refused"] == []
    assert check(copied).sound


def test_a_memory_that_is_open_for_long_writes_the_snapshots_that_let_changes_go(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        memory.add("before the snapshot")
        assert memory.admin.snapshot()
        memory.admin.keep_history(changes=20)
        for n in range(300):
            memory.add(f"thing {n}")
            assert len(journal(memory)) <= 40
        assert memory.admin.stats()["rebuilds"] == 1


def test_who_slept_through_dropped_changes_reads_everything_anew(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path, embedder=LexicalEmbedder()) as writer,
        Memory.open(tmp_path, embedder=LexicalEmbedder()) as reader,
    ):
        gone = writer.add("the old door code is 4711")
        kept = writer.add("a red bicycle")
        loop = reader.learning.loop(mdp=None)
        loop.add_demonstration("find the yard", [("a hall", "go left")])
        assert len(reader.recall("door code")) > 0
        heard = reader.record.tail().seq
        writer.admin.keep_history(changes=10)
        writer.forget(kept)
        writer.erase([event for event in writer.record.events() if event.action])
        writer.erase(gone)
        for n in range(60):
            writer.add(f"thing {n}")
        other = writer.learning.loop(mdp=None)
        other.add_demonstration("find the hall", [("a yard", "go right")])
        other.add_demonstration("find the shed", [("a path", "go on")])
        for n in range(60, 120):
            writer.add(f"thing {n}")
        assert journal(writer)[0] > heard + 100
        for cue, first in (("thing 119", True), ("door code 4711", False), ("red bicycle", False)):
            found = [hit.event.text for hit in reader.recall(cue, k=5) if hit.event]
            assert any(cue in text for text in found) == first
        loop.recall(Cue(goal="find the hall", step="a yard"))
        assert "go left" not in {action for one in loop.episodes for action in one.actions}
        run = loop.begin("find the hall", None)
        decision = loop.recall(Cue(goal="find the hall", step="a yard"))
        assert "go right" in {hit.action for hit in decision.hits}
        assert [episode.actions for episode in loop.episodes] == [("go right",), ("go on",)]
        loop.close(run, 1.0)


@pytest.mark.parametrize("wrong", [{"decisions": 0}, {"changes": 0}, {"changes": 1.5}])
def test_limits_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match="at least 1"):
        opened().admin.keep_history(**wrong)


def test_limits_that_nobody_can_read_are_the_usual_ones() -> None:
    memory = opened()
    for said in ("[", "[1]", '{"decisions": -1}', '{"days": 3}', "[" * 100_000):
        with memory.record.transaction() as write:
            write.set_meta("history", said)
        assert memory.admin.stats()["history"]["most_decisions"] == 100_000
        memory.add(f"after {said[:9]}")
