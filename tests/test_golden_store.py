"""A store that older code made opens, and answers as it did then.

What is pinned here has to survive any rebuild of the code: hits and their order, scores to 1e-9,
texts, causes, decisions. Where an answer changes on purpose, ``tests/golden/make_store.py`` says
how it is recorded anew.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.memory.reembed import reembed
from cvx.store import rows
from tests.golden.make_store import ANSWERS, FOLDER, OF_WRITING, ask, make
from tests.store.index_comparison import check

# It was made later than the fixed time at which it is asked here.
pytestmark = pytest.mark.filterwarnings("ignore::cvx.errors.ClockWarning")
RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy: whoever asks writes down what was asked."""
    return Path(shutil.copytree(FOLDER, tmp_path / "store"))


def differences(was: Any, now: Any, at: str = "", *, within: float = 1e-9) -> Iterator[str]:
    """Say where two answers differ, and how."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [*was, *(name for name in now if name not in was)]:
            if name not in now:
                yield f"{at}/{name}: is missing, was {was[name]!r}"
            elif name not in was:
                yield f"{at}/{name}: is new, {now[name]!r}"
            else:
                yield from differences(was[name], now[name], f"{at}/{name}", within=within)
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{at}: has {len(now)} of them, had {len(was)}"
        for place, (one, other) in enumerate(zip(was, now, strict=False)):
            yield from differences(one, other, f"{at}/{place}", within=within)
    elif isinstance(was, float) and isinstance(now, int | float) and not isinstance(now, bool):
        if not math.isclose(was, now, rel_tol=within, abs_tol=within):
            yield f"{at}: is {now!r}, was {was!r}"
    elif was != now:
        yield f"{at}: is {now!r}, was {was!r}"


def assert_same(was: Any, now: Any, *, within: float = 1e-9) -> None:
    found = list(differences(was, now, within=within))
    assert not found, "\n".join([f"{len(found)} answers differ", *found[:40]])


@pytest.mark.requirement("W26", "X9")
@pytest.mark.parametrize("without", ["nothing", "snapshot", "writing"])
def test_the_golden_store_answers_as_it_did(store: Path, without: str) -> None:
    was = dict(RECORDED["kept"])
    if without == "snapshot":
        shutil.rmtree(store / "index")
    if without == "writing":
        del was["context"]
    assert_same(was, ask(store, read_only=without == "writing"))


@pytest.mark.requirement("V16", "W26")
def test_a_store_made_anew_holds_and_has_learned_the_same(tmp_path: Path) -> None:
    make(tmp_path / "new")
    now = ask(tmp_path / "new")
    # What is learned in floating point is the same on one machine only.
    assert_same(RECORDED["made anew"], {name: now[name] for name in OF_WRITING}, within=1e-6)


def test_the_golden_store_has_something_of_everything(store: Path) -> None:
    with sqlite3.connect(store / "memory.db") as db:
        held = {
            table: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in (*rows.COLUMNS, "journal", "set_aside", "staged", "events_words")
        }
        assert min(held.values()) > 0, held
        ids = [one for (one,) in db.execute("SELECT event_id FROM events ORDER BY event_id")]
        gaps = set(range(1, ids[-1])) - set(ids)
        assert len(gaps) == 5, "four events were erased, one was set aside"
        for column, values in {
            "state": {"active", "archived", "quarantined"},
            "visibility": {"private", "shared", "public"},
            "namespace": {"", "ada", "bo"},
            "kind": {"event", "episodic", "procedural", "sensor", "reflection", "step",
                     "failed_step"},
        }.items():  # fmt: skip
            assert {one for (one,) in db.execute(f"SELECT {column} FROM events")} == values
        states = {one for (one,) in db.execute("SELECT name FROM model_state")}
        assert states == {"recall", "unjudged_causes", "weights"}
        (last,) = db.execute("SELECT max(seq) FROM journal").fetchone()
    newest = max(int(path.stem) for path in (store / "index").glob("*.cvx"))
    assert newest < last, "the journal goes on after the snapshot"


@pytest.mark.requirement("W26")
def test_a_move_that_an_older_version_began_is_made(store: Path) -> None:
    made = reembed(store, LexicalEmbedder(dim=32))
    with Memory.open(store, embedder=LexicalEmbedder(dim=32)) as memory:
        (texts,) = memory.record.query(
            "SELECT count(*) FROM (SELECT text FROM events WHERE node IS NOT NULL"
            " UNION SELECT text FROM aliases)"
        )[0]
        assert made == texts
        assert not memory.record.query("SELECT 1 FROM sqlite_master WHERE name LIKE 'staged%'")
        assert memory.record.meta("reembed") is None
        assert memory.recall("Where is the spare key?", 1)[0].event == memory.get(
            memory.get(key="key").event_id
        )


def test_the_doctor_finds_the_golden_store_sound(store: Path) -> None:
    report = check(store, deep=True)
    assert report.sound, report.findings


def test_differences_are_named_by_their_place() -> None:
    was = {"a": [1.0, {"b": "x"}], "gone": 1}
    now = {"a": [1.0 + 1e-8, {"b": "y"}, 3], "new": 2}
    assert list(differences(was, now)) == [
        "/a: has 3 of them, had 2",
        "/a/0: is 1.00000001, was 1.0",
        "/a/1/b: is 'y', was 'x'",
        "/gone: is missing, was 1",
        "/new: is new, 2",
    ]
    assert not list(differences({"a": [1.0, 2]}, {"a": [1.0 + 1e-12, 2]}))
