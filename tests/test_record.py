"""The record: what goes in comes out, all of a transaction or nothing."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.errors import (
    InvalidInputError,
    StoreError,
    StoreVersionError,
)
from cvx.store import Record
from cvx.types import Cue, Decision, Edge, Episode, Event, Factor, Hit

VECTOR = np.array([0.5, -1.25, 3.0], dtype=np.float32)
EPISODE = Episode(
    entity_id=4,
    goal="clean the mug",
    task_type="clean",
    reward=1.0,
    namespace="kitchen",
    kind="demonstration",
    metadata={"floor": 3},
    steps=(
        Event(
            entity_id=4,
            timestamp=10,
            text="a sink",
            vector=VECTOR,
            action="go to sink 1",
            reward=1.0,
            kind="step",
            namespace="kitchen",
            metadata={"n": 1},
            node=0,
        ),
        Event(
            entity_id=4,
            timestamp=11,
            text="at the sink",
            vector=None,
            action="clean mug 1",
            reward=1.0,
            kind="step",
            namespace="kitchen",
            node=1,
        ),
    ),
)


@pytest.mark.requirement("V16")
def test_an_episode_comes_out_as_it_went_in() -> None:
    record = Record(clock=lambda: 77)
    with record.transaction() as write:
        number = write.add_episode(EPISODE)
    (back,) = record.episodes()
    assert (back.goal, back.task_type, back.reward) == ("clean the mug", "clean", 1.0)
    assert (back.namespace, back.kind, back.metadata) == ("kitchen", "demonstration", {"floor": 3})
    assert back.episode_id == number
    assert [s.action for s in back.steps] == ["go to sink 1", "clean mug 1"]
    assert [s.node for s in back.steps] == [0, 1]
    assert [s.recorded for s in back.steps] == [77, 77]
    assert back.steps[0].vector is not None
    np.testing.assert_array_equal(back.steps[0].vector, VECTOR)
    assert back.steps[1].vector is None
    assert back.steps[0].metadata == {"n": 1}


def test_an_error_inside_a_transaction_leaves_no_trace() -> None:
    record = Record()

    def fail() -> None:
        with record.transaction() as write:
            write.add_episode(EPISODE)
            write.set_state("weights", {"a": 1.0})
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert record.episodes() == []
    assert record.events() == []
    assert record.state("weights") is None
    with record.transaction() as write:
        write.add_episode(EPISODE)
    assert len(record.episodes()) == 1


def test_a_transaction_inside_another_one_is_refused_and_the_outer_one_survives() -> None:
    record = Record()
    with record.transaction() as write:
        with pytest.raises(StoreError), record.transaction():
            pass
        write.add_episode(EPISODE)
    assert len(record.episodes()) == 1


def test_links_of_the_same_ends_and_kind_replace_each_other() -> None:
    record = Record(clock=lambda: 5)
    with record.transaction() as write:
        write.add_links([Edge(0, 1, "caused", 0.5, "why", "seen"), Edge(0, 1, "irrelevant", 1.0)])
        write.add_links([Edge(0, 1, "caused", 0.75, "better", "seen twice")])
    assert record.links() == [
        Edge(0, 1, "caused", 0.75, "better", "seen twice", 5),
        Edge(0, 1, "irrelevant", 1.0, "", "", 5),
    ]


def test_rewards_usage_decays_and_state_are_kept() -> None:
    record = Record()
    with record.transaction() as write:
        write.add_episode(EPISODE)
        write.add_decays([(9, 1, 1.0, 0.7)])
        write.set_usage([("k", 3, 2, 1)])
        write.set_usage([("k", 4, 2, 1)])
        write.set_state("weights", {"similarity": 0.25})
    assert [event.reward for event in record.events()] == [1.0, 0.7]
    assert record.decays() == [(9, 1, 1.0, 0.7)]
    assert record.usage() == [("k", 4, 2, 1)]
    assert record.state("weights") == {"similarity": 0.25}


def test_a_decision_keeps_its_hits_factors_and_outcome() -> None:
    record = Record()
    hit = Hit(2, 0.5, 0.75, 0.5, 4, 10, factors=(Factor("similarity", 0.5, 1.5, 0.75),))
    decision = Decision(
        6, Cue(goal="g", step="s"), (hit,), (("take", 0.5),), None, 8, "text", "take", (2,), 1.0
    )
    with record.transaction() as write:
        write.add_decisions([(decision, {"helped": True})])
    (row,) = record.decisions()
    assert row["hits"] == [[2, 4, 0.5, 0.75, [["similarity", 0.5, 1.5]]]]
    assert row["cue"]["goal"] == "g"
    assert row["cue"]["region"] == 8
    assert (row["action"], row["followed"], row["outcome"]) == ("take", [2], 1.0)
    assert row["record"] == {"helped": True}
    assert record.decisions(episode_id=1) == []
    assert record.take_decision_number() == 7


def test_a_decision_is_replaced_with_what_became_of_it() -> None:
    record = Record()
    asked = Decision(3, Cue(text="where?"), (), propensities=(0.75, 0.25))
    with record.transaction() as write:
        write.add_decisions([(asked, {"shown": [4]})], replace=True)
    assert record.decision(3) is not None
    with record.transaction() as write:
        write.add_decisions(
            [(replace(asked, action="look", outcome=0.5), {"shown": [4]})], replace=True
        )
    (row,) = record.decisions()
    assert (row["action"], row["outcome"]) == ("look", 0.5)
    assert row["record"] == {"shown": [4], "propensities": [0.75, 0.25]}
    assert record.decision(4) is None
    assert record.damage() == []


def test_numbers_of_decisions_are_never_given_twice(tmp_path: Path) -> None:
    with Record(tmp_path / "memory.db") as one, Record(tmp_path / "memory.db") as two:
        numbers = [record.take_decision_number() for _ in range(100) for record in (one, two)]
    assert len(set(numbers)) == 200


def test_reading_goes_on_where_no_number_can_be_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cvx.store import failpoints

    with Record(tmp_path / "memory.db") as record:
        monkeypatch.setattr(failpoints, "_wanted", "transaction.begun:error")
        monkeypatch.setattr(failpoints, "_reached", {})
        drawn = [record.take_decision_number() for _ in range(70)]
    assert len(set(drawn)) == 70
    assert min(drawn) >= 2**44


def test_use_is_counted_and_dated_apart() -> None:
    record = Record()
    with record.transaction() as write:
        write.add_usage({'["event",1]': 2})
        write.touch({1: 50, 2: 7})
        write.touch({1: 40})
    assert record.used([1, 2, 3]) == {1: (2, 50), 2: (0, 7)}
    with record.transaction() as write:
        write.add_usage({'["event",2]': 3, '["event",3]': 1}, {1: 60, 2: 6})
    assert record.used([1, 2, 3]) == {1: (2, 60), 2: (3, 7), 3: (1, None)}
    with record.transaction() as write:
        write.set_usage([('["event",1]', 5, 1, 1)])
    assert record.used([1]) == {1: (5, 60)}


def test_failures_are_listed_apart() -> None:
    record = Record()
    with record.transaction() as write:
        write.add_episode(EPISODE, recallable=False)
    assert record.query("SELECT node FROM events WHERE NOT recallable") == [(0,), (1,)]


def test_a_file_keeps_everything_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Record(path) as record, record.transaction() as write:
        write.add_episode(EPISODE)
    with Record(path) as record:
        assert [e.goal for e in record.episodes()] == ["clean the mug"]
        assert record.next_ids() == (2, 5)


def test_a_closed_record_refuses_and_may_be_closed_again() -> None:
    record = Record()
    record.close()
    record.close()
    with pytest.raises(StoreError), record.transaction():
        pass
    with pytest.raises(StoreError):
        record.episodes()


def test_a_missing_folder_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="existing folder"):
        Record(tmp_path / "missing" / "memory.db")


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Record(path).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
    db.commit()
    db.close()
    with pytest.raises(StoreVersionError, match="999"):
        Record(path)


@pytest.mark.parametrize("content", [b"not a database, certainly " * 50, None])
def test_something_else_than_a_record_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "memory.db"
    if content is None:
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE other (x)")
        db.commit()
        db.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="no record of cvx"):
        Record(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("reward", [None, "won", 1.5, float("nan")])
def test_an_episode_without_an_outcome_is_refused_by_name(reward: Any) -> None:
    record = Record()
    with (
        pytest.raises(InvalidInputError, match=r"reward is .*: give its outcome in \[0, 1\]"),
        record.transaction() as write,
    ):
        write.add_episode(replace(EPISODE, reward=reward))
    assert list(record.episodes()) == []
