"""A store with something of everything in it, and ways to damage it."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cvx.memory import Memory
from cvx.store import rows
from cvx.types import Cue
from tests.store.processes import embedder

Plant = Callable[[Path], object]


def rich_store(folder: Path) -> None:
    """Make a store with rows in every table, of every kind of event, and two snapshots."""
    ticks = iter(range(1000, 100_000))
    with Memory._opened(folder, embedder(), now=ticks.__next__) as memory:
        loop = memory.learning.loop()
        for number in range(6):
            run = loop.begin(f"goal {number}", "clean")
            for place in ("sink", "table"):
                decision = loop.recall(Cue(step=f"at the {place} {number}"))
                loop.act(decision, f"go to {place}", decision.hits[:1])
            loop.close(run, float(number % 2 == 0))
        first = memory.add(
            "rain fell", aliases=["it poured", "東京の雨"], metadata={"a": [1, None]}
        ).id
        second = memory.add("the cellar flooded", source="x", salience=0.5, visibility="public").id
        memory.admin.declare_edge_kind("soaked")
        memory.link(first, second, "soaked", weight=0.5, why="the drain was small", evidence="seen")
        memory.link(first, second, "caused", weight=0.75, why="rain")
        memory.update(first, reward=0.25)
        memory.forget(memory.add("an archived one").id)
        memory.recall("rain")
        memory.admin.snapshot()
        memory.add("after the snapshot")


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database as a vandal sees it; what is done stays."""
    db = sqlite3.connect(folder / "memory.db", isolation_level=None)
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.create_function("cvx_crc", -1, rows.row_crc)
    try:
        yield db
    finally:
        db.close()


def contents(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every checked row of a store."""
    with opened(folder) as db:
        return {
            table: db.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
            for table, names in rows.COLUMNS.items()
        }


def sql(*statements: str) -> Plant:
    def plant(folder: Path) -> None:
        with opened(folder) as db:
            for statement in statements:
                db.execute(statement)

    return plant


def journal_that_names(database: Path, victim: Path) -> None:
    """Put a rollback journal beside a database, which is done when another file is deleted."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(victim).encode()
    raw = database.read_bytes()
    (page,) = struct.unpack(">H", raw[16:18])
    head = magic + struct.pack(">5I", 0, 1, len(raw) // page, 512, page)
    last = struct.pack(">I", 2**30 // page + 1) + name + struct.pack(">2I", len(name), sum(name))
    database.with_name(f"{database.name}-journal").write_bytes(
        head.ljust(512, b"\0") + last + magic
    )


def scribble_on_an_index(folder: Path) -> None:
    """Take an entry out of a secondary index, behind SQLite's back."""
    with opened(folder) as db:
        db.execute("PRAGMA writable_schema = ON")
        root, sql = db.execute(
            "SELECT rootpage, sql FROM sqlite_master WHERE name = 'events_by_source'"
        ).fetchone()
        db.execute("DELETE FROM sqlite_master WHERE name = 'events_by_source'")
    with opened(folder) as db:
        db.execute("UPDATE events SET source = 'elsewhere' WHERE event_id = 1")
        db.execute(rows.renew_crc_sql("events", "event_id = 1"))
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "INSERT INTO sqlite_master VALUES ('index', 'events_by_source', 'events', ?, ?)",
            (root, sql),
        )


def manifest(folder: Path) -> Path:
    return max((folder / "index").glob("*.json"), key=lambda path: int(path.stem))


def other_store(folder: Path) -> None:
    """Put the snapshot of another store beside this record."""
    with Memory.open(folder.with_name("other"), embedder=embedder()) as memory:
        memory.add("of another store")
        memory.admin.snapshot()
    for path in (folder.with_name("other") / "index").iterdir():
        path.rename(folder / "index" / path.name)


def lost_tail(folder: Path) -> None:
    """Put an older copy of the record back."""
    older = (folder / "memory.db").read_bytes()
    with Memory.open(folder, embedder=embedder()) as memory:
        memory.add("what will be lost")
    (folder / "memory.db").write_bytes(older)
    for ending in ("-wal", "-shm"):
        (folder / f"memory.db{ending}").unlink(missing_ok=True)


def stale_lock(folder: Path) -> None:
    with opened(folder) as db:
        seq, chain = db.execute("SELECT seq, chain FROM journal WHERE seq = 2").fetchone()
    (folder / "LOCK").write_bytes(b"%020d %08x\n" % (seq, chain))


def without_json(folder: Path) -> None:
    path = manifest(folder)
    told, _ = path.read_text().split("\n", 1)
    assert json.loads(told)
    path.write_text(told)
