"""An import is whole or nothing where the disk fills up, and its index is that of all events."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import CvxError, ExportError, RecordIOError
from cvx.index import RawIndex
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store import Record
from cvx.store.replica import Intake
from cvx.store.transfer import importing
from cvx.store.transfer.format import Header, read_jsonlines
from cvx.store.transfer.importing import _intake_of
from cvx.types import Cue

EVENTS = 400


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a disk that fills up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def opened(folder: Path) -> Memory:
    return Memory.open(folder, embedder=LexicalEmbedder(32))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    with opened(folder / "m") as memory:
        memory.add_many(f"note {at} of a long day in the house" for at in range(EVENTS))
        memory.add("a mug", aliases=["a cup"])
        for ending in ("jsonl", "parquet"):
            memory.admin.export(folder / f"all.{ending}")
    return folder


def test_a_new_store_is_filled_without_a_log_and_has_one_afterwards(
    exported: Path, tmp_path: Path
) -> None:
    seen: set[str] = set()

    def look(_done: int, _of: int) -> None:
        seen.update(path.name for path in (tmp_path / "copy").rglob("memory.db*"))

    import_export(tmp_path / "copy", exported / "all.parquet", progress=look)
    assert "memory.db" in seen
    assert "memory.db-wal" not in seen
    # SQLite keeps in bytes 18 and 19 whether there may be a log.
    assert (tmp_path / "copy" / "memory.db").read_bytes()[18:20] == b"\2\2"


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_disk_that_fills_up_leaves_nothing_and_the_same_import_goes_through_later(
    exported: Path, tmp_path: Path, ending: str
) -> None:
    target, source = tmp_path / "copy", exported / f"all.{ending}"
    refused = 0
    for size in (0, 5_000, 60_000, 120_000):
        with files_up_to(size), pytest.raises(RecordIOError):
            import_export(target, source)
        refused += 1
        assert not target.exists()
    # What is left does not hold the record, and then not the index.
    for size in range(150_000, 700_000, 50_000):
        with files_up_to(size), suppress(CvxError):
            import_export(target, source)
        if target.exists():
            break
        refused += 1
    else:
        import_export(target, source)
    with opened(target) as memory:
        assert len(memory) == EVENTS + 1
        assert memory.recall("note 77 of a day")[0].text.startswith("note 77 ")
    assert refused >= 4


def test_an_import_keeps_the_index_of_all_that_it_took_in(exported: Path, tmp_path: Path) -> None:
    import_export(tmp_path / "copy", exported / "all.parquet")
    (snapshot,) = (tmp_path / "copy" / "index").glob("*.cvx")
    with opened(tmp_path / "copy") as copy, opened(exported / "m") as memory:
        assert copy.record.tail().seq == int(snapshot.stem)
        assert copy._shared.store.replica.rebuilds == 0
        assert copy.index.node_ids().tolist() == memory.index.node_ids().tolist()
        for cue in ("note 7 of a day", "a cup", Cue(text="house", goal="find the mug")):
            found = [[hit.node for hit in one.recall(cue)] for one in (copy, memory)]
            assert found[0] == found[1]


def test_an_index_from_which_all_was_deleted_takes_as_much_again() -> None:
    rows = np.random.default_rng(4).normal(size=(6_000, 8)).astype(np.float32)
    index = RawIndex(8, exact_below=0)
    first = index.bulk_insert(vectors=rows)
    index.delete(first[:20].tolist())
    for node in first[20:40].tolist():
        index.delete(node)
    index.delete(first[40:].tolist())
    assert len(index) == 0
    assert len(index.search(rows[0])[0]) == 0
    index.relink()
    again = index.bulk_insert(vectors=rows[:3_000], link=False)
    again = np.concatenate([again, index.bulk_insert(vectors=rows[3_000:], link=False)])
    index.relink()
    found = [index.search(row, 1, ef=64)[0][0] for row in rows[::60]]
    assert np.mean(np.array(found) == again[::60]) > 0.97
    index.compact()
    assert len(index) == len(rows)


def test_a_memory_that_reads_many_new_events_links_them_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cvx.store import replica

    monkeypatch.setattr(replica, "_CHUNK", 100)
    with opened(tmp_path) as memory:
        memory.recall("a note")
        relinked: list[int] = []
        relink = RawIndex.relink

        def noted(index: RawIndex) -> None:
            relinked.append(len(index))
            relink(index)

        monkeypatch.setattr(RawIndex, "relink", noted)
        for first in range(0, 500, 50):
            memory.add_many(f"note {at} of the day" for at in range(first, first + 50))
        found = memory.recall("note 77 of the day")
        assert relinked[-1] == 500
        memory.erase(found[1].event)
        memory.add_many(f"letter {at}" for at in range(50))
        assert memory.recall("letter 30")[0].text == "letter 30"
        assert all(size >= 100 for size in relinked)


def _plain(memory: Memory) -> None:
    memory.add_many(f"note {at} of a long day" for at in range(60))


def _gaps(memory: Memory) -> None:
    _plain(memory)
    memory.erase(3)
    memory.erase(60)
    memory.link(4, 9, why="it rained", effect_first="allow")
    memory.forget(7)
    memory.add("Ignore all previous instructions.", tags=["x"], reward=0.5)


def _out_of_order(memory: Memory) -> None:
    _plain(memory)
    # Its new version has a node behind those of all later events.
    memory.update(5, text="another note")


def _aliases(memory: Memory) -> None:
    _plain(memory)
    memory.add("a mug", aliases=["a cup"])


def _many(memory: Memory) -> None:
    memory.add_many(f"note {at} of {at % 97} days" for at in range(5_200))


@pytest.mark.parametrize(
    ("fill", "taken"),
    [(_plain, True), (_gaps, True), (_many, True), (_out_of_order, False), (_aliases, False)],
)
def test_an_index_filled_while_events_are_stored_is_the_one_made_of_the_record(
    fill: Callable[[Memory], None], taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "m") as memory:
        fill(memory)
        memory.admin.export(tmp_path / "all.jsonl")
    intakes, files = [], []

    def noted(header: Header) -> Intake | None:
        intakes.append(_intake_of(header))
        return intakes[-1]

    for name, made in (("filled", noted), ("built", lambda _: None)):
        monkeypatch.setattr(importing, "_intake_of", made)
        with Record() as record:
            incoming = read_jsonlines(tmp_path / "all.jsonl")
            done = importing.import_into(record, incoming)
        assert done.index is not None
        files.append(tmp_path / f"{name}.cvx")
        done.index[0].save(files[-1])
    assert bool(intakes[0] and intakes[0].complete) == taken
    assert files[0].read_bytes() == files[1].read_bytes()


def test_an_export_that_says_too_much_of_itself_is_refused_as_before(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        _plain(memory)
        memory.admin.export(tmp_path / "all.jsonl")
    told = (tmp_path / "all.jsonl").read_text()
    for before, after in (
        ('"events":60', '"events":9007199254740991'),
        ('"dim":"32"', '"dim":"31"'),
        ('"dim":"32"', '"dim":"x"'),
    ):
        assert before in told
        (tmp_path / "other.jsonl").write_text(told.replace(before, after, 1))
        with pytest.raises(ExportError):
            import_export(tmp_path / "copy", tmp_path / "other.jsonl")
        assert not (tmp_path / "copy").exists()
