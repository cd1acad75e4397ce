"""Files from somebody else, changed at random: a typed error or a sound store, and nothing else.

``CVX_MUTANTS`` says how many of each kind; the test prints the count.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cvx.errors import CvxError, DamagedStoreError
from cvx.memory import Memory
from cvx.memory.transfer import import_export
from cvx.store import rows
from cvx.store.doctor import repair
from cvx.types import Cue
from tests.counting import LOG, ROUND, size
from tests.counting import tried as told_tried
from tests.store import planted
from tests.store.index_comparison import check, repaired
from tests.store.processes import embedder
from tests.store.test_foreign_export import Lines, changed

pytestmark = pytest.mark.requirement("B16")

MUTANTS = size("CVX_MUTANTS", 25_000, 60)
STORES = MUTANTS // 3
"""Each of these is opened, asked, examined, mended and rescued, and asked again."""
ODD: list[Any] = [
    None, 0, 1, -1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 3_000_000_000,
    0.0, 0.5, -0.5, 1.5, 1e300, float("inf"), float("nan"),
    "", "x", "\0", "\ud83d", "ana\x1fpublic", "{", "[]", "{}", "[[]]", "[[0,1]]", '["a"]',
    '{"a":1}', "[[0,3000000000]]", "NaN", "null", '[["usage",["x"],null]]', "a" * 5000,
    "[" * 2000 + "]" * 2000, "drop table", "erase", "insert", "link", "public", "quarantined",
    "\u202e\x1b[31m", "9" * 30, "active", "caused", True, False,
]  # fmt: skip


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutants")
    planted.rich_store(folder / "m")
    with Memory.open(folder / "m", embedder=embedder()) as memory:
        for helped in (True, False, True):
            hits = memory.recall("the cellar flooded")
            memory.feedback(hits, followed=hits[:1], helped=helped)
        kept = memory.record.query("SELECT name FROM model_state")
        assert {"weights", "recall:", "sources:"} <= {name for (name,) in kept}
        for ending in ("jsonl", "parquet", "duckdb"):
            memory.admin.export(folder / f"all.{ending}")
    return folder


_watchers: list[Callable[[str, Any], None]] = []
sys.addaudithook(lambda event, given: [watch(event, given) for watch in _watchers] and None)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[list[str]]:
    """What Python writes outside the folder of the test, and every connection it makes."""
    found: list[str] = []

    def watch(event: str, given: Any) -> None:
        if event == "socket.connect":
            found.append(f"{event} {given}")
        elif event == "open" and isinstance(given[0], str | bytes | Path):
            path, writing = Path(os.fsdecode(given[0])), given[2] & (os.O_WRONLY | os.O_RDWR)
            ours = path.is_relative_to(tmp_path) or "__pycache__" in path.parts or path == LOG
            if writing and path.is_absolute() and not ours:
                found.append(f"{event} {path}")

    _watchers.append(watch)
    yield found
    _watchers.remove(watch)


def use(folder: Path) -> bool:
    """Ask and do everything; each answers, or raises what a user can understand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            memory = Memory.open(folder, embedder=embedder())
        except CvxError:
            return False
        # Closing writes down what was noted: it may meet what is odd, too.
        with suppress(CvxError), memory:
            recorded = memory.record.now()
            for work in (
                lambda: memory.recall("rain"),
                lambda: memory.context("the cellar"),
                lambda: str(memory.why(14)),
                lambda: str(memory.consequences(13)),
                memory.events,
                memory.admin.stats,
                lambda: memory.get(memory.add("life goes on").id),
                lambda: memory.link(13, 14),
                lambda: memory.feedback(memory.context("rain").decision or 0, helped=True),
                lambda: memory.admin.quarantine(source="x"),
                lambda: memory.as_of(recorded - 5).recall("rain"),
                lambda: memory.learning.loop().recall(Cue(step="at the sink")),
                lambda: memory.admin.export(folder.with_name("again.jsonl")),
                lambda: memory.erase([3]),
            ):
                with suppress(CvxError):
                    work()
    return True


def cleared(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def odd_state(rng: random.Random, value: str) -> str:
    """Put an odd value somewhere into what a model has learned."""
    told: Any = {"": json.loads(value)}
    inside, key = told, ""
    while (below := inside[key]) and isinstance(below, dict | list) and rng.random() < 0.8:
        inside, key = (
            below,
            rng.choice([*(below if isinstance(below, dict) else range(len(below)))]),
        )
    if isinstance(inside, dict) and key and rng.random() < 0.3:
        inside[str(rng.choice(ODD))] = inside.pop(key)
    else:
        inside[key] = rng.choice([*ODD, [], {}])
    return json.dumps(told[""])


def odd_export(rng: random.Random) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        for _ in range(rng.choice((1, 1, 1, 3))):
            told = rng.choice(lines[:-1] if rng.random() < 0.9 else lines[:1])
            if "meta" in told:
                part: dict[str, Any] = rng.choice([told, told["meta"], told["counts"]])
                part[rng.choice([*part])] = rng.choice([*ODD, "17", "5", [], {}])
            elif rng.random() < 0.1:
                state = rng.choice([one for one in lines if one.get("table") == "model_state"])
                with suppress(TypeError, ValueError):
                    state["value"] = odd_state(rng, state["value"])
            elif rng.random() < 0.9:
                told[rng.choice(rows.COLUMNS[told["table"]])] = rng.choice(ODD)
            else:
                lines.insert(rng.randrange(1, len(lines)), dict(told))

    return change


def odd_bytes(rng: random.Random, path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 4, 64))):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    path.write_bytes(raw[: rng.choice((len(raw), rng.randrange(len(raw) + 1)))])


def odd_copy(rng: random.Random, rich: Path, path: Path) -> bool:
    """Make a changed copy of an export; False where no checksum fits what it would say."""
    if path.suffix != ".jsonl":
        name = f"all{path.suffix}"
        copied = shutil.copytree if (rich / name).is_dir() else shutil.copy
        copied(rich / name, path)
        odd_bytes(rng, rng.choice([*path.rglob("*.*")]) if path.is_dir() else path)
        return True
    try:
        changed(rich, path, odd_export(rng))
    except (TypeError, KeyError, ValueError):
        return False
    return True


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "duckdb"])
def test_an_export_that_was_changed_is_refused_or_sound(
    rich: Path, tmp_path: Path, watched: list[str], ending: str
) -> None:
    rng, tried, taken, opened = random.Random(11 + 100 * ROUND), 0, 0, 0
    path = tmp_path / f"all.{ending}"
    for _ in range(MUTANTS):
        cleared(path)
        if not odd_copy(rng, rich, path):
            continue
        tried += 1
        told_tried(f"changed exports in {ending} ({taken} sound, {opened} opened)", tried)
        try:
            import_export(tmp_path / "new", path)
        except CvxError:
            assert not (tmp_path / "new").exists()
            continue
        taken += 1
        assert check(tmp_path / "new", deep=True).sound
        # With another name of an embedder it is sound, and opened with that one only.
        opened += use(tmp_path / "new")
        assert check(tmp_path / "new").sound
        cleared(tmp_path / "new", tmp_path / "again.jsonl")
    print(
        f"\n{tried} changed exports in {ending}: {taken} sound, {opened} opened, the others refused"
    )
    assert 0 < opened <= taken < tried
    assert watched == []


def odd_record(rng: random.Random, folder: Path) -> None:
    """Put odd values into rows, most of them with a checksum that fits."""
    with planted.opened(folder) as db:
        for _ in range(rng.choice((1, 1, 1, 3))):
            table = rng.choice([*rows.COLUMNS, "meta"])
            names = rows.COLUMNS.get(table, ("value",))
            key, where = None, f"{names[-1]} IS NOT ?"
            if table not in ("meta", "links", "usage", "decays", "model_state"):
                (key,) = rng.choice(db.execute(f"SELECT rowid FROM {table}").fetchall())
                where = "rowid = ?"
            value = rng.choice([*ODD, b"", b"\xff\xfe", bytes(64)])
            with suppress(sqlite3.Error, UnicodeError, OverflowError):
                db.execute(
                    f"UPDATE {table} SET {rng.choice(names)} = ? WHERE {where}", (value, key)
                )
            if table != "meta" and rng.random() < 0.9:
                with suppress(sqlite3.Error):
                    db.execute(rows.renew_crc_sql(table, "true"))


def odd_model(rng: random.Random, folder: Path) -> None:
    """Put odd values into what models have learned, with a checksum that fits."""
    with planted.opened(folder) as db:
        name, value = rng.choice(db.execute("SELECT name, value FROM model_state").fetchall())
        changed = odd_state(rng, value) if rng.random() < 0.9 else rng.choice([*ODD, b"\xff"])
        with suppress(UnicodeError, OverflowError):
            db.execute("UPDATE model_state SET value = ? WHERE name = ?", (changed, name))
        db.execute(rows.renew_crc_sql("model_state", "true"))


def odd_file(rng: random.Random, folder: Path) -> None:
    """Change bytes of the database, a snapshot or the lock, or cut one short."""
    odd_bytes(rng, rng.choice([*folder.rglob("*.cvx"), folder / "memory.db", folder / "LOCK"]))


@pytest.mark.filterwarnings("ignore::cvx.errors.DamagedRowsWarning")
@pytest.mark.parametrize("odd", [odd_record, odd_model, odd_file])
def test_a_store_that_was_changed_answers_or_says_why_not(
    rich: Path, tmp_path: Path, watched: list[str], odd: Callable[[random.Random, Path], None]
) -> None:
    rng, opened, mended = random.Random(12 + 100 * ROUND), 0, 0
    folder, rescued = tmp_path / "m", tmp_path / "rescued"
    for number in range(STORES):
        told_tried(
            f"changed stores, {odd.__name__} ({opened} opened, {mended} mended)", number, 100
        )
        shutil.copytree(rich / "m", folder)
        if number % 2:
            # Without a snapshot the index is made of the rows as they are now.
            shutil.rmtree(folder / "index")
        odd(rng, folder)
        with suppress(CvxError):
            repair(folder, rescued)
            mended += check(rescued, deep=True).sound
            use(rescued)
        opened += use(folder)
        cleared(folder, rescued, tmp_path / "again.jsonl")
    print(f"\n{STORES} changed stores: {opened} opened, {mended} sound after a repair")
    assert min(opened, mended) > 0
    assert watched == []


@pytest.mark.filterwarnings("ignore::cvx.errors.DamagedRowsWarning")
@pytest.mark.parametrize(
    ("table", "column", "value", "verb"),
    [
        ("links", "weight", "x", lambda memory: memory.why(14)),
        ("events", "timestamp", "x", lambda memory: memory.frames.events()),
        ("events", "text", b"\xff", lambda memory: memory.recall("rain")),
        ("usage", "retrieved", "x", lambda memory: memory.recall("rain")),
        ("episodes", "metadata", "[" * 2000, lambda memory: memory.learning.loop().episodes[1]),
        ("journal", "body", '{"a":1}', lambda memory: memory.erase([3])),
    ],
)
def test_an_odd_value_with_a_fitting_checksum_is_named(
    rich: Path, tmp_path: Path, table: str, column: str, value: object, verb: Any
) -> None:
    shutil.copytree(rich / "m", tmp_path / "m")
    with planted.opened(tmp_path / "m") as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.execute(rows.renew_crc_sql(table, "true"))
    with (
        pytest.raises(DamagedStoreError, match=f"of {table} could not have been written by cvx"),
        Memory.open(tmp_path / "m", embedder=embedder()) as memory,
    ):
        verb(memory)


@pytest.mark.filterwarnings("ignore::cvx.errors.DamagedRowsWarning")
@pytest.mark.parametrize("chain", ["x", b"", 1.5])
def test_a_chain_that_is_no_number_is_named_and_repaired(
    rich: Path, tmp_path: Path, chain: object
) -> None:
    shutil.copytree(rich / "m", tmp_path / "m")
    with planted.opened(tmp_path / "m") as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE journal SET chain = ? WHERE seq = 3", (chain,))
        db.execute(rows.renew_crc_sql("journal", "seq = 3"))
    found = check(tmp_path / "m", deep=True)
    assert ("value", "journal [3]") in [(one.check, one.where) for one in found.findings]
    assert check(repaired(tmp_path / "m")).sound


def test_an_episode_recorded_after_its_events_stops_no_look_back(
    rich: Path, tmp_path: Path
) -> None:
    def late(lines: Lines) -> None:
        for told in lines:
            if told.get("table") == "episodes":
                told["recorded"] = 2**57

    path = changed(rich, tmp_path / "all.jsonl", late)
    import_export(tmp_path / "new", path)
    assert check(tmp_path / "new", deep=True).sound
    with Memory.open(tmp_path / "new", embedder=embedder()) as memory:
        now = max(event.recorded or 0 for event in memory.events())
        past = memory.as_of(now)
        assert past.recall("rain")
        assert past.record.episodes() == []


def test_a_count_that_has_come_to_its_end_goes_no_further(rich: Path, tmp_path: Path) -> None:
    def at_the_end(lines: Lines) -> None:
        for told in lines:
            if told.get("table") == "usage":
                told["retrieved"] = told["followed"] = told["helped"] = rows.MOST_ID

    path = changed(rich, tmp_path / "all.jsonl", at_the_end)
    import_export(tmp_path / "new", path)
    with Memory.open(tmp_path / "new", embedder=embedder()) as memory:
        for text in ("rain", "the cellar", "the lamp"):
            memory.feedback(memory.context(text), helped=True)
    assert check(tmp_path / "new").sound


@pytest.mark.parametrize("column", ["action_scores", "hits", "cue"])
def test_odd_decisions_stop_no_erase_once_repaired(rich: Path, tmp_path: Path, column: str) -> None:
    shutil.copytree(rich / "m", tmp_path / "m")
    with planted.opened(tmp_path / "m") as db:
        db.execute(f"UPDATE decisions SET {column} = ?", ("[" * 2000 + "]" * 2000,))
        db.execute(rows.renew_crc_sql("decisions", "true"))
    new = repaired(tmp_path / "m")
    assert check(new).sound
    with Memory.open(new, embedder=embedder()) as memory:
        memory.erase([3])
    assert check(new).sound


def test_a_change_far_away_is_not_reached_row_by_row(rich: Path, tmp_path: Path) -> None:
    shutil.copytree(rich / "m", tmp_path / "m")
    with planted.opened(tmp_path / "m") as db:
        db.execute("UPDATE journal SET seq = 1 << 45 WHERE seq = (SELECT max(seq) FROM journal)")
        db.execute(rows.renew_crc_sql("journal", "seq = 1 << 45"))
    assert not check(tmp_path / "m").sound
    with pytest.raises(DamagedStoreError, match="at most 1,000,000 are marked as lost"):
        repaired(tmp_path / "m")


def test_an_alias_of_what_is_no_event_stops_no_recall(rich: Path, tmp_path: Path) -> None:
    shutil.copytree(rich / "m", tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "index")
    with planted.opened(tmp_path / "m") as db:
        db.execute("UPDATE aliases SET event_id = ?", ("9" * 30,))
        db.execute(rows.renew_crc_sql("aliases", "true"))
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert memory.recall("the cellar flooded")
    assert check(repaired(tmp_path / "m"), deep=True).sound


def test_the_changes_are_what_the_checks_see(rich: Path, tmp_path: Path) -> None:
    path = changed(rich, tmp_path / "all.jsonl", lambda _: None)
    assert json.loads(path.read_text().splitlines()[0])["cvx"] == "export"
    assert import_export(tmp_path / "new", path).counts["events"] == 16
