"""A move to another embedder: broken off anywhere, gone on with, switched over at once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import EmbedderDimensionError, InvalidInputError, SettingsMismatchError
from cvx.memory import Memory
from cvx.memory.reembed import reembed
from cvx.store import Record
from cvx.store.failpoints import ENVIRONMENT
from cvx.store.reembed import Target
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
    "point", ["reembed.staged@1", "reembed.staged@4", "reembed.switching", "reembed.switched"]
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
        assert {str(f.check) for f in check(folder).findings} <= {"reembed_unfinished", "lock_old"}
        with Memory.open(folder, embedder=embedder()) as memory:
            assert memory.recall("the cellar flooded", k=1)[0].event == memory.get(14)
    left = {"reembed.staged@1": 14, "reembed.staged@4": 2, "reembed.switching": 0}
    assert reembed(folder, NEW, batch=4) == left.get(point, 0)
    is_moved(folder)


def test_the_store_is_written_and_erased_from_meanwhile(folder: Path) -> None:
    written: list[int] = []

    def slow(texts: list[str]) -> Vector:
        # Between two batches somebody else uses the store.
        with Memory.open(folder, embedder=embedder()) as memory:
            if len(written) < 3:
                written.append(memory.add(f"written meanwhile {len(written)}", aliases=["so"]).id)
                memory.erase(len(written))
        return NEW.embed(texts)

    with Record(folder / "memory.db") as record:
        made = Target(NEW.info()["id"], 24)
        from cvx.store.reembed import reembed as move

        move(record, made, slow, batch=4)
    assert len(written) == 3
    assert reembed(folder, NEW) == 0
    is_moved(folder)
    assert "written meanwhile 2" in vectors(folder)
    with planted.opened(folder) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    assert not {"staged", "staged_event_gone", "staged_alias_gone"} & tables


@pytest.mark.requirement("X8")
def test_a_process_that_has_the_store_open_is_refused_after_the_switch(folder: Path) -> None:
    with Memory.open(folder, embedder=embedder()) as old:
        assert old.recall("cellar")
        reembed(folder, NEW)
        for use in (lambda: old.add("an old vector"), lambda: old.recall("cellar")):
            with pytest.raises(SettingsMismatchError, match="open it again"):
                use()
    is_moved(folder)


def test_another_move_under_way_is_refused_unless_it_is_given_up(folder: Path) -> None:
    def failing(texts: list[str]) -> Vector:
        raise KeyboardInterrupt

    from cvx.store.reembed import reembed as move

    with Record(folder / "memory.db") as record, pytest.raises(KeyboardInterrupt):
        move(record, Target("third", 8), failing)
    with pytest.raises(SettingsMismatchError, match="third is under way"):
        reembed(folder, NEW)
    assert reembed(folder, NEW, restart=True) == 18
    is_moved(folder)


def test_two_processes_that_move_a_store_to_the_same_place_do_not_disturb_each_other(
    folder: Path,
) -> None:
    from cvx.store.reembed import reembed as move

    ran: list[int] = []

    def overtaken(texts: list[str]) -> Vector:
        if not ran:
            ran.append(reembed(folder, NEW))
        return NEW.embed(texts)

    with Record(folder / "memory.db") as record:
        made = move(record, Target(NEW.info()["id"], 24), overtaken, batch=4)
    assert (ran, made) == ([18], 4)
    is_moved(folder)


def test_a_move_that_another_process_gave_up_ends(folder: Path) -> None:
    from cvx.store.reembed import reembed as move

    def given_up(texts: list[str]) -> Vector:
        with Record(folder / "memory.db") as other, pytest.raises(KeyboardInterrupt):
            move(other, Target("third", 24), interrupted, restart=True)
        return NEW.embed(texts)

    def interrupted(texts: list[str]) -> Vector:
        raise KeyboardInterrupt

    refused = pytest.raises(SettingsMismatchError, match="given up meanwhile")
    with Record(folder / "memory.db") as record, refused:
        move(record, Target(NEW.info()["id"], 24), given_up)
    with planted.opened(folder) as db:
        assert db.execute("SELECT count(*) FROM staged").fetchall() == [(0,)]


def test_vectors_that_cannot_be_stored_are_refused(folder: Path) -> None:
    from cvx.store.reembed import reembed as move

    before = vectors(folder)
    with Record(folder / "memory.db") as record:
        with pytest.raises(EmbedderDimensionError, match="shape"):
            move(record, Target("wide", 9), NEW.embed)
        with pytest.raises(InvalidInputError, match="NaN"):
            move(
                record,
                Target("wide", 9),
                lambda texts: np.full((len(texts), 9), np.nan, dtype=np.float32),
            )
    assert vectors(folder) == before


def test_a_vector_without_a_text_is_named(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("a mug")
        memory.add_many([Event(timestamp=1, text="", vector=np.ones(16, dtype=np.float32))])
    with pytest.raises(InvalidInputError, match=r"no text to embed \(2\)"):
        reembed(tmp_path / "m", NEW)
    assert check(tmp_path / "m").findings == ()


def test_a_staged_vector_that_was_damaged_is_made_again(folder: Path) -> None:
    code = (
        "import sys; from cvx.embed import LexicalEmbedder; from cvx.memory.reembed import reembed;"
        "reembed(sys.argv[1], LexicalEmbedder(dim=24), batch=4)"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, ENVIRONMENT: "reembed.staged@2"},
        check=False,
    )
    with planted.opened(folder) as db:
        db.execute("UPDATE staged SET embedding = zeroblob(96) WHERE node = 1")
    assert ("staged_row", "staged [1]") in {(str(f.check), f.where) for f in check(folder).findings}
    assert reembed(folder, NEW) == 11
    is_moved(folder)
