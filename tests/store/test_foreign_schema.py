"""A memory.db from somebody else: what its schema would run is named, and never runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cvx.errors import DamagedStoreError, StoreVersionError
from cvx.memory import Memory
from cvx.store import Record, rows
from cvx.store.database import describe
from cvx.store.doctor import repair
from cvx.store.doctor.findings import Check
from cvx.store.schema import SET_ASIDE
from tests.store import planted
from tests.store.index_comparison import check, repaired
from tests.store.processes import embedder

pytestmark = pytest.mark.requirement("B16")

COPIES = (
    "CREATE TRIGGER copies AFTER INSERT ON events BEGIN INSERT INTO kept VALUES (new.text); END"
)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign") / "m"
    planted.rich_store(folder)
    return folder


@pytest.fixture
def store(rich: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rich, tmp_path / "m"))


def ways_in(folder: Path) -> list[Callable[[], object]]:
    return [
        lambda: Memory.open(folder, embedder=embedder()),
        lambda: Memory.open(folder, embedder=embedder(), read_only=True),
        lambda: Record(folder / "memory.db"),
    ]


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (("CREATE TABLE kept (text)", COPIES), ["table kept", "trigger copies"]),
        (("CREATE VIEW seen AS SELECT text FROM events",), ["view seen"]),
        ((f"CREATE VIEW endless AS {ENDLESS}",), ["view endless"]),
        (("CREATE UNIQUE INDEX one_each ON events (event_id, kind)",), ["index one_each"]),
        (("DROP INDEX events_by_key",), ["index events_by_key"]),
        (
            (
                "DROP INDEX events_by_source",
                "CREATE INDEX events_by_source ON events (source) WHERE source = 'x'",
            ),
            ["index events_by_source"],
        ),
    ],
    ids=lambda value: value[-1].split(" AS")[0] if isinstance(value, tuple) else "",
)
def test_what_no_record_has_is_refused_named_and_not_taken_over(
    store: Path, plant: tuple[str, ...], named: list[str]
) -> None:
    before = planted.contents(store)
    planted.sql(*plant)(store)
    for open_it in ways_in(store):
        with pytest.raises(DamagedStoreError, match="cvx doctor"):
            open_it()
    # What says what the store is, and the doctor, only read it.
    assert describe(store).dim == embedder().info()["dim"]
    found = [one for one in check(store).findings if one.check is Check.SCHEMA]
    assert sorted(one.where for one in found) == named
    new = repaired(store)
    Memory.open(new, embedder=embedder()).close()
    assert check(new, deep=True).findings == ()
    assert planted.contents(new) == before


def test_a_trigger_never_sees_what_is_added(store: Path) -> None:
    planted.sql("CREATE TABLE kept (text)", COPIES)(store)
    with pytest.raises(DamagedStoreError):
        Memory.open(store, embedder=embedder()).add("a secret")
    repaired(store)
    with planted.opened(store) as db:
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (0,)


@pytest.mark.parametrize("table", ["meta", "events", "journal", "links"])
def test_a_view_in_the_place_of_a_table_is_never_read(
    store: Path, tmp_path: Path, table: str
) -> None:
    columns = ", ".join(["value", *rows.COLUMNS.get(table, ("key",)), "crc"][:3])
    planted.sql(
        f"DROP TABLE {table}",
        f"CREATE VIEW {table} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        f" SELECT i AS {columns.replace(', ', ', i AS ')} FROM n",
    )(store)
    ways: list[Callable[[], object]] = [
        *ways_in(store),
        lambda: describe(store),
        lambda: repair(store, tmp_path / "new"),
    ]
    for way in ways:
        with pytest.raises((DamagedStoreError, StoreVersionError)):
            way()
    if table != "meta":
        report = check(store)
        assert [one.check for one in report.findings] == [Check.FILE]


def test_what_sqlite_keeps_for_itself_and_what_repairs_made_is_known(store: Path) -> None:
    with planted.opened(store) as db:
        db.execute("ANALYZE")
        db.execute(SET_ASIDE)
    assert check(store).findings == ()
    with Memory.open(store, embedder=embedder()) as memory:
        assert memory.record.query("PRAGMA trusted_schema") == [(0,)]
    with Memory.open(store, embedder=embedder(), read_only=True) as memory:
        assert memory.record.query("PRAGMA trusted_schema") == [(0,)]
