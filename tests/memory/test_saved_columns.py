"""The columns that a recall stands on are read from a file, and are those of the record."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory, recall_verbs, transfer
from cvx.recall.corpus import Corpus
from cvx.store import learned_state


@pytest.fixture(autouse=True)
def every_row_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_verbs, "FEWEST_SAVED", 1)


def opened(folder: Path) -> Memory:
    return Memory.open(folder, embedder=LexicalEmbedder(16))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return [str(value.dtype), repr(value.tolist())] if isinstance(value, np.ndarray) else value


def columns(memory: Memory) -> tuple[Corpus, Any, Any]:
    """The columns of a memory, what they say, and what those read from the record do."""
    own, fresh = memory._recaller.engine().corpus, Corpus(memory.record)
    own.refresh()
    fresh.refresh()
    return own, plain(own.saved()), plain(fresh.saved())


def fill(memory: Memory, first: int, n: int) -> None:
    memory.add_many(
        {
            "text": f"note {at} asks?" if at % 3 else f"note {at}",
            "entity": ("ann", "bob")[at % 2],
            "timestamp": 1000 * at,
            "metadata": [
                {"session": at // 5, "speaker": "Ann Lee"}, {"title": f"Page {at}"}, {}
            ][at % 3],
            "source": f"mail {at % 4}",
        }
        for at in range(first, first + n)
    )  # fmt: skip


def test_columns_from_the_file_are_those_of_the_record(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        fill(memory, 0, 40)
        memory.link(1, 2, why="it rained", effect_first="allow")
        memory.add("a mug", aliases=["a cup"])
        memory.recall("note 7")
    with opened(tmp_path) as memory:
        found = [hit.event.id for hit in memory.recall("note 7 of Ann") if hit.event]
        own, told, fresh = columns(memory)
        assert own.saved_rows == 41
        assert own.linked
        assert told == fresh
        # What comes later is read behind it.
        fill(memory, 40, 30)
        memory.forget(3)
        own, told, fresh = columns(memory)
        assert told == fresh
    assert found[0] == 8


def test_what_others_changed_since_the_file_was_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as memory:
        fill(memory, 0, 40)
        memory.recall("note 7")
    with opened(tmp_path) as memory:
        monkeypatch.setattr(recall_verbs, "FEWEST_SAVED", 10**9)
        fill(memory, 40, 9)
        memory.forget(5)
    with opened(tmp_path) as memory:
        own, told, fresh = columns(memory)
        assert own.saved_rows == 40
        assert len(own) == 49
        assert not own.active[4]
        assert told == fresh


def test_a_file_that_was_damaged_or_is_of_another_store_is_passed_over(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with opened(tmp_path / name) as memory:
            fill(memory, 0, 40)
            memory.recall("note 7")
    (file,) = (tmp_path / "one" / "index").glob("learned-*.bin")
    raw = file.read_bytes()
    (other,) = (tmp_path / "other" / "index").glob("learned-*.bin")
    for content in (raw[:-1], raw[:900] + b"x" + raw[901:], b"", other.read_bytes()):
        file.write_bytes(content)
        with opened(tmp_path / "one") as memory:
            own, told, fresh = columns(memory)
            assert own.saved_rows == 0
            assert told == fresh


def test_erasing_leaves_no_word_of_the_event_in_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        fill(memory, 0, 40)
        memory.add("a secret", metadata={"speaker": "Zebulon"}, entity="zebulon")
        memory.recall("note 7")
    with opened(tmp_path) as memory:
        memory.recall("note 7")
        memory.erase(41)
        memory.recall("note 7")
    told = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"zebulon" not in told.lower()


def test_an_installation_without_sources_recalls_and_keeps_no_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_verbs, "__file__", str(tmp_path / "cvx" / "memory" / "gone.pyc"))
    recall_verbs._columns.cache_clear()
    for _ in range(2):
        with opened(tmp_path / "m") as memory:
            memory.add("The harbour opens at nine.")
            assert memory.recall("harbour")[0].text == "The harbour opens at nine."
    assert [*(tmp_path / "m" / "index").glob("learned-*")] == []


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Map files of any size: those of tests are small."""
    monkeypatch.setattr(learned_state, "_HASHED", 0)


@pytest.mark.usefixtures("mapped")
def test_mapped_columns_are_those_of_the_record_whatever_changes(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        fill(memory, 0, 80)
        memory.add("a mug", aliases=["a cup"])
        memory.recall("note 7")
    (file,) = (tmp_path / "index").glob("learned-*.bin")
    for turn in range(3):
        before = file.read_bytes()
        with opened(tmp_path) as memory:
            memory.recall("note 7 of Ann")
            assert memory._recaller.engine().corpus.saved_rows >= 81
            # Fewer than there is room for, then more.
            fill(memory, 100 * (turn + 1), (3, 30, 300)[turn])
            memory.forget(3 + turn)
            memory.recall("note 7 of Ann")
            _, told, fresh = columns(memory)
            assert told == fresh
            assert file.read_bytes() == before


@pytest.mark.usefixtures("mapped")
def test_a_mapped_file_is_believed_only_where_it_is_the_one_that_was_written(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as memory:
        fill(memory, 0, 80)
        memory.recall("note 7")
    (file,) = (tmp_path / "index").glob("learned-*.bin")
    head, signed, _ = file.read_bytes().split(b"\n", 2)
    _, _, start, _ = json.loads(head)["arrays"][2]
    place = learned_state._line(len(head) + len(signed) + 2) + start
    raw, then = bytearray(file.read_bytes()), file.stat().st_mtime_ns

    def rows_restored() -> int:
        with opened(tmp_path) as memory:
            own, told, fresh = columns(memory)
            assert told == fresh
            return own.saved_rows

    assert rows_restored() == 80
    # Another file in its place, as a copy of the folder has, is held against its digest.
    copied = file.with_name("copy")
    copied.write_bytes(raw)
    copied.replace(file)
    assert rows_restored() == 80
    # So is one that was written to since, whatever time it says, and be it in the same inode.
    raw[place] ^= 1
    file.write_bytes(raw)
    assert rows_restored() == 0
    copied.write_bytes(raw)
    os.utime(copied, ns=(then, then))
    copied.replace(file)
    assert rows_restored() == 0


@pytest.mark.usefixtures("mapped")
def test_an_import_leaves_the_columns_that_the_first_recall_stands_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "FEWEST_SAVED", 1)
    with opened(tmp_path / "m") as memory:
        fill(memory, 0, 80)
        memory.admin.export(tmp_path / "all.jsonl")
    # Into a new store, then into one that holds something.
    for rows in (80, 161):
        transfer.import_export(tmp_path / "copy", tmp_path / "all.jsonl", again=True)
        with opened(tmp_path / "copy") as memory:
            own, told, fresh = columns(memory)
            assert own.saved_rows == rows
            assert told == fresh
            assert memory.recall("Page 4")[0].text == "note 4 asks?"
            # What comes later finds its session.
            event = memory.add("and so on", timestamp=10**9, metadata={"session": 1})
            own, _, _ = columns(memory)
            assert own.timelines.before[own.rows_of([event.id])[0]] >= 0
