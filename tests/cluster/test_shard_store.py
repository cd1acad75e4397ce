"""One shard and its copies, in one process: what is shipped, refused, carved out and restored."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvx.store.replica
from cvx.cluster.client import packed
from cvx.cluster.host import Asked, Host
from cvx.cluster.layout import Layout, Place
from cvx.cluster.namespace_rows import NamespaceRows, carve
from cvx.cluster.public_events import Public, take_public
from cvx.cluster.replication import Change, Row, apply, copy_to
from cvx.cluster.shard_store import MovedAwayError, ShardStore, Shipment
from cvx.cluster.snapshots import Archive, restore
from cvx.embed import LexicalEmbedder
from cvx.errors import (
    DuplicateKeyError,
    EpisodeEndedError,
    InvalidInputError,
    RecordIOError,
    ReplicaLostError,
    StoreNotFoundError,
)
from cvx.memory import Memory
from cvx.store import Record, rows
from cvx.types import Event

SETTINGS: dict[str, Any] = {"embedder": LexicalEmbedder(32)}
WORDS = "rain flood cellar drain key pot door bridge rope lamp".split()  # noqa: SIM905


class Pair:
    """A shard and one copy of it, which are joined as a host joins them."""

    def __init__(self, folder: Path, least: int) -> None:
        self.primary = ShardStore(3, folder / "primary", SETTINGS, least, self._ship)
        self.primary.lead(1)
        self.number = 0
        self.copy = self._joined(folder / "copy")

    def _joined(self, folder: Path) -> ShardStore:
        number = self.primary.begin_joining("copy")
        folder.mkdir()
        copy_to(self.primary.memory.record, folder / "memory.db")
        copy = ShardStore(3, folder, SETTINGS, 1, self._ship)
        copy.follow(self.primary.epoch, number)
        self.primary.end_joining(
            "copy",
            lambda shipments: check(copy.take(1, shipments)),
            lambda: self.primary.copies.append("copy"),
        )
        self.primary.stop_joining("copy")
        return copy

    def _ship(self, host: str, shipments: Sequence[Shipment]) -> str:
        return self.send(host, shipments)

    def send(self, _host: str, shipments: Sequence[Shipment]) -> str:
        return self.copy.take(self.primary.epoch, shipments)

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        self.number += 1
        return self.ask(str(self.number), verb, *args, **options)

    def ask(self, request: str, verb: str, *args: Any, **options: Any) -> Any:
        return self.primary.call(request, verb, None, args, options)

    def close(self) -> None:
        self.primary.close()
        self.copy.close()


def check(problem: str) -> None:
    assert problem == ""


@contextmanager
def pair(folder: Path, least: int = 2) -> Iterator[Pair]:
    both = Pair(folder, least)
    try:
        yield both
    finally:
        both.close()


def as_told(store: ShardStore, answer: object) -> Any:
    """Return an answer as who asked is told it."""
    return pickle.loads(packed(answer, store.told))


def tables_of(record: Record) -> dict[str, list[Row]]:
    """Return every row of a record, to compare it with a copy."""
    found = {"meta": record.query("SELECT key, value FROM meta ORDER BY key")}
    for table, keys in rows.KEYS.items():
        names = ", ".join(rows.stored_columns(table))
        found[table] = record.query(f"SELECT {names} FROM {table} ORDER BY {', '.join(keys)}")
    return found


def assert_same_rows(pair: Pair) -> None:
    # What reading noted is sent now and then.
    pair.primary.keep_up({})
    mine, theirs = tables_of(pair.primary.memory.record), tables_of(pair.copy.memory.record)
    for table, there in mine.items():
        assert theirs[table] == there, table


def write_at_random(pair: Pair, steps: int, seed: int = 0) -> None:
    """Do each kind of write that a memory has, in an order that a seed says."""
    rng = np.random.default_rng(seed)
    ids: list[int] = []
    for step in range(steps):
        text = f"{' '.join(rng.choice(WORDS, 4))} {step}"
        whose = f"ns{rng.integers(3)}"
        some = int(rng.choice(ids)) if ids else 0
        match rng.integers(12) if ids else 0:
            case 0 | 1 | 2 | 3:
                key = None if rng.random() < 0.5 else f"key {rng.integers(10)}"
                ids.append(pair.call("add", text, namespace=whose, key=key).id)
            case 4:
                items = [{"text": f"{text} {n}", "namespace": whose} for n in range(3)]
                ids += pair.call("add_many", items).tolist()
            case 5:
                pair.call("update", some, text=text, metadata={"step": step}, aliases=[text[::-1]])
            case 6:
                other = int(rng.choice(ids))
                if other != some:
                    pair.call("link", some, other, why=text, effect_first="allow")
            case 7:
                pair.call("forget", [some])
            case 8:
                shown = pair.call("recall", text, namespace=whose)
                pair.call("feedback", shown.decision, helped=list(shown)[:1], namespace=whose)
            case 9:
                number, *_ = pair.call("episode", goal=text, task="t", namespace=whose)
                pair.call("episode.advise", number, text, ["left", "right"])
                pair.call("episode.act", number, "left")
                pair.call("episode.end", number, float(rng.integers(2)))
            case 10:
                pair.call("context", text, 100, namespace=whose)
            case 11 if rng.random() < 0.3:
                pair.call("erase", [some])
                ids.remove(some)


@pytest.mark.requirement("B22")
@pytest.mark.parametrize("seed", range(3))
def test_a_copy_has_every_row_that_its_shard_has(tmp_path: Path, seed: int) -> None:
    with pair(tmp_path) as both:
        write_at_random(both, 60, seed)
        assert_same_rows(both)
        assert both.primary.memory.record.query("SELECT count(*) FROM events")[0][0] > 10
        assert both.copy.memory.record.damage() == []
        for word in WORDS:
            asked = both.primary.memory.recall(word, namespace="ns1")
            told = both.copy.memory.recall(word, namespace="ns1")
            assert [hit.id for hit in told] == [hit.id for hit in asked]


def test_nothing_that_was_erased_is_in_a_file_of_the_copy(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        event = both.call("add", "the password is swordfish")
        both.call("erase", [event.id])
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"swordfish" not in path.read_bytes(), path


def test_a_copy_that_leads_goes_on_where_its_shard_stopped(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        write_at_random(both, 30)
        number, *_ = both.call("episode", goal="cross the bridge", namespace="ns0")
        both.call("episode.act", number, "take the rope", observation="a gorge")
        last = both.call("add", "the last word")
        both.copy.lead(2)
        both.copy.least = 1
        told = both.copy.call("new", "add", None, ["after it"], {})
        assert told.id > last.id
        assert told.recorded > last.recorded
        seen = {"seen": "a gorge"}
        both.copy.call("act", "episode.act", None, [number, "climb"], seen)
        both.copy.call("end", "episode.end", None, [number, 1.0], {})
        with pytest.raises(EpisodeEndedError):
            both.copy.call("more", "episode.act", None, [number, "climb"], {})


@pytest.mark.requirement("B22")
def test_a_request_that_comes_twice_is_done_once(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        first = both.ask("r", "add", "once")
        assert both.ask("r", "add", "once") == first
        both.copy.lead(2)
        # Who leads now knows what was answered, and to what; by itself it is one host of two.
        both.copy.least = 2
        with pytest.raises(ReplicaLostError, match="on 1 of 2 hosts"):
            both.copy.call("r", "add", None, ["once"], {})
        both.copy.copies = ["another"]
        both.send = lambda *_: ""  # type: ignore[method-assign]
        assert both.copy.call("r", "add", None, ["once"], {}) == first
        assert len(both.copy.memory) == 1


@pytest.mark.requirement("B22")
def test_a_write_that_no_copy_took_is_not_acknowledged_when_it_is_repeated(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.send = lambda *_: "the node is gone"  # type: ignore[method-assign]
        for _ in range(2):
            with pytest.raises(ReplicaLostError, match="the node is gone"):
                both.ask("r", "add", "once")
        assert len(both.primary.memory) == 1


def test_the_key_by_which_copies_are_known_is_refused(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        known = both.call("add", "ana's will", namespace="ana")
        own = both.call("add", "all to mallory", namespace="mallory")
        for value in (known.id, "abc"):
            claim = {"cvx.id": value}
            for verb, args, options in (
                ("add", ["x"], {"metadata": claim}),
                ("add_many", [[{"text": "x", "metadata": claim}]], {}),
                ("add_many", [[Event("x", metadata=claim)]], {}),
                ("update", [own.id], {"metadata": claim}),
            ):
                with pytest.raises(InvalidInputError, match=r"metadata has 'cvx\.id'"):
                    both.call(verb, *args, **options)
        assert both.call("count") == 2


def test_a_forged_origin_that_is_stored_stands_for_nothing(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        known = both.call("add", "ana's will", namespace="ana")
        # As a store from before the key was refused has it.
        memory = both.primary.memory
        for value in (known.id, "abc", 1.5, True):
            memory.add("mallory's", namespace="mallory", metadata={"cvx.id": value})
        memory.add("a word", namespace="mallory", metadata={"word": "cvx.id"})
        both.primary.lead(2)
        assert both.primary.origins == {}
        assert both.call("get", known.id).text == "ana's will"
        assert len({one.id for one in both.call("events", namespace="mallory")}) == 5
        both.primary.least = 1
        both.call("erase", [known.id])
        texts = {event.text for event in memory.record.events()}
        assert texts == {"mallory's", "a word"}


def test_a_change_that_comes_twice_changes_nothing(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        write_at_random(both, 20)
        before = tables_of(both.copy.memory.record)
        change = Change({name: some for name, some in before.items() if name != "journal"})
        for one in (change, Change.from_json(change.to_json())):
            apply(both.copy.memory.record, one)
            assert tables_of(both.copy.memory.record) == before


def test_changes_that_come_together_leave_what_they_leave_one_by_one(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        held: list[Shipment] = []
        both.copy.close()

        def hold(_host: str, shipments: Sequence[Shipment]) -> str:
            held.extend(shipments)
            return ""

        take, both.send = both.send, hold  # type: ignore[method-assign]
        write_at_random(both, 60, seed=5)
        both.copy = ShardStore(3, both.copy.folder, SETTINGS, 1, hold)
        both.copy.follow(1, held[0][0] - 1)
        assert take("copy", held) == ""
        assert_same_rows(both)
        assert both.copy.number == held[-1][0]


@pytest.mark.requirement("B22")
def test_no_write_waits_for_the_index_where_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After so many transactions that nobody read, a write takes all of them into the index: four
    # writers of a namespace that moved stood for half a minute.
    monkeypatch.setattr(cvx.store.replica, "_MOST_BEHIND", 50)
    with pair(tmp_path) as both:
        replica = both.primary.memory._shared.store.replica
        for _ in range(4):
            taken_in = replica.changes
            for n in range(30):
                both.call("add", f"fact {n}")
            assert replica.changes == taken_in
            both.primary.keep_up({})
            assert replica.seq == both.primary.memory.record.tail().seq


@pytest.mark.requirement("B22")
def test_no_write_waits_for_who_brings_the_index_level(tmp_path: Path) -> None:
    # The index of a shard follows once a second: it takes in thousands after an `add_many`.
    with pair(tmp_path) as both:
        key = both.call("add", "the key is under the pot", key="k")
        began, ended = threading.Event(), threading.Event()

        def take_in() -> None:
            with both.primary.memory.record.reading():
                began.set()
                ended.wait(60)

        reader = threading.Thread(target=take_in)
        reader.start()
        began.wait()
        try:
            with ThreadPoolExecutor(1) as writers:
                told = writers.submit(both.call, "add", "the hat is on the hook").result(30)
        finally:
            ended.set()
            reader.join()
        assert (told.id, told.version) == (key.id + 1, 1)
        # What is a version of another event knows the earlier ones, as before.
        later = both.call("add", "the key is in the drawer", key="k")
        assert (later.id, later.version) == (key.id, 2)
        assert [one.text for one in later.history] == ["the key is under the pot"]


@pytest.mark.requirement("B22")
def test_a_shard_of_another_epoch_is_not_taken_from(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.call("add", "known to both")
        both.copy.lead(2)
        with pytest.raises(ReplicaLostError, match="epoch 2, the change of epoch 1"):
            both.call("add", "known to nobody else")
        assert len(both.copy.memory) == 1
        # And one that missed a change takes none after it.
        both.copy.follow(1, 1)
        assert "stands at change 1" in both.copy.take(1, [(9, Change(), {})])


@pytest.mark.requirement("B22")
def test_writes_fail_where_one_node_is_left_unless_told_otherwise(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.primary.copies.remove("copy")
        with pytest.raises(ReplicaLostError, match="on 1 of 2 hosts: wait"):
            both.call("add", "one copy")
        assert len(both.primary.memory) == 0
        both.primary.least = 1
        assert both.call("add", "one copy").id == (3 << 36) + 1


@pytest.mark.requirement("B22")
def test_a_full_disk_of_a_copy_is_named_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.call("add", "there is room")
        db = both.copy.memory.record.database.connection()
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(ReplicaLostError, match=r"copy: .*disk is full"):
            both.call("add_many", [f"{n} {'x' * 1000}" for n in range(200)])
        with pytest.raises(ReplicaLostError, match="disk is full"):
            both.call("add", "one more")
        assert both.copy.memory.record.damage() == []


@pytest.mark.requirement("B22")
def test_a_full_disk_of_who_leads_is_an_error_of_that_write_alone(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.call("add", "there is room")
        db = both.primary.memory.record.database.connection()
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(RecordIOError, match="disk is full"):
            both.call("add_many", [f"{n} {'x' * 1000}" for n in range(200)])
        db.execute(f"PRAGMA max_page_count = {1000 * pages}")
        both.call("add", "there is room again")
        assert_same_rows(both)
        assert both.call("count") == 2


@pytest.mark.requirement("B22")
def test_a_clock_that_went_backwards_orders_nothing_anew(tmp_path: Path) -> None:
    ahead = time.time_ns() // 1000 + 1_000_000
    with Memory.open(tmp_path / "primary", **SETTINGS) as memory:
        memory.add("from a clock that is ahead")
        with memory.record.transaction() as write:
            write.recorded = ahead
            write.journal("kind", [])
    with pair(tmp_path) as both:
        told = [both.call("add", f"later {n}").recorded for n in range(3)]
        assert ahead < told[0] < told[1] < told[2]
        both.copy.lead(2)
        both.copy.least = 1
        after = both.copy.call("r", "add", None, ["on another node"], {})
        assert after.recorded > told[2]


@pytest.mark.requirement("B22")
def test_a_namespace_that_is_carved_out_is_alone_and_whole(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        write_at_random(both, 120, seed=4)
        memory = both.primary.memory
        both.call("add", "unheard-of", namespace="ns2")
        alone = tmp_path / "alone"
        alone.mkdir()
        carve(memory.record.path, alone / "memory.db", NamespaceRows(lambda name, _: name == "ns1"))
        with Memory.open(alone, **SETTINGS) as carved:
            assert {event.namespace for event in carved.record.events()} == {"ns1"}
            mine = [e for e in memory.record.events() if e.namespace == "ns1"]
            assert carved.record.events() == mine
            for word in WORDS:
                asked = memory.recall(word, namespace="ns1")
                told = carved.recall(word, namespace="ns1")
                assert [hit.id for hit in told] == [hit.id for hit in asked]
            advice = [
                one.episode(goal="?", task="t", namespace="ns1").advise("rain", ["left", "right"])
                for one in (memory, carved)
            ]
            assert advice[0] == advice[1]
            assert carved.record.damage() == []
        assert b"unheard-of" not in (alone / "memory.db").read_bytes()
        # What is gone is not answered here any more, by its namespace or by its id.
        before = both.call("count")
        both.primary.gone.add("ns1")
        active = sum(event.state == "active" for event in mine)
        assert both.call("count") == before - active
        for verb, args, options in (
            ("add", ["late"], {"namespace": "ns1"}),
            ("update", [mine[0].id], {"text": "late"}),
            ("recall", ["rain"], {"namespace": "ns1"}),
        ):
            with pytest.raises(MovedAwayError):
                both.call(verb, *args, **options)


@pytest.mark.requirement("B22")
def test_a_shard_takes_nothing_of_a_namespace_that_left_it(tmp_path: Path) -> None:
    # As a client asks that does not know of the move yet: what was written would be erased.
    with pair(tmp_path) as both:
        begun = {"goal": "find the hat", "namespace": "ana"}
        number, *_ = both.call("episode", **begun)
        both.primary.gone |= {"", "ana"}
        for whose, verb, args, options in (
            ("", "add", ["late"], {}),
            ("", "recall_many", [["late"], 3], {}),
            ("ana", "episode.act", [number, "look"], {"observation": "a hall"}),
            (None, "episode", [], {"id": number}),
        ):
            with pytest.raises(MovedAwayError):
                both.primary.call(f"late {verb}", verb, None, args, options, whose)
        # What is of no namespace, or of another, is answered.
        assert both.call("admin.stats")["events"] == 0
        added = both.primary.call("other", "add", None, ["x"], {"namespace": "bob"}, "bob")
        assert both.call("update", added.id, text="y").text == "y"


def test_a_copy_that_was_pruned_answers_and_leads_no_more(tmp_path: Path) -> None:
    old, new = (Host(name, str(tmp_path), SETTINGS, 1, None, "space") for name in "ab")
    for host in (old, new):
        host.lead(0, 1, new=True)
        host.answer((0, "r", "add", None, ["an old row"], {}))
    with pytest.raises(ReplicaLostError, match="epoch 1, older than 4"):
        old.lead(0, 5, since=4)
    # Nor after it was started anew: the epoch is in its folder.
    old.close()
    with pytest.raises(ReplicaLostError, match="epoch 1, older than 4"):
        old.lead(0, 5, since=4)
    old.put_aside(0)
    assert old.answer((0, "z", "count", None, [], {})) == ("moved", None)
    with pytest.raises(StoreNotFoundError):
        old.lead(0, 5, since=4)
    # What was put aside is removed once enough have the shard.
    assert old.ping()["folders"] == {0}
    old.clear(0)
    assert old.ping()["folders"] == set()
    assert new.answer((0, "z", "count", None, [], {})) == ("ok", 1)
    old.close()
    new.close()


def test_a_host_that_leads_alone_acknowledges_nothing_unless_it_is_heard(tmp_path: Path) -> None:
    host = Host("a", str(tmp_path), SETTINGS, 1, f"file://{tmp_path}/bucket", "space")
    host.lead(0, 1, new=True)
    add: Asked = (0, "r", "add", None, ["a row"], {})
    told = host.answer(add)
    assert told[0] == "error"
    with pytest.raises(ReplicaLostError, match="does not hear from the coordinator"):
        raise told[1]
    pong = host.ping()
    # Another process of that name was heard: this one may be cut off.
    host.ping("another", pong["now"])
    assert host.answer(add)[0] == "error"
    host.ping(pong["born"], pong["now"])
    assert host.answer(add)[0] == "ok"
    host.ping(pong["born"], pong["now"] - 60)
    host._heard -= 60
    assert host.answer((0, "s", "add", None, ["late"], {}))[0] == "error"
    host.close()


def test_who_cannot_write_to_the_bucket_does_not_lead(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("in the way")
    host = Host("a", str(tmp_path), SETTINGS, 1, f"file://{tmp_path}/bucket", "space")
    with pytest.raises(OSError, match="bucket"):
        host.lead(0, 1, new=True)
    assert host.ping()["stores"][0][0] is False
    assert host.answer((0, "r", "add", None, ["a row"], {}))[0] == "moved"
    host.close()


def test_a_layout_knows_after_a_restart_which_epochs_were_told() -> None:
    layout = Layout(3, 2, {0: Place("a", ("b",), 4)}, {"ana": 2}, {"bo": (0, 1)}, {0: 5, 2: 1})
    assert Layout.from_json(layout.to_json()) == layout
    older = json.loads(layout.to_json())
    del older["told"]
    assert Layout.from_json(json.dumps(older)) == replace(layout, told={})


def test_an_older_leader_spoils_nothing_in_the_bucket(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/bucket"
    with pair(tmp_path) as old:
        old.call("add", "known to both")
        behind = Archive(url, 3, 1, old.primary.memory.record)
        behind.snapshot()
        old.copy.lead(2)
        old.copy.least = 1
        old.copy.archive = Archive(url, 3, 2, old.copy.memory.record)
        old.copy.archive.snapshot()
        old.copy.call("new", "add", None, ["by who leads"], {})
        old.copy.archive.flush()
        # The old one does not know yet, and writes what it never acknowledged.
        old.primary.archive, old.primary.copies, old.primary.least = behind, [], 1
        old.call("add", "by who led")
        behind.flush()
        behind.snapshot()
        assert restore(url, 3, tmp_path / "back")
        with Record(tmp_path / "back" / "memory.db") as back:
            texts = [event.text for event in back.events()]
            assert texts == ["known to both", "by who leads"]


def test_a_namespace_does_not_leave_a_shard_that_another_host_leads(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.call("add", "here", namespace="ns1")
        both.primary.begin_joining("move ns1")
        both.primary.follow(2, 0)
        with pytest.raises(ReplicaLostError, match="another host leads shard 3"):
            both.primary.end_joining("move ns1", lambda _: None, both.primary.gone.clear)


def test_what_an_answer_is_packed_as_is_what_it_was(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        both.call("add", "the key is under the pot", tags=["home"], aliases=["spare key"])
        hits = both.call("recall", "key")
        told = pickle.loads(packed(hits))
        assert told == hits
        assert (told.decision, told.trace) == (hits.decision, hits.trace)
        assert told[0].factors[0].share == hits[0].factors[0].share
        assert told[0].factors == hits[0].factors
        assert type(told[0].factors[0]) is type(hits[0].factors[0])
        assert told[0].event.tags == ("home",)
        assert told[0].event.vector.tolist() == hits[0].event.vector.tolist()
        assert told.trace.hits[0] is told[0]


def test_an_alias_that_is_added_later_is_known_to_other_shards(tmp_path: Path) -> None:
    with pair(tmp_path / "a") as one, Memory(embedder=LexicalEmbedder(32)) as other:
        event = one.call("add", "the key is under the pot", visibility="public", aliases=["brass"])
        origins: dict[int, int] = {}
        public = one.primary.public_since(0)
        take_public(other, origins, public, lambda *_: True)
        one.call("update", event.id, aliases=["zirconium"])
        for _ in range(2):
            later = one.primary.public_since(public.tail)
            take_public(other, origins, later, lambda *_: True)
        found = other.record.query("SELECT text FROM aliases ORDER BY node")
        assert found == [("brass",), ("zirconium",)]


@pytest.mark.requirement("B22")
def test_a_copy_answers_with_the_ids_of_what_others_made_public(tmp_path: Path) -> None:
    # Where a leader is late its copy is asked: under a load its hits had ids of their own, and what
    # others made public was unknown to it by the ids that everybody else knows.
    with pair(tmp_path) as both, Memory(embedder=LexicalEmbedder(32)) as other:
        events = [
            replace(other.add(f"everybody knows fact {n}", visibility="public"), event_id=7 + n)
            for n in range(3)
        ]
        both.primary.renew_public(0, Public(3, [(event, []) for event in events], None), {})
        both.call("add", "a fact of its own")
        for store in (both.primary, both.copy):
            told = as_told(store, store.call("r", "recall", None, ["fact"], {}))
            assert {hit.id for hit in told} == {7, 8, 9, (3 << 36) + 4}
            assert not any("cvx.id" in hit.event.metadata for hit in told)
            known = as_told(store, store.call("g", "get", None, [8], {}))
            assert (known.id, known.text) == (8, "everybody knows fact 1")
        both.primary.renew_public(0, Public(4, [(events[0], [])], [7]), {})
        assert both.copy.origins == both.primary.origins
        assert list(both.copy.origins) == [7]


@pytest.mark.requirement("B22")
def test_after_an_erase_others_are_told_of_what_changed_and_which_ids_are_left(
    tmp_path: Path,
) -> None:
    with pair(tmp_path) as both:
        ids = [both.call("add", f"fact {n}", visibility="public").id for n in range(9)]
        seq = both.primary.public_since(0).tail
        both.call("erase", ids[:1])
        both.call("update", ids[1], text="another fact")
        told = both.primary.public_since(seq)
        assert [event.text for event, _ in told.events] == ["another fact"]
        assert told.whole == ids[1:]
        # Who knows nothing yet is told everything, but of namespaces that have left.
        first = both.primary.public_since(0)
        assert [event.id for event, _ in first.events] == first.whole == ids[1:]
        both.primary.gone.add("")
        assert both.primary.public_since(seq)[1:] == ([], [])


@pytest.mark.requirement("B22")
def test_what_a_host_receives_of_a_shard_is_its_owners_alone(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "sent", **SETTINGS) as memory:
        memory.add("the key is under the pot")
    host = Host("a", str(tmp_path), SETTINGS, 1, None, "space")
    files = [tmp_path / "sent" / "memory.db", *(tmp_path / "sent" / "index").iterdir()]
    assert len(files) == 3
    for file in files:
        name, whole = str(file.relative_to(tmp_path / "sent")), file.read_bytes()
        for at in range(0, len(whole), 4_096):
            first = file == files[0] and at == 0
            host.receive(7, name, whole[at : at + 4_096], first=first)
    folder = tmp_path / "a" / "shard-00007"
    there = [one for one in folder.rglob("*") if one.is_file()]
    assert len(there) == 3
    assert {one.stat().st_mode & 0o777 for one in there} == {0o600}
    host.follow(7, 0, 5)
    # The index that came with it is the one that is used.
    assert host.of(7, "memory._shared.store.replica.index.stats")["nodes"] == 1
    assert host.of(7, "memory._shared.store.replica.rebuilds.bit_length") == 0
    host.close()


@pytest.mark.requirement("B22")
def test_what_others_may_see_is_not_taken_where_another_host_leads_by_now(tmp_path: Path) -> None:
    with pair(tmp_path) as both, Memory(embedder=LexicalEmbedder(32)) as other:
        event = replace(other.add("everybody knows", visibility="public"), event_id=7)

        def refused(*_: Any) -> str:
            # As a host does to which the coordinator does not answer.
            both.primary.follow(1, -1)
            return "it is in epoch 2"

        both.send = refused  # type: ignore[assignment, method-assign]
        with pytest.raises(ReplicaLostError, match="another host leads shard 3"):
            both.primary.renew_public(0, Public(1, [(event, [])], None), {})


@pytest.mark.requirement("B22")
def test_a_shard_comes_back_from_its_snapshot_and_the_changes_after_it(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/bucket"
    with pair(tmp_path) as both:
        record = both.primary.memory.record
        write_at_random(both, 20, seed=1)
        archive = both.primary.archive = Archive(url, 3, 1, record)
        archive.snapshot()
        write_at_random(both, 20, seed=2)
        archive.flush()
        with pytest.raises(DuplicateKeyError):
            both.call("add_many", [{"text": "a", "key": "k"}, {"text": "b", "key": "k"}])
        both.call("add", "the last")
        archive.keep_up()
        before = tables_of(record)
        assert restore(url, 3, tmp_path / "back")
        assert not restore(url, 4, tmp_path / "nothing")
        with Record(tmp_path / "back" / "memory.db") as back:
            assert tables_of(back) == before
            assert back.damage() == []
