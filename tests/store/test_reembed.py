"""A move to another embedder: broken off anywhere, gone on with, switched over at once."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import CachedEmbedder, LexicalEmbedder
from cvx.errors import (
    EmbedderError,
    InvalidInputError,
    InvalidVectorError,
    RecordIOError,
    SettingsMismatchError,
)
from cvx.memory import Memory
from cvx.memory.reembed import reembed
from cvx.store import Record
from cvx.store.failpoints import ENVIRONMENT
from cvx.types import Event, Vector
from tests.store import planted
from tests.store.index_comparison import check
from tests.store.processes import embedder

NEW = LexicalEmbedder(dim=24)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    planted.rich_store(tmp_path / "m")
    return tmp_path / "m"


def vectors(folder: Path) -> dict[str, bytes | None]:
    with Record(folder / "memory.db") as record:
        return dict(
            record.query(
                "SELECT text, embedding FROM events UNION ALL SELECT text, embedding FROM aliases"
            )
        )


def is_moved(folder: Path) -> None:
    for text, raw in vectors(folder).items():
        assert raw is not None
        np.testing.assert_array_equal(np.frombuffer(raw, "<f4"), NEW.embed([text])[0])
    report = check(folder, deep=True)
    assert report.findings == ()
    with Memory.open(folder, embedder=NEW) as memory:
        assert memory.recall("the cellar flooded", k=1)[0].similarity == pytest.approx(1)
        assert memory.recall("it poured", k=1)[0].event == memory.get(13)


@pytest.mark.requirement("X8")
def test_every_text_gets_its_new_vector_and_nothing_else_changes(folder: Path) -> None:
    before = planted.contents(folder)
    assert reembed(folder, NEW, batch=3) == 18
    after = planted.contents(folder)
    is_moved(folder)
    for table in set(before) - {"journal"}:
        for old, new in zip(before[table], after[table], strict=True):
            kept = [pair for pair in zip(old, new, strict=True) if type(pair[0]) is not bytes]
            assert all(a == b for a, b in kept)
    assert reembed(folder, NEW) == 0
    with pytest.raises(SettingsMismatchError, match="reembed"):
        Memory.open(folder, embedder=embedder())


@pytest.mark.requirement("X8")
@pytest.mark.parametrize(
    "point", ["reembed.embedded@1", "reembed.embedded@4", "reembed.switching", "reembed.switched"]
)
def test_a_death_at_any_point_is_gone_on_from(folder: Path, point: str) -> None:
    before = vectors(folder)
    code = (
        "import sys; from cvx.embed import LexicalEmbedder; from cvx.memory.reembed import reembed;"
        "reembed(sys.argv[1], LexicalEmbedder(dim=24), batch=4)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, ENVIRONMENT: point},
        check=False,
    )
    assert done.returncode == -9
    if point != "reembed.switched":
        assert vectors(folder) == before
        assert check(folder).sound
        with Memory.open(folder, embedder=embedder()) as memory:
            assert memory.recall("the cellar flooded", k=1)[0].event == memory.get(14)
    left = {"reembed.embedded@1": 14, "reembed.embedded@4": 2}
    assert reembed(folder, NEW, batch=4) == left.get(point, 0)
    is_moved(folder)
    assert not list(folder.glob("reembed*"))


def test_what_is_erased_while_it_is_embedded_does_not_wait_in_the_cache(folder: Path) -> None:
    class Slow(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            if "the cellar flooded" in texts:
                with Memory.open(folder, embedder=embedder()) as memory:
                    memory.erase(14)
            return super().embed(texts)

    def broken_off(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reembed(folder, Slow(dim=24), batch=50, progress=broken_off)
    cached = CachedEmbedder(NEW, folder / "reembed.sqlite")
    cached.embed(["the cellar flooded"])
    assert (cached.hits, cached.misses) == (0, 1)


def test_the_store_is_written_and_erased_from_meanwhile(folder: Path) -> None:
    written: list[int] = []

    class Slow(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            # Between two batches somebody else uses the store.
            if texts and len(written) < 3:
                with Memory.open(folder, embedder=embedder()) as memory:
                    new = memory.add(f"written meanwhile {len(written)}", aliases=["so"])
                    written.append(new.id)
                    memory.erase(len(written))
            return super().embed(texts)

    reembed(folder, Slow(dim=24), batch=4)
    assert len(written) == 3
    assert reembed(folder, NEW) == 0
    is_moved(folder)
    assert "written meanwhile 2" in vectors(folder)


@pytest.mark.requirement("X8")
def test_a_process_that_has_the_store_open_is_refused_after_the_switch(folder: Path) -> None:
    with Memory.open(folder, embedder=embedder()) as old:
        assert old.recall("cellar")
        reembed(folder, NEW)
        for use in (lambda: old.add("an old vector"), lambda: old.recall("cellar")):
            with pytest.raises(SettingsMismatchError, match="open it again"):
                use()
    is_moved(folder)


def test_a_vector_without_a_text_is_named(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug")
        memory.add_many([Event(timestamp=1, text="", vector=np.ones(16, dtype=np.float32))])
    with pytest.raises(InvalidInputError, match=r"no text to embed \(2\)"):
        reembed(tmp_path / "m", NEW)
    assert check(tmp_path / "m").findings == ()


def test_two_processes_that_move_a_store_to_the_same_place_do_not_disturb_each_other(
    folder: Path,
) -> None:
    ran: list[int] = []

    class Overtaken(LexicalEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            if not ran:
                ran.append(-1)
                ran.append(reembed(folder, NEW))
            return super().embed(texts)

    reembed(folder, Overtaken(dim=24), batch=4)
    assert ran == [-1, 18]
    is_moved(folder)


def test_vectors_that_cannot_be_stored_are_refused(folder: Path) -> None:
    class Odd(LexicalEmbedder):
        def __init__(self, value: float, dim: int) -> None:
            super().__init__(dim=9)
            self.row = np.full(dim, value, dtype=np.float32)

        def embed(self, texts: Sequence[str]) -> Vector:
            return np.array([self.row for _ in texts])

    before = vectors(folder)
    for value, dim in ((1.0, 8), (np.nan, 9), (0.0, 9)):
        with pytest.raises((EmbedderError, InvalidVectorError)):
            reembed(folder, Odd(value, dim))
    assert vectors(folder) == before


def test_a_link_in_the_place_of_the_cache_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"")
    (folder / "reembed.sqlite").symlink_to(tmp_path / "mine")
    with pytest.raises(RecordIOError, match="symbolic link"):
        reembed(folder, NEW)
    assert (tmp_path / "mine").read_bytes() == b""
