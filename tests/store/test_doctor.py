"""Each planted damage is found and named; repairs lose nothing that could be kept."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import RecordIOError, StoreVersionError
from cvx.memory import Memory
from cvx.store import rows
from cvx.store.failpoints import ENVIRONMENT
from tests.store import planted
from tests.store.index_comparison import check
from tests.store.planted import sql
from tests.store.processes import embedder

PLANTS: dict[str, tuple[planted.Plant, str, str]] = {
    "a word is missing": (
        sql("INSERT INTO events_words(events_words, rowid, text) VALUES('delete', 14, 'the cellar"
            " flooded')"),
        "word_missing", "events_words [14]",
    ),
    "a word too many": (
        sql("INSERT INTO events_words(rowid, text) VALUES (77, 'a ghost')"),
        "word_extra", "events_words [77]",
    ),
    "other words": (
        sql("INSERT INTO events_words(rowid, text) VALUES (14, 'attic')"),
        "word_different", "events_words [14]",
    ),
    "a pair is missing": (
        sql("INSERT INTO events_pairs(events_pairs) VALUES('delete-all')"),
        "word_missing", "events_pairs [13]",
    ),
    "an index misses an entry": (
        planted.scribble_on_an_index, "secondary_index", "memory.db",
    ),
    "an orphan link": (
        sql("INSERT INTO links SELECT from_node, 900, kind, weight, why, evidence, recorded,"
            " cvx_crc(from_node, 900, kind, weight, why, evidence, recorded) FROM links LIMIT 1"),
        "orphan", "links [",
    ),
    "an orphan alias": (
        sql("INSERT INTO aliases VALUES (901, 900, 'nobody', NULL, 1,"
            " cvx_crc(901, 900, 'nobody', NULL, 1))"),
        "orphan", "aliases [901]",
    ),
    "orphan usage": (
        sql("INSERT INTO usage (context, retrieved, followed, helped, crc) VALUES"
            " ('[\"event\",900]', 1, 0, 0, 0)"),
        "orphan", "usage ['[\"event\",900]']",
    ),
    "a counter behind": (
        sql("UPDATE meta SET value = '3' WHERE key = 'next_event'"), "counter", "next_event",
    ),
    "a counter beyond everything": (
        sql("UPDATE meta SET value = '4611686018427387904' WHERE key = 'next_event'"),
        "counter", "next_event",
    ),
    "an index of somebody's": (
        sql("CREATE INDEX spy ON events (lower(text))"), "schema", "index spy",
    ),
    "a counter that is no number": (
        sql("UPDATE meta SET value = 'x' WHERE key = 'next_node'"), "counter", "next_node",
    ),
    "a gap in the journal": (
        sql("DELETE FROM journal WHERE seq BETWEEN 4 AND 5"), "journal_gap", "journal [4..5]",
    ),
    "a replaced change": (
        sql("UPDATE journal SET body = '[[0,1]]' WHERE seq = 2",
            rows.renew_crc_sql("journal", "seq = 2")),
        "journal_chain", "journal [2]",
    ),
    "a damaged manifest": (
        lambda folder: planted.manifest(folder).write_text("{}"), "snapshot_damaged", "index/",
    ),
    "a cut manifest": (planted.without_json, "snapshot_damaged", "index/"),
    "a damaged snapshot": (
        lambda folder: os.truncate(planted.manifest(folder).with_suffix(".cvx"), 300),
        "snapshot_damaged", "index/",
    ),
    "a snapshot that is gone": (
        lambda folder: planted.manifest(folder).with_suffix(".cvx").unlink(),
        "snapshot_damaged", "index/",
    ),
    "a foreign snapshot": (planted.other_store, "snapshot_foreign", "index/1.cvx"),
    "no lock": (lambda folder: (folder / "LOCK").unlink(), "lock_missing", "LOCK"),
    "an old lock": (planted.stale_lock, "lock_old", "LOCK"),
    "a damaged lock": (
        lambda folder: (folder / "LOCK").write_text("what?"), "lock_damaged", "LOCK",
    ),
    "a temporary snapshot": (
        lambda folder: (folder / "index" / "9.cvx.77-0.tmp").write_text(""),
        "stray_file", "index/9.cvx.77-0.tmp",
    ),
    "a snapshot without manifest": (
        lambda folder: (folder / "index" / "999.cvx").write_text("?"),
        "stray_file", "index/999.cvx",
    ),
    "a temporary file": (
        lambda folder: (folder / "all.jsonl.77.partial").write_text(""),
        "stray_file", "all.jsonl.77.partial",
    ),
    "a lock that anybody may open": (
        lambda folder: (folder / "LOCK").chmod(0o644), "exposed", "LOCK",
    ),
    "a folder that anybody may open": (lambda folder: folder.chmod(0o755), "exposed", "."),
    "a trigger": (
        sql("CREATE TRIGGER spy AFTER INSERT ON events BEGIN DELETE FROM events; END"),
        "schema", "trigger spy",
    ),
    "a view": (sql("CREATE VIEW copies AS SELECT text FROM events"), "schema", "view copies"),
    "an unfinished erase": (
        sql("INSERT INTO meta VALUES ('erasing', '1')"), "erase_unfinished", "memory.db",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("template") / "m"
    planted.rich_store(made)
    return made


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "m")


def found(report: object) -> list[tuple[str, str]]:
    return [(str(one.check), one.where) for one in report.findings]  # type: ignore[attr-defined]


@pytest.mark.requirement("X9")
def test_a_sound_store_has_no_finding(folder: Path) -> None:
    before = files(folder)
    report = check(folder, deep=True)
    assert (found(report), report.sound) == ([], True)
    assert report.rows["events"] == 16
    assert all(report.rows[table] for table in rows.COLUMNS), report.rows
    assert files(folder) == before


def files(folder: Path) -> dict[str, bytes]:
    # Reading makes an empty log and its index, which SQLite itself removes.
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_damage_is_named_and_repaired_and_nothing_else_changes(
    folder: Path, name: str
) -> None:
    plant, expected, where = PLANTS[name]
    before = planted.contents(folder)
    plant(folder)
    harmed = files(folder)
    report = check(folder)
    assert any(c == expected and where in w for c, w in found(report)), found(report)
    assert files(folder) == harmed
    repaired = check(folder, mend=True)
    assert repaired.done
    assert repaired.sound
    assert repaired.left == ()
    assert check(folder, deep=True).findings == ()
    after = planted.contents(folder)
    assert after["events"][1:] == before["events"][1:]
    for table in set(rows.COLUMNS) - {"events", "journal"}:
        assert after[table] == before[table]
    with Memory.open(folder, embedder=embedder()) as memory:
        assert [hit.event.event_id for hit in memory.recall("cellar", k=1) if hit.event] == [14]


LAST = "SELECT max(event_id) FROM events"
ODD: dict[str, tuple[str, object, str]] = {
    "half of a surrogate pair in a tag": ("tags", '["\\ud83d"]', "lone surrogates"),
    "metadata 900 levels deep": ("metadata", '{"a":' + "[" * 900 + "]" * 900 + "}", "deep"),
    "metadata that is no JSON": ("metadata", "{", "Expecting"),
    "NaN in metadata": ("metadata", '{"a": NaN}', "finite"),
    "another dimension": ("embedding", b"\0\0\x80?" * 5, "shape"),
    "a NUL in a text": ("text", "a\0b", "NUL"),
    "half of a pair in a text": ("text", b"\xed\xa0\xbd", "bytes"),
    "a number of thirty digits in metadata": ("metadata", '{"a": %s}' % ("9" * 30), "64"),
    "a time beyond its bound": ("timestamp", 2**62 + 1, "timestamp"),
    "a vector of no direction": ("embedding", bytes(64), "direction"),
    "a vector that is not finite": ("embedding", b"\0\0\xc0\x7f" * 16, "finite"),
    "a reward of 7": ("reward", 7.0, "reward"),
    "trust without end": ("trust", 9e999, "trust"),
    "a visibility that there is not": ("visibility", "odd", "visibility"),
    "a negative entity": ("entity", -1, "entity"),
    "a node of three billion": ("node", 3_000_000_000, "node"),
    "a time of recording at the end of 64 bits": ("recorded", 2**63 - 1, "recorded"),
}


@pytest.mark.requirement("X9")
@pytest.mark.filterwarnings("ignore::cvx.errors.DamagedRowsWarning")
@pytest.mark.parametrize("name", ODD)
def test_an_odd_value_under_a_fitting_checksum_is_named_with_its_fault(
    folder: Path, name: str
) -> None:
    column, value, fault = ODD[name]
    with planted.opened(folder) as db:
        (last,) = db.execute(LAST).fetchone()
        db.execute(f"UPDATE events SET {column} = ? WHERE event_id = {last}", (value,))
        db.execute(rows.renew_crc_sql("events", f"event_id = {last}"))
    named = [one for one in check(folder).findings if one.where == f"events [{last}]"]
    assert [str(one.check) for one in named if fault in one.what] == ["value"], named
    assert check(folder, mend=True).sound


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("name", ["index", "LOCK", "memory.db", "memory.db-wal"])
def test_a_link_in_the_place_of_a_file_is_named_and_not_followed(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (folder / name).touch()
    shutil.move(folder / name, tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    before = files(tmp_path)
    report = check(folder, mend=True)
    assert ("misplaced", name) in found(report)
    assert not report.sound
    assert files(tmp_path) == before


@pytest.mark.requirement("X9")
def test_a_table_of_somebodys_is_named_and_left(folder: Path) -> None:
    sql("CREATE TABLE copies (text)", "INSERT INTO copies VALUES ('dear to somebody')")(folder)
    repaired = check(folder, mend=True)
    assert found(repaired) == [("schema", "table copies")]
    assert not repaired.sound
    with planted.opened(folder) as db:
        assert db.execute("SELECT text FROM copies").fetchall() == [("dear to somebody",)]


@pytest.mark.requirement("X9")
def test_a_journal_that_names_another_file_is_named(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("dear to me")
    planted.journal_that_names(folder / "memory.db", mine)
    report = check(folder, mend=True)
    assert found(report) == [("misplaced", "memory.db-journal")]
    assert not report.sound
    assert mine.exists()


@pytest.mark.requirement("X9")
def test_what_is_left_of_an_erased_text_is_named_where_it_lies(folder: Path) -> None:
    with planted.opened(folder) as db:
        db.execute("CREATE TABLE copies (text)")
        db.execute("INSERT INTO copies VALUES ('a very private word')")
    (folder / "index" / "old.lost").write_text("a very private word")
    (folder / "all.jsonl.77.partial").write_text("a very private word")
    report = check(folder, look_for=["a very private word"])
    named = {one.where for one in report.findings if one.check == "remains"}
    assert {"index/old.lost", "all.jsonl.77.partial"} <= named
    assert any("copies" in where or "memory.db" in where for where in named), named


@pytest.mark.requirement("X9")
def test_a_clock_that_ran_ahead_is_named(folder: Path) -> None:
    with planted.opened(folder) as db:
        last = "seq = (SELECT max(seq) FROM journal)"
        db.execute(
            f"UPDATE journal SET recorded = recorded + (70 * 365 * 86400000000) WHERE {last}"
        )
        db.execute(rows.renew_crc_sql("journal", last))
    report = check(folder)
    assert ("clock_ahead", "journal") in found(report)
    assert report.sound


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("table", rows.COLUMNS)
def test_a_flipped_bit_in_a_row_of_any_table_is_named_and_the_row_moved_aside(
    folder: Path, table: str
) -> None:
    before = planted.contents(folder)
    rng = random.Random(table)
    names = [name for name in rows.COLUMNS[table] if name not in rows.KEYS[table]]
    with planted.opened(folder) as db:
        keys = db.execute(f"SELECT {', '.join(rows.KEYS[table])} FROM {table}").fetchall()
        key = rng.choice(keys)
        condition = " AND ".join(f"{name} IS ?" for name in rows.KEYS[table])
        column = flip_something(db, table, names, condition, key, rng)
    report = check(folder)
    assert ("row", f"{table} {list(key)}") in found(report), column
    with planted.opened(folder) as db:
        assert list(rows.damaged(db)) == [(table, key)]
    repaired = check(folder, mend=True)
    assert f"moved {table} {list(key)} to the table set_aside" in "\n".join(repaired.done), column
    assert repaired.left == ()
    after = planted.contents(folder)
    assert after["events"] or table == "events"
    if table != "journal":
        assert len(after[table]) < len(before[table])
    with planted.opened(folder) as db:
        aside = db.execute("SELECT row FROM set_aside WHERE from_table = ?", (table,)).fetchall()
    assert json.loads(aside[0][0]).keys() == {*rows.COLUMNS[table], "crc"}


def flip_something(
    db: sqlite3.Connection,
    table: str,
    names: list[str],
    condition: str,
    key: tuple[object, ...],
    rng: random.Random,
) -> str:
    while True:
        column = rng.choice(names)
        (value,) = db.execute(f"SELECT {column} FROM {table} WHERE {condition}", key).fetchone()
        other: object = value
        if isinstance(value, int):
            other = value ^ (1 << rng.randrange(8))
        elif isinstance(value, str) and value:
            raw = bytearray(value.encode())
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(7)
            db.execute(
                f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {condition}",
                (bytes(raw), *key),
            )
            return column
        elif isinstance(value, bytes):
            raw = bytearray(value)
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            other = bytes(raw)
        if other != value:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {condition}", (other, *key))
            return column


@pytest.mark.requirement("X9")
def test_an_event_beyond_repair_moves_aside_with_what_hangs_on_it(folder: Path) -> None:
    sql("UPDATE events SET text = 'something quite different' WHERE event_id = 13")(folder)
    report = check(folder)
    assert ("row", "events [13]") in found(report)
    repaired = check(folder, mend=True)
    assert any("set_aside" in said for said in repaired.done)
    assert repaired.left == ()
    with planted.opened(folder) as db:
        aside = db.execute("SELECT from_table FROM set_aside ORDER BY number").fetchall()
        (kept,) = db.execute("SELECT row FROM set_aside WHERE from_table = 'events'").fetchone()
    tables = [table for (table,) in aside]
    assert sorted(set(tables)) == ["aliases", "events", "links", "usage"]
    assert tables.count("links") == 2
    assert "something quite different" in kept
    with Memory.open(folder, embedder=embedder()) as memory:
        assert memory.admin.check() == []
        assert len(memory) == 14
        assert all(hit.event.event_id != 13 for hit in memory.recall("it poured") if hit.event)
        assert memory.add("the next one").id == 17


def test_the_steps_of_an_episode_beyond_repair_stay_as_events(folder: Path) -> None:
    sql("UPDATE episodes SET goal = 'who knows' WHERE episode_id = 2")(folder)
    steps = [e for e in planted.contents(folder)["events"] if e[12] == 2]
    repaired = check(folder, mend=True)
    assert repaired.left == ()
    after = {e[0]: e for e in planted.contents(folder)["events"]}
    assert steps
    for step in steps:
        assert after[step[0]] == (*step[:12], None, *step[13:])


def test_a_damaged_change_keeps_its_number_and_every_process_builds_its_index_anew(
    folder: Path,
) -> None:
    other = Memory.open(folder, embedder=embedder())
    sql("UPDATE journal SET body = '[\"garbage\"]' WHERE seq = 3")(folder)
    repaired = check(folder, mend=True)
    assert repaired.left == ()
    assert other.recall("cellar")[0].event is not None
    assert other.admin.stats()["rebuilds"] == 1
    other.close()
    assert check(folder, deep=True).findings == ()


@pytest.mark.requirement("X9")
def test_a_lost_tail_is_named_and_nothing_is_touched_until_it_is_accepted(folder: Path) -> None:
    planted.lost_tail(folder)
    harmed = files(folder)
    for mend in (False, True):
        report = check(folder, mend=mend)
        assert {"lost_tail", "snapshot_ahead"} & {c for c, _ in found(report)}
        assert not report.sound
        assert report.done == ()
        assert files(folder) == harmed
    repaired = check(folder, mend=True, accept_lost_tail=True)
    assert repaired.left == ()
    assert list((folder / "index").glob("*.lost"))
    with Memory.open(folder, embedder=embedder()) as memory:
        assert len(memory) == 15


def test_a_broken_off_erase_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.processes", str(folder)],
        env={**os.environ, ENVIRONMENT: "erase.committed"},
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert "erase_unfinished" in {c for c, _ in found(check(folder))}
    repaired = check(folder, mend=True)
    assert "finished the erase" in repaired.done
    assert repaired.left == ()
    whole = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"the first secret number 0" not in whole


@pytest.mark.parametrize("at", [0, 100])
def test_a_file_that_is_no_database_any_more_is_said_to_be_beyond_repair(
    folder: Path, at: int
) -> None:
    raw = bytearray((folder / "memory.db").read_bytes())
    raw[at : at + 4096] = bytes(4096)
    (folder / "memory.db").write_bytes(raw)
    for ending in ("-wal", "-shm"):
        (folder / f"memory.db{ending}").unlink(missing_ok=True)
    report = check(folder, mend=True)
    assert not report.sound
    assert {c for c, _ in found(report)} & {"file", "page"}
    assert (folder / "memory.db").read_bytes() == raw


@pytest.mark.parametrize(("name", "other"), [("LOCK", "a folder"), ("index", "a file")])
def test_what_stands_where_a_file_of_the_store_goes_is_named_and_left(
    folder: Path, name: str, other: str
) -> None:
    place = folder / name
    place.rename(folder / "before")
    if other == "a folder":
        place.mkdir()
    else:
        place.write_text("somebody's notes")
    with pytest.raises(RecordIOError):
        Memory.open(folder, embedder=embedder())
    for mend in (False, True):
        report = check(folder, mend=mend, deep=True)
        assert found(report) == [("misplaced", name)]
        assert (report.sound, report.done) == (False, ())
        assert f"is {other}" in report.left[0].what
    place.rename(folder / "aside")
    Memory.open(folder, embedder=embedder()).close()
    assert check(folder).sound


@pytest.mark.parametrize(("version", "cure"), [(1, "open it once"), (99, "that wrote it")])
def test_a_store_of_another_version_is_not_touched(tmp_path: Path, version: int, cure: str) -> None:
    golden = Path(__file__).parent / "golden" / "v1.db"
    shutil.copy(golden, tmp_path / "memory.db")
    with planted.opened(tmp_path) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
    before = (tmp_path / "memory.db").read_bytes()
    for mend in (False, True):
        with pytest.raises(StoreVersionError, match=cure):
            check(tmp_path, mend=mend)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_looking_goes_on_beside_a_writer(folder: Path) -> None:
    with Memory.open(folder, embedder=LexicalEmbedder(dim=16)) as memory:
        for number in range(20):
            memory.add(f"thing {number}")
            if number % 5 == 0:
                memory.admin.snapshot()
            assert check(folder).findings == ()
