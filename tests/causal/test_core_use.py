"""A core among others: closed, and shared by threads."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

import cvx
from cvx.causal import CausalMemoryCore
from cvx.errors import InvalidVectorError, StoreError
from tests.causal.cores import START, Model, Words, core, no, yes


def test_a_closed_core_says_so() -> None:
    with core() as made:
        made.add_event("Rain.")
    made.close()
    for call in (lambda: made.add_event("Flood."), made.events, lambda: made.chain(1)):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_threads_share_a_core() -> None:
    made = core(Model(no))

    def work(number: int) -> None:
        for at in range(5):
            made.add_event(f"Rain {number} {at}.")
            made.get_context("rain")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.event_id for event in made.events()] == list(range(1, 21))


@pytest.mark.requirement("C1", "C5", "C9")
def test_cores_on_one_file_see_each_others_events(tmp_path: Path) -> None:
    path = str(tmp_path / "core.db")
    first, second = core(Model(yes), path), core(Model(yes), path)
    first.add_event("Rain fell.")
    assert len(second) == 1
    assert second.get_context("rain") == "Rain fell."
    second.add_event("Rain flooded the cellar.")
    assert second.events()[1].cause_id == 1
    first.add_event("The flood left mould.")
    assert [event.event_id for event in second.chain(3)] == [1, 2, 3]
    assert second.get_context("mould").startswith("The flood left mould. This was because rain")
    second.close()
    assert len(first) == 3
    first.close()


def test_a_core_follows_rows_that_come_late_or_go(tmp_path: Path) -> None:
    path = str(tmp_path / "core.db")
    with core(path=path) as made, duckdb.connect(path) as db:
        made.add_event("Rain fell.")
        for number, text in ((7, "A cat."), (5, "The mayor.")):
            row = [number, START, text, Words().embed(text)]
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, NULL, NULL)", row)
            assert made.get_context(text) == text
        db.execute("DELETE FROM events WHERE event_id = 5")
        assert len(made) == 2
        assert made.get_context("The mayor.") in ("Rain fell.", "A cat.")


def test_another_embedding_model_in_a_second_core_is_refused(tmp_path: Path) -> None:
    class Other(Words):
        KNOWN = ("rain", "flood")

    path = str(tmp_path / "core.db")
    with core(path=path) as first, CausalMemoryCore(path, None, Other()) as second:
        first.add_event("Rain fell.")
        for call in (second.add_event, second.get_context):
            with pytest.raises(InvalidVectorError, match="3 dimensions"):
                call("Rain.")
        assert len(first) == 1


def test_threads_with_cores_of_their_own_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "core.db")
    begin = threading.Barrier(4, timeout=60)
    told: list[str] = []

    def work(number: int) -> None:
        begin.wait()
        with core(Model(no), path) as made:
            for at in range(5):
                made.add_event(f"Rain {number} {at}.")
            begin.wait()
            assert len(made) == 20
            told.append(made.get_context("rain"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with core(path=path) as made:
        assert [event.event_id for event in made.events()] == list(range(1, 21))
    assert len(told) == 4


def test_the_core_is_found_at_the_top() -> None:
    assert cvx.CausalMemoryCore is CausalMemoryCore
