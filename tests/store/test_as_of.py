"""Views of the past of a memory on disk, which copy neither its record nor its index."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from cvx import Memory
from cvx.embed import LexicalEmbedder
from cvx.errors import AsOfWarning, RecordIOError, StoreError
from cvx.store import Record, history
from cvx.store.database import Connection


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    def copy(_: Record) -> Record:
        raise AssertionError("the record was copied")

    monkeypatch.setattr(Record, "copy", copy)
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder()) as made:
        for name in ("oak", "elm", "ash", "fir", "yew"):
            made.add(f"the {name} stands by the river")
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder()) as made:
        yield made


def _stamp(memory: Memory) -> int:
    found = memory.record.query("SELECT max(recorded) FROM journal")
    return int(found[0][0])


def _texts(memory: Memory, cue: str) -> list[str]:
    return [hit.text for hit in memory.recall(cue)]


def test_the_snapshot_is_taken_back_and_the_file_is_read(memory: Memory) -> None:
    oak, elm, ash = memory.events()[:3]
    memory.link(oak.id, elm.id, why="its shade", weight=0.5)
    before, then = _texts(memory, "what stands by the river?"), _stamp(memory)
    memory.add("the willow stands by the river")
    memory.link(oak.id, elm.id, why="its roots", weight=0.9)
    memory.link(elm.id, oak.id, why="its seed", effect_first="allow")
    memory.forget(ash.id)
    assert memory.admin.snapshot()
    past = memory.as_of(then)
    assert past.record.path == memory.record.path
    assert past.admin.stats()["rebuilds"] == 0
    assert len(past.index) == 5
    assert _texts(past, "what stands by the river?") == before
    assert "the willow stands by the river" not in _texts(past, "willow")
    assert [link.why for link in past.record.links()] == ["its shade"]
    node = {event.id: event.node for event in past.events()}
    (edge,) = past.index.edges()
    assert (edge.weight, edge.from_node, edge.to_node) == (0.5, node[oak.id], node[elm.id])
    past.close()
    assert "the willow stands by the river" in _texts(memory, "willow")


def test_a_view_stays_what_it_is_in_all_threads(memory: Memory) -> None:
    past = memory.as_of(_stamp(memory))
    memory.add("the willow stands by the river")
    memory.forget(memory.events()[0].id)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(_texts(past, "what stands by the river?")))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(texts) for texts in found] == [5, 5, 5]
    # Nor does a view of the view know more than that.
    assert len(past.as_of(memory.record.now()).events()) == 5
    assert past.record.damage() == []


def test_words_that_came_later_find_nothing(memory: Memory) -> None:
    oak, elm = memory.events()[:2]
    then = _stamp(memory)
    with memory.record.transaction() as write:
        write.add_aliases(oak.id, [("quercus", memory.embedder.embed(["quercus"])[0])])
    memory.update(elm.id, text="an ulmus stands by the river")
    past = memory.as_of(then)

    def holding(one: Memory, word: str) -> list[int]:
        return [int(event) for event in one.record.holders(word, most=9)]

    assert [holding(memory, word) for word in ("quercus", "ulmus", "elm")] == [
        [oak.id],
        [elm.id],
        [],
    ]
    assert [holding(past, word) for word in ("quercus", "ulmus", "elm")] == [[], [], [elm.id]]
    assert past.record.holding("river", np.array([oak.id, elm.id])).tolist() == [oak.id, elm.id]
    assert past.record.newest_holding(["river"], 2, "true", ()) == [5, 4]
    assert past.record.newest_holding(["elm"], 2, "state = ?", ("active",)) == [elm.id]


def test_whoever_lets_go_of_a_view_lets_the_log_be_emptied(memory: Memory) -> None:
    def emptied() -> bool:
        with memory.record.locked():
            db = memory.record.database.connection()
            db.execute("PRAGMA busy_timeout = 0")
            return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    past = memory.as_of(_stamp(memory))
    memory.add("the willow stands by the river")
    assert len(past.events()) == 5
    assert not emptied()
    del past
    gc.collect()
    assert emptied()


def test_erasing_ends_the_views(memory: Memory) -> None:
    oak = memory.events()[0]
    past, other = memory.as_of(_stamp(memory)), Memory(embedder=LexicalEmbedder())
    assert past.get(oak.id).text == oak.text
    memory.erase(oak.id)
    with pytest.raises(StoreError, match=r"is closed: open it again"):
        past.get(oak.id)
    assert other.events() == []
    assert len(memory.as_of(_stamp(memory)).events()) == 4


@pytest.mark.parametrize("in_ram", [False, True])
@pytest.mark.timeout(60)
def test_a_view_of_what_is_being_written_is_made_and_ends_with_it(
    tmp_path: Path, in_ram: bool
) -> None:
    # A backup waits for the transaction of its own thread, for ever.
    embedder = LexicalEmbedder()
    with (
        Memory(embedder=embedder) if in_ram else Memory.open(tmp_path / "m", embedder=embedder)
    ) as memory:
        oak = memory.add("the oak stands by the river")
        with memory.admin.transaction():
            memory.add("the elm stands by the river", aliases=["ulmus"])
            past = memory.as_of(_stamp(memory))
            memory.add("the ash stands by the river")
        assert len(past.events()) == 2
        assert _texts(past, "ulmus")[0] == "the elm stands by the river"
        assert past.record.damage() == []
        assert past.as_of(oak.recorded or 0).events() == [oak]
        memory.erase(oak.id)
        with pytest.raises(StoreError, match=r"is closed: open it again"):
            past.get(oak.id)


def test_erasing_ends_the_views_of_a_memory_in_ram_and_of_no_other() -> None:
    memory, other = (Memory(embedder=LexicalEmbedder()) for _ in range(2))
    oak = memory.add("the oak stands by the river")
    other.add("the elm stands by the river")
    past, others = memory.as_of(_stamp(memory)), other.as_of(_stamp(other))
    beyond = past.as_of(_stamp(memory))
    memory.erase(oak.id)
    for view in (past, beyond):
        with pytest.raises(StoreError, match=r"is closed: open it again"):
            view.get(oak.id)
    assert len(others.events()) == 1


@pytest.mark.timeout(120)
def test_a_process_that_sees_an_erase_of_another_ends_its_views(memory: Memory) -> None:
    oak = memory.events()[0]
    past, folder = memory.as_of(_stamp(memory)), memory.folder
    elsewhere = (
        "import sys; from cvx import Memory; from cvx.embed import LexicalEmbedder\n"
        "with Memory.open(sys.argv[1], embedder=LexicalEmbedder()) as memory:\n"
        "    print(memory.erase([int(one) for one in sys.argv[2:]]).complete)"
    )

    def erase(*events: int) -> str:
        command = [sys.executable, "-c", elsewhere, str(folder), *map(str, events)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert erase(oak.id) == "False"
    assert len(_texts(memory, "what stands by the river?")) == 4
    with pytest.raises(StoreError, match=r"is closed: open it again"):
        past.get(oak.id)
    # One of after that shows nothing of it.
    later = memory.as_of(oak.recorded or 0)
    memory.add("the willow stands by the river")
    assert _texts(memory, "willow")
    assert later.events() == []
    later.close()
    assert erase() == "True"


@pytest.mark.timeout(120)
def test_whoever_erases_waits_for_a_view_that_is_being_made(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_back = history._go_back
    oak = memory.events()[0]
    eraser = threading.Thread(target=memory.erase, args=[oak.id])

    def slowly(past: Record, db: Connection, recorded: int) -> None:
        if not eraser.ident:
            eraser.start()
            # A connection that is closed under a statement may take the process with it.
            eraser.join(timeout=1.0)
        go_back(past, db, recorded)

    monkeypatch.setattr(history, "_go_back", slowly)
    # It is closed as soon as it is made, if not a moment later.
    with suppress(StoreError):
        memory.as_of(_stamp(memory)).events()
    eraser.join()
    assert len(memory.as_of(_stamp(memory)).events()) == 4


def test_a_view_whose_read_was_ended_by_an_error_shows_nothing_of_today(memory: Memory) -> None:
    past = memory.as_of(_stamp(memory))
    memory.add("the willow stands by the river")
    assert len(past.events()) == 5
    # As SQLite does by itself after an error of the disk, or for want of memory.
    past.record.database.connection().execute("ROLLBACK")
    with pytest.raises(RecordIOError, match=r"was lost with an error of the disk: make it anew"):
        past.events()
    past.close()
    assert len(memory.as_of(_stamp(memory)).events()) == 6


def test_a_memory_that_is_closed_before_its_views_is_whole_without_the_log(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder()) as memory:
        memory.add("the oak stands by the river")
        past = memory.as_of(_stamp(memory))
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "m" / "memory.db", tmp_path / "alone")
    assert len(past.events()) == 1
    past.close()
    with Memory.open(tmp_path / "alone", embedder=LexicalEmbedder()) as alone:
        assert len(alone) == 1


@pytest.mark.requirement("B1")
def test_a_view_of_before_the_first_recording_says_what_to_ask_instead(
    memory: Memory, tmp_path: Path
) -> None:
    memory.add("Mira lives in Hamburg.", timestamp=datetime(2024, 1, 1, tzinfo=UTC))
    then = datetime(2024, 5, 1, tzinfo=UTC)
    with pytest.warns(
        AsOfWarning, match=r"yet at 2024-05-01 .*where=\{\"until\": \.\.\.\}"
    ) as said:
        assert memory.as_of(then).recall("Where did Mira live?") == []
    assert said[0].filename == __file__
    found = memory.recall("Where did Mira live?", where={"until": then})
    assert [hit.text for hit in found] == ["Mira lives in Hamburg."]
    # Where something was recorded, or there is nothing at all, nothing is said.
    memory.as_of(_stamp(memory)).close()
    with Memory.open(tmp_path / "empty", embedder="lexical") as empty:
        empty.as_of(then).close()
