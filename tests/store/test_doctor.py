"""Each planted damage is found and named; a repair loses nothing that could be kept."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import DamagedStoreError, RecordIOError, StoreVersionError
from cvx.memory import Memory
from cvx.store import rows
from cvx.store.doctor import repair
from cvx.store.failpoints import ENVIRONMENT
from tests.store import planted
from tests.store.index_comparison import check, repaired
from tests.store.planted import sql
from tests.store.processes import embedder

PLANTS: dict[str, tuple[planted.Plant, str, str]] = {
    "a word is missing": (
        sql("INSERT INTO events_words(events_words, rowid, text) VALUES('delete', 14, 'the cellar"
            " flooded')"),
        "words", "events_words [14]",
    ),
    "a word too many": (
        sql("INSERT INTO events_words(rowid, text) VALUES (77, 'a ghost')"),
        "words", "events_words [77]",
    ),
    "other words": (
        sql("INSERT INTO events_words(rowid, text) VALUES (14, 'attic')"),
        "words", "events_words [14]",
    ),
    "a pair is missing": (
        sql("INSERT INTO events_pairs(events_pairs) VALUES('delete-all')"),
        "words", "events_pairs [13]",
    ),
    "an index misses an entry": (
        planted.scribble_on_an_index, "page", "memory.db",
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
        sql("DELETE FROM journal WHERE seq BETWEEN 4 AND 5"), "journal", "journal [4..5]",
    ),
    "a replaced change": (
        sql("UPDATE journal SET body = '[[0,1]]' WHERE seq = 2",
            rows.renew_crc_sql("journal", "seq = 2")),
        "journal", "journal [2]",
    ),
    "a damaged manifest": (
        lambda folder: planted.manifest(folder).write_text("{}"), "snapshot", "index/",
    ),
    "a cut manifest": (planted.without_json, "snapshot", "index/"),
    "a damaged snapshot": (
        lambda folder: os.truncate(planted.manifest(folder).with_suffix(".cvx"), 300),
        "snapshot", "index/",
    ),
    "a snapshot that is gone": (
        lambda folder: planted.manifest(folder).with_suffix(".cvx").unlink(),
        "snapshot", "index/",
    ),
    "a foreign snapshot": (planted.other_store, "snapshot", "index/1.cvx"),
    "no lock": (lambda folder: (folder / "LOCK").unlink(), "lock", "LOCK"),
    "an old lock": (planted.stale_lock, "lock", "LOCK"),
    "a damaged lock": (
        lambda folder: (folder / "LOCK").write_text("what?"), "lock", "LOCK",
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
    "a journal whose times go back": (
        sql("UPDATE journal SET recorded = recorded - 5 WHERE seq = 5",
            rows.renew_crc_sql("journal", "seq = 5")),
        "journal", "journal [5]",
    ),
    "a journal with a time ahead of those after it": (
        sql("UPDATE journal SET recorded = recorded + 5000 WHERE seq = 5",
            rows.renew_crc_sql("journal", "seq = 5")),
        "journal", "journal [6]",
    ),
    "a journal recorded near 2**61": (
        sql(f"UPDATE journal SET recorded = {2**61} WHERE seq = 5",
            rows.renew_crc_sql("journal", "seq = 5")),
        "value", "journal [5]",
    ),
    "a time of recording before the clock began": (
        sql("UPDATE journal SET recorded = -5 WHERE seq = 1",
            rows.renew_crc_sql("journal", "seq = 1")),
        "value", "journal [1]",
    ),
    "a journal that is said to begin later": (
        sql("INSERT INTO meta VALUES ('journal_since', '5')"), "value", "journal_since",
    ),
    "a metric that there is not": (
        sql("UPDATE meta SET value = 'odd' WHERE key = 'metric'"), "value", "metric",
    ),
    "a clock that there is not": (
        sql("INSERT OR REPLACE INTO meta VALUES ('clock', 'odd')"), "value", "clock",
    ),
    "settings of the index that are no JSON": (
        sql("UPDATE meta SET value = '[[' WHERE key = 'index'"), "value", "index",
    ),
    "limits of the history that are none": (
        sql("INSERT OR REPLACE INTO meta VALUES ('history', x'00ff')"), "value", "history",
    ),
    "a dimension that is gone": (
        sql("DELETE FROM meta WHERE key = 'dim'"), "value", "dim",
    ),
    "a store without a name": (
        sql("DELETE FROM meta WHERE key = 'uuid'"), "value", "uuid",
    ),
    "an import that broke off": (
        lambda folder: (folder / "import.partial").mkdir(), "stray_file", "import.partial",
    ),
    "half of what was learned": (
        lambda folder: (folder / "index" / "learned-0123456789abcdef.bin.tmp").write_text(""),
        "stray_file", "index/learned-0123456789abcdef.bin.tmp",
    ),
    "a snapshot that is a link": (
        lambda folder: (folder / "index" / "77.cvx").symlink_to("/etc/hosts"),
        "snapshot", "index/77.cvx",
    ),
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
def test_a_planted_damage_is_named_and_left_out_of_a_new_store(folder: Path, name: str) -> None:
    plant, expected, where = PLANTS[name]
    before = planted.contents(folder)
    plant(folder)
    harmed = files(folder)
    report = check(folder)
    assert any(c == expected and where in w for c, w in found(report)), found(report)
    assert files(folder) == harmed
    new = repaired(folder)
    assert files(folder) == harmed
    assert check(new).findings == ()
    after = planted.contents(new)
    assert after["events"][1:] == before["events"][1:]
    for table in set(rows.COLUMNS) - {"events", "journal"}:
        assert after[table] == before[table]
    with Memory.open(new, embedder=embedder()) as memory:
        assert [hit.event.event_id for hit in memory.recall("cellar", k=1) if hit.event] == [14]
        assert memory.add("the next one").id == 17
    # Now that whoever opened it has said what vectors it holds, where that was lost.
    assert check(new, deep=True).findings == ()


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
    "a time of recording near 2**61": ("recorded", 2**61, "up to 253402300800000000"),
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
    assert check(repaired(folder)).sound


def test_an_event_with_an_odd_time_of_recording_is_kept(folder: Path) -> None:
    before = planted.contents(folder)
    sql(f"UPDATE events SET recorded = {2**61} WHERE event_id = 3",
        rows.renew_crc_sql("events", "event_id = 3"))(folder)  # fmt: skip
    after = planted.contents(repaired(folder))
    assert [row[:3] for row in after["events"]] == [row[:3] for row in before["events"]]
    assert {*map(len, (before["aliases"], after["aliases"]))} == {len(before["aliases"])}


def test_times_go_forth_again_in_a_new_store(folder: Path) -> None:
    def times(of: Path) -> list[object]:
        return [row[1] for row in planted.contents(of)["journal"]]

    before = times(folder)
    for late, there in ((-5, before[3]), (5000, before[5])):
        harmed = shutil.copytree(folder, folder.with_name(f"harmed{late}"))
        sql(f"UPDATE journal SET recorded = recorded + {late} WHERE seq = 5",
            rows.renew_crc_sql("journal", "seq = 5"))(harmed)  # fmt: skip
        assert times(repaired(harmed)) == [*before[:4], there, *before[5:]]


def test_rows_recorded_after_the_last_change_are_named(folder: Path) -> None:
    sql("UPDATE events SET recorded = recorded + 500000 WHERE event_id = 3",
        rows.renew_crc_sql("events", "event_id = 3"))(folder)  # fmt: skip
    report = check(folder)
    assert (found(report), report.sound) == ([("clock_ahead", "events")], True)
    assert check(repaired(folder), deep=True).findings == ()


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("name", ["index", "LOCK", "memory.db", "memory.db-wal"])
def test_a_link_in_the_place_of_a_file_is_named_and_not_followed(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (folder / name).touch()
    shutil.move(folder / name, tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    before = files(tmp_path)
    report = check(folder)
    assert ("misplaced", name) in found(report)
    assert not report.sound
    assert files(tmp_path) == before


@pytest.mark.requirement("X9")
def test_a_table_of_somebodys_is_named_and_left(folder: Path) -> None:
    sql("CREATE TABLE copies (text)", "INSERT INTO copies VALUES ('dear to somebody')")(folder)
    report = check(folder)
    assert found(report) == [("schema", "table copies")]
    assert not report.sound
    assert check(repaired(folder)).findings == ()
    with planted.opened(folder) as db:
        assert db.execute("SELECT text FROM copies").fetchall() == [("dear to somebody",)]


@pytest.mark.requirement("X9")
def test_a_journal_that_names_another_file_is_named(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("dear to me")
    planted.journal_that_names(folder / "memory.db", mine)
    report = check(folder)
    assert found(report) == [("misplaced", "memory.db-journal")]
    with pytest.raises(RecordIOError):
        repaired(folder)
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
def test_a_flipped_bit_in_a_row_of_any_table_is_named_and_the_row_left_out(
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
    new = repaired(folder)
    assert check(new, deep=True).findings == ()
    after = planted.contents(new)
    assert after["events"] or table == "events"
    assert [row for row in before[table] if rows.key_of(table, row) == list(key)]
    if table != "journal":
        assert len(after[table]) < len(before[table])
        assert not [row for row in after[table] if rows.key_of(table, row) == list(key)]


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
def test_what_hangs_on_a_lost_event_goes_with_it_and_is_counted(folder: Path) -> None:
    sql("UPDATE events SET text = 'something quite different' WHERE event_id = 13")(folder)
    assert ("row", "events [13]") in found(check(folder))
    saved = repair(folder, folder.with_name("new"))
    assert {table for table, number in saved.wrong.items() if number} == {
        "aliases", "events", "links", "usage",
    }  # fmt: skip
    assert saved.wrong["links"] == 2
    assert saved.counts["events"] == 15
    assert check(folder.with_name("new"), deep=True).findings == ()
    with Memory.open(folder.with_name("new"), embedder=embedder()) as memory:
        assert memory.admin.check() == []
        assert len(memory) == 14
        assert all(hit.event.event_id != 13 for hit in memory.recall("it poured") if hit.event)
        assert memory.add("the next one").id == 17


def test_the_steps_of_an_episode_beyond_repair_stay_as_events(folder: Path) -> None:
    sql("UPDATE episodes SET goal = 'who knows' WHERE episode_id = 2")(folder)
    steps = [e for e in planted.contents(folder)["events"] if e[12] == 2]
    after = {e[0]: e for e in planted.contents(repaired(folder))["events"]}
    assert steps
    for step in steps:
        assert after[step[0]] == (*step[:12], None, *step[13:])


def test_a_damaged_change_keeps_its_number(folder: Path) -> None:
    sql("UPDATE journal SET body = '[\"garbage\"]' WHERE seq = 3")(folder)
    new = repaired(folder)
    assert check(new, deep=True).findings == ()
    with planted.opened(new) as db:
        assert db.execute("SELECT op FROM journal WHERE seq = 3").fetchall() == [("lost",)]


@pytest.mark.requirement("X9")
def test_a_lost_tail_is_named_and_a_new_store_goes_on_without_it(folder: Path) -> None:
    planted.lost_tail(folder)
    harmed = files(folder)
    report = check(folder)
    assert "lost_tail" in {c for c, _ in found(report)}
    assert not report.sound
    with Memory.open(repaired(folder), embedder=embedder()) as memory:
        assert len(memory) == 15
    assert files(folder) == harmed


def test_a_broken_off_erase_is_named_and_finished_by_the_next_opening(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.processes", str(folder)],
        env={**os.environ, ENVIRONMENT: "erase.committed"},
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert "erase_unfinished" in {c for c, _ in found(check(folder))}
    Memory.open(folder, embedder=embedder()).close()
    assert check(folder).findings == ()
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
    report = check(folder)
    assert not report.sound
    assert {c for c, _ in found(report)} & {"file", "page"}
    with pytest.raises(DamagedStoreError, match="restore a copy"):
        repaired(folder)
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
    report = check(folder, deep=True)
    assert found(report) == [("misplaced", name)]
    assert not report.sound
    assert f"is {other}" in report.findings[0].what
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
    with pytest.raises(StoreVersionError, match=cure):
        check(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_looking_goes_on_beside_a_writer(folder: Path) -> None:
    with Memory.open(folder, embedder=LexicalEmbedder(dim=16)) as memory:
        for number in range(20):
            memory.add(f"thing {number}")
            if number % 5 == 0:
                memory.admin.snapshot()
            assert check(folder).findings == ()
