"""What is left of a text is named, wherever it is, and never repeated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.store.doctor import check
from cvx.store.doctor.findings import Check
from tests.store.index_comparison import repaired
from tests.store.planted import opened, sql
from tests.store.processes import embedder

SAID = "Pässwörd 4711"


def found(folder: Path, *texts: str) -> dict[str, str]:
    """What the doctor finds of them."""
    report = check(folder, look_for=texts)
    assert SAID not in repr(report)
    return {one.where: one.what for one in report.findings if one.check is Check.REMAINS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "m"
    with Memory.open(path, embedder=embedder()) as memory:
        for number in range(3):
            memory.add(f"text {number}")
    assert found(path, SAID) == {}
    return path


@pytest.mark.requirement("B8")
def test_every_row_that_says_it_is_named(folder: Path) -> None:
    with Memory.open(folder, embedder=embedder()) as memory:
        event = memory.add("das PÄSSWÖRD 4711!", aliases=[f"{SAID}?"], tags=["x"]).id
        memory.update(1, metadata={"was": SAID})
        memory.link(1, 2, why=f"wegen {SAID}")
        memory.context(f"was ist {SAID}?")
        memory.admin.declare_edge_kind("soaked")
        with memory.record.transaction() as write:
            write.set_state("learned", {"of": SAID})
            write.add_usage({f'["said","{SAID}"]': 1})
    named = found(folder, SAID)
    assert set(named) >= {
        f"events [{event}]",
        "events [1]",
        "links [0, 1, 'caused']",
        "decisions [0]",
        "model_state ['learned']",
        "usage ['its context']",
    }
    assert {where.split()[0] for where in named} - {"journal"} == {
        *("events", "aliases", "links", "decisions", "model_state", "usage")
    }
    assert named[f"events [{event}]"] == f"it is in text: `cvx forget {event} --erase`"
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.erase([event, 1])
    assert set(found(folder, SAID)) == set()


@pytest.mark.requirement("B8")
def test_every_file_that_says_it_is_named(folder: Path) -> None:
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.add("ein Safe", action=f"sage {SAID}")
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.admin.snapshot()
    (snapshot,) = (p for p in (folder / "index").glob("*.cvx") if SAID.encode() in p.read_bytes())
    shutil.copy(snapshot, f"{snapshot}.lost")
    (folder / "notes").mkdir()
    # Beyond the first chunk that is read, and across its end.
    (folder / "notes" / "a.txt").write_bytes(b"x" * ((1 << 20) - 5) + SAID.encode())
    (folder / "twice.json").write_text(json.dumps({"row": json.dumps({"b": SAID})}))
    (folder / "elsewhere").symlink_to(folder.parent)
    named = found(folder, SAID)
    files = {where for where in named if " [" not in where}
    assert files == {
        f"index/{snapshot.name}",
        f"index/{snapshot.name}.lost",
        "notes/a.txt",
        "twice.json",
    }
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.erase(4)
    assert set(found(folder, SAID)) == {"notes/a.txt", "twice.json"}


@pytest.mark.requirement("B8")
def test_what_lies_in_free_pages_and_in_foreign_tables_is_named(folder: Path) -> None:
    sql("CREATE TABLE copies (said TEXT)", f"INSERT INTO copies VALUES ('{SAID}')")(folder)
    assert found(folder, SAID)["copies ['its said']"].endswith("the table is none of a record")
    with opened(folder) as db:
        # As a SQLite that was not told to overwrite what it deletes.
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("DROP TABLE copies")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    named = found(folder, SAID)
    assert set(named) == {"memory.db"}
    assert "cvx compact" in named["memory.db"]


@pytest.mark.requirement("B8")
def test_words_of_the_text_index_are_named(folder: Path) -> None:
    sql("INSERT INTO events_words (rowid, text) VALUES (77, 'das pässwörd 4711')")(folder)
    assert found(folder, SAID)["events_words [77]"].endswith("`cvx doctor --repair NEW_FOLDER`")
    assert found(repaired(folder), SAID) == {}
    assert "events_words [77]" not in found(folder, "4711 pässwörd")


def test_nothing_cannot_be_looked_for(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="look_for: give texts that say something"):
        check(folder, look_for=[" "])


@pytest.mark.requirement("B8")
def test_copies_go_with_an_erase_where_the_folder_is_reached_by_a_link(folder: Path) -> None:
    link = folder.with_name("link")
    link.symlink_to(folder, target_is_directory=True)
    left = [folder / "all.jsonl.7.partial", folder / "index" / "7.json.tmp"]
    for path in left:
        path.write_text(SAID)
    assert {one.where for one in check(link).findings if one.check is Check.STRAY_FILE} == {
        str(path.relative_to(folder)) for path in left
    }
    with Memory.open(link, embedder=embedder()) as memory:
        memory.erase([1])
    assert not any(path.exists() for path in left)
