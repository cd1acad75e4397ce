"""The DuckDB file of a core: its tables, what survives, and what cannot be opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from cvx.causal import CausalMemoryCore
from cvx.errors import (
    DamagedStoreError,
    InvalidInputError,
    InvalidVectorError,
    StoreError,
)
from tests.causal.cores import START, Model, Words, core, rows, yes


def filled(path: Path) -> None:
    with core(Model(yes), str(path)) as made:
        for text in ("Rain.", "Rain and flood.", "The flood left mould."):
            made.add_event(text)


def test_a_path_that_is_none_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for none in (None, 5):
        with pytest.raises(InvalidInputError, match=f"db_path is {none}: give a path"):
            CausalMemoryCore(none)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("C1", "C3")
def test_the_table_is_that_of_the_blueprint(tmp_path: Path) -> None:
    filled(tmp_path / "core.db")
    db = duckdb.connect(str(tmp_path / "core.db"))
    columns = db.execute(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_name = 'events' ORDER BY ordinal_position"
    ).fetchall()
    indexes = db.execute("SELECT expressions FROM duckdb_indexes() WHERE table_name = 'events'")
    assert "timestamp" in str(indexes.fetchall())
    assert db.execute("SELECT event_id, cause_id FROM events ORDER BY 1").fetchall() == [
        (1, None),
        (2, 1),
        (3, 2),
    ]
    db.close()
    assert columns == [
        ("event_id", "INTEGER", "NO"),
        ("timestamp", "TIMESTAMP", "NO"),
        ("effect_text", "VARCHAR", "NO"),
        ("embedding", "FLOAT[]", "NO"),
        ("cause_id", "INTEGER", "YES"),
        ("relationship_text", "VARCHAR", "YES"),
    ]


@pytest.mark.requirement("C1", "C2")
@pytest.mark.parametrize(
    ("cause", "how", "embedding"),
    [(1, None, [1.0]), (None, "somehow", [1.0]), (99, "somehow", [1.0]), (None, None, None)],
)
def test_the_file_itself_refuses_what_the_blueprint_forbids(
    tmp_path: Path, cause: int | None, how: str | None, embedding: list[float] | None
) -> None:
    filled(tmp_path / "core.db")
    with duckdb.connect(str(tmp_path / "core.db")) as db, pytest.raises(duckdb.ConstraintException):
        db.execute(
            "INSERT INTO events (timestamp, effect_text, embedding, cause_id, relationship_text)"
            " VALUES (?, 'x', ?, ?, ?)",
            [START, embedding, cause, how],
        )


@pytest.mark.requirement("C1", "W26")
def test_everything_is_there_after_closing_and_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "core.db"
    filled(path)
    with core(Model(yes), str(path)) as made:
        assert len(made) == 3
        told = made.get_context("mould")
        assert told.startswith("The flood left mould. This was because")
        made.add_event("A cat.")
        assert [event.event_id for event in made.events()] == [1, 2, 3, 4]


@pytest.mark.requirement("C1")
def test_ids_go_on_behind_those_that_somebody_else_has_written(tmp_path: Path) -> None:
    path = str(tmp_path / "core.db")
    core(path=path).close()
    with duckdb.connect(path) as db:
        db.execute("INSERT INTO events VALUES (41, ?, 'Rain.', ?, NULL, NULL)", [START, [1.0] * 9])
    with core(path=path) as made:
        made.add_event("Flood.")
        assert [event.event_id for event in made.events()] == [41, 42]
    with core(path=path) as made:
        made.add_event("Mould.")
        assert made.events()[-1].event_id == 43


@pytest.mark.requirement("X8")
def test_another_embedding_model_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    class Other(Words):
        KNOWN = ("rain", "flood")

    path = str(tmp_path / "core.db")
    filled(Path(path))
    with CausalMemoryCore(path, None, Other()) as made:
        for call in (made.add_event, made.get_context):
            with pytest.raises(InvalidVectorError, match="3 dimensions"):
                call("Rain.")
        assert len(made.events()) == 3


def loose_file(path: Path, links: list[tuple[int, int | None]]) -> None:
    """A file from elsewhere, without constraints."""
    with duckdb.connect(str(path)) as db:
        db.execute(
            "CREATE TABLE events (event_id INTEGER, timestamp TIMESTAMP, effect_text VARCHAR,"
            " embedding FLOAT[], cause_id INTEGER, relationship_text VARCHAR, extra VARCHAR)"
        )
        for event, cause in links:
            how = None if cause is None else "somehow"
            values = [event, START, f"Event {event} happened.", [1.0] * 9, cause, how, "more"]
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)


@pytest.mark.requirement("C10")
def test_a_circle_or_a_cause_that_is_gone_ends_the_chain(tmp_path: Path) -> None:
    loose_file(tmp_path / "core.db", [(1, 3), (2, 1), (3, 2), (4, 99), (5, 5)])
    with core(path=str(tmp_path / "core.db")) as made:
        assert [event.event_id for event in made.chain(3)] == [1, 2, 3]
        assert [event.event_id for event in made.chain(4)] == [4]
        assert [event.event_id for event in made.chain(5)] == [5]
        assert made.chain(6) == []
        assert [event.event_id for event in made.consequences(1, 9)] == [2, 3]
        assert made.get_context("Event").count("happened") <= 3
        made.add_event("A cat.")
        assert made.events()[-1].event_id == 6


def test_a_file_of_another_process_says_so(tmp_path: Path) -> None:
    path = tmp_path / "core.db"
    filled(path)
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('open', flush=True);"
         " sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(StoreError, match=r"another process.*use cvx\.Memory"):
        core(path=str(path))
    holder.communicate("")
    with core(path=str(path)) as made:
        assert len(rows(made)) == 3


def test_a_damaged_file_says_so_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "core.db"
    filled(path)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[100] ^= 0xFF
    for damaged in (b"", b"hello, no database", whole[:6000], bytes(flipped)):
        path.write_bytes(damaged)
        with pytest.raises(DamagedStoreError, match="restore a copy"):
            core(path=str(path))
        assert path.read_bytes() == damaged


def test_a_file_that_is_no_core_says_so_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE events (name VARCHAR)")
    with pytest.raises(StoreError, match="a table events of name"):
        core(path=str(path))
    with duckdb.connect(str(path)) as db:
        assert db.execute("SHOW TABLES").fetchall() == [("events",)]
    with pytest.raises(StoreError):
        core(path=str(tmp_path / "nowhere" / "core.db"))


@pytest.mark.parametrize("vector", [None, [], [1.0, 2.0]])
def test_a_file_with_vectors_of_several_models_says_so(
    tmp_path: Path, vector: list[float] | None
) -> None:
    loose_file(tmp_path / "core.db", [(1, None), (2, 1)])
    with duckdb.connect(str(tmp_path / "core.db")) as db:
        db.execute("UPDATE events SET embedding = ? WHERE event_id = 2", [vector])
    with pytest.raises(StoreError, match="vectors of"):
        core(path=str(tmp_path / "core.db"))
