"""A cluster of several nodes on this machine: results, deaths, moves, and what goes wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

import cvx.cluster
from cvx.cluster import ClusterMemory
from cvx.embed import LexicalEmbedder
from cvx.errors import (
    CvxError,
    EmbedderUnreachableError,
    ExportError,
    InvalidInputError,
    MissingExtraError,
    MissingShardsError,
    NamespaceError,
    RecordIOError,
    ReplicaLostError,
    SettingsMismatchError,
    StoreError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Cue
from experiments.cluster.kills import kill_again_and_again
from experiments.cluster.local import LocalCluster, local_cluster
from experiments.cluster.moves import move_under_writers

EVERYTHING = 300
NIGHTLY = bool(os.environ.get("CVX_NIGHTLY"))
PLAIN = LexicalEmbedder(32)
WORDS = "rain flood cellar drain key pot door bridge rope lamp".split()  # noqa: SIM905
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def nodes() -> Iterator[LocalCluster]:
    # A host that another test made may have started Ray in this process, to look for its peers.
    ray.shutdown()
    with local_cluster(3) as made:
        yield made


@pytest.fixture
def cluster(nodes: LocalCluster, tmp_path: Path) -> Iterator[Any]:
    with opened(tmp_path, clock="ticks") as made:
        yield made


def opened(path: Path, **options: Any) -> ClusterMemory:
    asked = {"shards": 2, "hosts": 3, "embedder": PLAIN, "deadline_s": 3.0, "cpus": 0.3}
    return cvx.cluster.open(path, **{**asked, **options})


@pytest.mark.requirement("B22")
@pytest.mark.parametrize("part", range(20 if NIGHTLY else 1))
def test_the_same_verbs_and_results_as_one_big_store(cluster: ClusterMemory, part: int) -> None:
    with Memory(embedder=PLAIN, clock="ticks") as twin:
        for seed in range(10 * part, 10 * part + (10 if NIGHTLY else 1)):
            check_equal_after(cluster, twin, 500 if NIGHTLY else 120, seed)


def check_equal_after(cluster: ClusterMemory, twin: Memory, steps: int, seed: int) -> None:
    """Do the same to both at random, and compare what every namespace is answered."""
    rng = np.random.default_rng(seed)
    names = [f"{seed} {name}" for name in ("ana", "bob", "carl", "dora")]
    # From an event of the cluster to that of the twin.
    ids: dict[int, int] = {}
    whose: dict[int, str] = {}
    start = seed * 10_000

    def as_twins(value: Any) -> Any:
        if isinstance(value, list):
            return [ids.get(one, one) if isinstance(one, int) else one for one in value]
        return ids.get(value, value) if isinstance(value, int) else value

    def both(verb: str, *args: Any, **options: Any) -> tuple[Any, Any]:
        plain = [as_twins(one) for one in args]
        return getattr(cluster, verb)(*args, **options), getattr(twin, verb)(*plain, **options)

    for step in range(steps):
        text = f"{' '.join(rng.choice(WORDS, 4))} {step}"
        name = str(rng.choice(names))
        mine = [one for one, owner in whose.items() if owner == name]
        some = int(rng.choice(mine)) if mine else 0
        match rng.integers(9) if mine else 0:
            case 0 | 1 | 2:
                seen = str(rng.choice(["private", "private", "shared", "public"]))
                key = None if rng.random() < 0.7 else f"key {rng.integers(4)} {seen}"
                options = {"visibility": seen, "key": key, "timestamp": start + step}
                one, other = both("add", text, namespace=name, **options)
                ids[one.id], whose[one.id] = other.id, name
            case 3:
                items = [{"text": f"{text} {n}", "timestamp": start + step} for n in range(3)]
                one, other = both("add_many", items, namespace=name)
                ids.update(zip(one.tolist(), other.tolist(), strict=True))
                whose.update(dict.fromkeys(one.tolist(), name))
            case 4:
                both("update", some, text=text, metadata={"step": step})
            case 5 if len(mine) > 1:
                cause, effect = sorted(rng.choice(mine, 2, replace=False).tolist())
                both("link", cause, effect, why=text, effect_first="allow", namespace=name)
            case 6:
                both("forget", [some])
            case 7 if step % 5 == 0:
                both("erase", [some])
                del whose[some]
            case _:
                # Nothing of another is seen before the merge either.
                found = whole(cluster.recall, text, namespace=name)
                assert {hit.namespace for hit in found if hit.visibility == "private"} <= {name}
    cluster.merge()
    again = {other: one for one, other in ids.items()}
    for name in names:
        bound, alone = cluster.within(name, also=names), twin.within(name, also=names)
        for word in WORDS:
            cue = Cue(word, timestamp=start + steps)
            asked = alone.recall(cue, EVERYTHING)
            told = whole(bound.recall, cue, EVERYTHING)
            assert scores(told, {}) == pytest.approx(scores(asked, again), abs=1e-6)
        # Copies of what others made public begin with their present text.
        found = whole(bound.events)
        here = {(e.id, e.text, e.version * (e.namespace == name)) for e in found}
        assert here == {
            (again[e.id], e.text, e.version * (e.namespace == name)) for e in alone.events()
        }
    for one, owner in list(whose.items())[:20]:
        causes = [event.id for event in whole(cluster.why, one, namespace=owner)]
        assert causes == [again[event.id] for event in twin.why(ids[one], namespace=owner)]
    # What others see is put away, so that the next round is asked of as few.
    both("forget", list(whose))
    # An erase reads all that was logged and overwritten, which takes most of the time otherwise.
    for memory in (cluster, twin):
        memory.admin.keep_history(decisions=1, changes=1_000)


def whole(ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what every shard answered: a shard that is late is named, and asked again."""
    end = time.monotonic() + 60
    while True:
        with suppress(MissingShardsError):
            found = ask(*args, **options)
            if not getattr(found, "missing", ()):
                return found
        assert time.monotonic() < end, "a shard never answered"


def scores(hits: Any, names: dict[int, int]) -> dict[int, float]:
    """Return what is scored, less the doubt that depends on when a sample was drawn last."""
    found = {}
    for hit in hits:
        doubt = sum(one.share for one in hit.factors if one.name == "fits everything")
        found[names.get(hit.event.id, hit.event.id)] = hit.score - doubt
    return found


@pytest.mark.requirement("B22")
def test_episodes_teach_their_namespace_alone(cluster: ClusterMemory) -> None:
    with Memory(embedder=PLAIN, clock="ticks") as twin:
        for memory in (cluster, twin):
            for way in ("left", "right", "right"):
                with memory.episode("find the hat", task="hats", namespace="ana") as run:
                    run.advise("a hall", ["left", "right"])
                    run.act(way)
                    run.end(float(way == "right"))
        told = [
            [
                str(
                    memory.episode("find the hat", task="hats", namespace=name).advise(
                        "a hall", ["left", "right"]
                    )
                )
                for name in ("ana", "bob")
            ]
            for memory in (cluster, twin)
        ]
        assert told[0] == told[1]
        assert told[0][0] != told[0][1]
        run = cluster.episode("look around", namespace="bob")
        again = cluster.episode(id=run.id)
        again.act("look", observation="a hall")
        again.end(1.0)
        with pytest.raises(CvxError):
            run.act("look", observation="a hall")


@pytest.mark.requirement("B22")
def test_nothing_acknowledged_is_lost_when_nodes_die(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path, deadline_s=2.0, cpus=0.6) as memory:
        told = kill_again_and_again(memory, nodes, kills=50 if NIGHTLY else 5)
    assert told.lost == []
    assert told.twice == []
    assert len(told.healed_s) == told.kills
    assert told.acknowledged > 10 * told.kills
    # Whoever waits for an answer gets one, whole or with the names of what is missing. How soon is
    # measured by `make cluster`; that no read waits for a host that never answers is tested below.
    assert told.unanswered == 0
    assert len(told.reads_s) > told.kills


@pytest.mark.requirement("B22")
def test_a_read_ends_by_its_deadline_and_by_nothing_else(
    nodes: LocalCluster, tmp_path: Path
) -> None:
    # Every host stands still for as long as it takes, so that nothing but the deadline can end a
    # read: one that waited for an answer, or for another host to lead, would never come back.
    with opened(tmp_path, deadline_s=0.5) as memory:
        name = two_homes(memory)[0]
        memory.add("the key is under the pot", namespace=name)
        memory.spread("crowd", [0, 1])
        hosts = [host["pid"] for host in memory.stats()["hosts"].values()]
        with ThreadPoolExecutor(1) as reader:
            for pid in hosts:
                os.kill(pid, signal.SIGSTOP)
            try:
                for whose, missing in ((name, ("shard 0",)), ("crowd", ("shard 0", "shard 1"))):
                    for _ in range(3):
                        read = reader.submit(memory.recall, "key", namespace=whose)
                        # Two minutes are for the machine, whatever else it does.
                        found = read.result(120)
                        assert (list(found), found.missing) == ([], missing)
            finally:
                for pid in hosts:
                    os.kill(pid, signal.SIGCONT)
        wait_for(lambda: memory.recall("key", namespace=name))


@pytest.mark.requirement("B22")
def test_a_ping_that_is_late_is_waited_for(nodes: LocalCluster, tmp_path: Path) -> None:
    # Ray says after a second that an actor is dead: a ping that is given up before tells nothing.
    with opened(tmp_path) as memory:
        name, host = next(iter(memory.stats()["hosts"].items()))

        def late() -> tuple[int, str]:
            return ray.get(  # type: ignore[no-any-return]
                memory._coordinator.__ray_call__.remote(
                    lambda it: (it._misses[name], str(it._asked.get(name)))
                )
            )

        os.kill(host["pid"], signal.SIGSTOP)
        try:
            wait_for(lambda: late()[0] >= 2)
            _, asked = late()
            wait_for(lambda: late()[0] >= 4)
            assert late()[1] == asked
        finally:
            os.kill(host["pid"], signal.SIGCONT)
        wait_for(lambda: late()[0] == 0)


@pytest.mark.requirement("B22")
def test_a_namespace_moves_while_four_write_to_it(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path) as memory, opened(tmp_path) as unaware:
        run = unaware.episode("find the hat", namespace="moving")
        told = move_under_writers(memory, size=2_000, writers=4)
        assert told.lost == []
        assert told.twice == []
        assert told.refused == Counter()
        (event,) = memory.events({"ids": [told.first]}, namespace="moving")
        assert memory.update(event, text="after the move").version == 2
        assert memory.get(told.first).text == "after the move"
        assert len(memory) == told.acknowledged + told.size
        # Who knows nothing of the move writes to the new shard, not to what is about to be erased.
        late = unaware.add("late", namespace="moving")
        step = run.act("look", observation="a hall")
        run.end(1.0)
        ray.get(memory._coordinator.settle.remote())
        shard = memory._client.layout.moved["moving"]
        assert late.id >> 36 == shard
        # Its hosts use the index that was made before it was sent: who writes would wait for them.
        for name in memory._client.layout.places[shard].hosts():
            made = memory._client.hosts[name].__ray_call__.remote(
                lambda host, shard: host._stores[shard].memory._shared.store.replica.rebuilds, shard
            )
            assert ray.get(made) == 0
        there = {event.id for event in memory.events(namespace="moving")}
        assert len(there) == told.acknowledged + told.size + 2
        assert {late.id, step.id} <= there
        with pytest.raises(InvalidInputError, match="give one of host-0"):
            memory.move("moving", "host-9")


@pytest.mark.requirement("B22")
def test_a_shard_that_does_not_answer_is_missing_by_name(
    nodes: LocalCluster, tmp_path: Path
) -> None:
    with opened(tmp_path, replicas=1, deadline_s=0.5, patience_s=1.0) as memory:
        names = two_homes(memory)
        for name in names:
            memory.add("the key is under the pot", namespace=name)
        memory.spread("crowd", [0, 1])
        for n in range(20):
            memory.add(f"guest {n} has a key", entity=f"guest {n}", namespace="crowd")
        assert len(memory.events(namespace="crowd")) == 20
        host = memory.stats()["hosts"][memory._client.layout.places[0].primary]
        os.kill(host["pid"], signal.SIGSTOP)
        try:
            found = memory.recall("key", namespace=names[0])
            assert (list(found), found.missing) == ([], ("shard 0",))
            began = time.monotonic()
            some = memory.recall("key", 30, namespace="crowd")
            # The breaker is open: nobody waits for it again.
            assert time.monotonic() - began < 10
            assert some.missing == ("shard 0",)
            assert 0 < len(some) < 20
            assert memory.context("key", namespace=names[0]).missing == ("shard 0",)
            assert memory.recall("key", namespace=names[1]).missing == ()
            many = memory.recall_many(["key", "key"], namespaces=names)
            assert [one.missing for one in many] == [("shard 0",), ()]
            with pytest.raises(cvx.errors.MissingShardsError, match="shard 0 did not answer"):
                memory.why("key", namespace=names[0])
            with pytest.raises(cvx.errors.MissingShardsError, match="did not take a write"):
                memory.add("another", namespace=names[0])
        finally:
            os.kill(host["pid"], signal.SIGCONT)
        wait_for(lambda: memory.recall("key", namespace=names[0]))


@pytest.mark.requirement("B22")
def test_a_host_that_was_away_comes_back_as_a_copy(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path, degraded_writes=True, cpus=0.3) as memory:
        name = two_homes(memory)[0]
        memory.add("before", namespace=name)
        before = memory._client.layout.places[0]
        host = memory.stats()["hosts"][before.primary]
        os.kill(host["pid"], signal.SIGSTOP)
        try:
            # Written to who leads meanwhile; the rest of the day goes by.
            for n in range(20):
                memory.add(f"meanwhile {n}", namespace=name)
            assert memory._client.layout.places[0].epoch > before.epoch
        finally:
            os.kill(host["pid"], signal.SIGCONT)
        wait_for(lambda: all(one["whole"] for one in memory.stats()["shards"].values()))
        memory.add("after", namespace=name)
        texts = [event.text for event in memory.events(namespace=name)]
        assert texts == ["before", *(f"meanwhile {n}" for n in range(20)), "after"]


def test_hosts_outlive_the_process_of_the_coordinator(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        name = two_homes(memory)[0]
        memory.add("before", namespace=name)
        host = memory._client.layout.places[1].primary
        before = memory.stats()
        memory.move(name, host)
        pid = ray.get(memory._coordinator.__ray_call__.remote(lambda _: os.getpid()))
        os.kill(pid, signal.SIGKILL)
        memory.add("after", namespace=name)
        wait_for(lambda: all(one["whole"] for one in memory.stats()["shards"].values()))
        after = memory.stats()
        pids = [
            {name: one["pid"] for name, one in told["hosts"].items()} for told in (before, after)
        ]
        assert pids[0] == pids[1]
        assert [event.text for event in memory.events(namespace=name)] == ["before", "after"]

        # What the namespace left on its old shard is tidied away by the next coordinator, too.
        def left() -> list[str]:
            files = tmp_path.glob("host-*/shard-00000/memory.db")
            return [str(one) for one in files if texts_in(one)]

        wait_for(lambda: not left())


def texts_in(path: Path) -> list[str]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return [row[0] for row in db.execute("SELECT text FROM events")]
    except sqlite3.DatabaseError as error:
        return [f"a host is just replacing it: {error}"]


def two_homes(memory: ClusterMemory) -> list[str]:
    """Return a namespace of each of two shards."""
    names = [f"name {n}" for n in range(100)]
    return [
        next(n for n in names if memory._client.layout.shards_of(n) == (shard,)) for shard in (0, 1)
    ]


def wait_for(done: Any) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "it never came"
        threading.Event().wait(0.05)


@pytest.mark.requirement("B22")
def test_an_embedder_that_only_one_node_can_reach(nodes: LocalCluster, tmp_path: Path) -> None:
    here = os.getpid()

    class Near:
        """Answers in the process that made it, and nowhere else."""

        def embed(self, texts: Any) -> Any:
            if os.getpid() != here:
                raise EmbedderUnreachableError("it is on another network: ask from there")
            return LexicalEmbedder(32).embed(texts)

        def info(self) -> Any:
            return LexicalEmbedder(32).info()

    with opened(tmp_path, embedder=Near()) as memory:
        key = memory.add("the key is under the pot")
        assert memory.recall("where is the key?")[0].event == key
        with pytest.raises(EmbedderUnreachableError):
            memory.update(key, text="it is gone")


@pytest.mark.requirement("B22")
def test_what_is_wrong_is_said(nodes: LocalCluster, tmp_path: Path) -> None:
    for wrong in ({"shards": 0}, {"replicas": 0}, {"shards": 2**40}):
        with pytest.raises(InvalidInputError):
            opened(tmp_path, **wrong)
    with opened(tmp_path) as memory:
        with pytest.raises(SettingsMismatchError, match="runs with 2: give that"):
            opened(tmp_path, shards=3)
        with opened(tmp_path) as again:
            again.add("from another client", namespace="ana", key="k")
        assert memory.get(key="k", namespace="ana").text == "from another client"
        assert list(memory.recall("")) == []
        for verb, args, error in (
            ("get", [12345], UnknownError),
            ("get", [], InvalidInputError),
            ("forget", [], InvalidInputError),
            ("recall", ["a", 0], InvalidInputError),
            ("add", [3], InvalidInputError),
            ("why", ["nothing fits"], UnknownError),
        ):
            with pytest.raises(error):
                getattr(memory, verb)(*args)
        with pytest.raises(TypeError):
            memory.add("a", colour="red")
        with pytest.raises(NamespaceError):
            memory.within("ana").add("a", namespace="bob")
        with pytest.raises(NamespaceError):
            memory.within("ana").stats()
        with pytest.raises(InvalidInputError, match="snapshots="):
            memory.snapshot()
    with pytest.raises(SettingsMismatchError, match="made with 2"):
        opened(tmp_path, shards=3)
    with pytest.raises(StoreError, match="more nodes"):
        opened(tmp_path / "other", replicas=9, start_s=3.0)


@pytest.mark.requirement("B22")
def test_without_ray_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['ray'] = None; import cvx.cluster"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("pip install ray fsspec")
    assert MissingExtraError.__name__ in done.stderr


@pytest.mark.requirement("B22")
def test_every_node_lost_and_the_bucket_left(nodes: LocalCluster, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/bucket"
    with opened(tmp_path / "a", snapshots=url) as memory:
        ids = [memory.add(f"fact {n}", namespace=f"name {n}").id for n in range(10)]
        memory.snapshot()
        ids += [memory.add(f"fact {n}", namespace=f"name {n}").id for n in range(10, 15)]
    for folder in (tmp_path / "a").glob("host-*"):
        subprocess.run(["rm", "-r", str(folder)], check=True)
    with opened(tmp_path / "a", snapshots=url) as memory:
        assert [memory.get(one).text for one in ids] == [f"fact {n}" for n in range(15)]


def test_writes_with_one_node_left_say_so(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path, hosts=2) as memory:
        name = two_homes(memory)[0]
        copy = memory._client.layout.places[0].copies[0]
        host = memory.stats()["hosts"][copy]
        memory.add("whole", namespace=name)
        os.kill(host["pid"], signal.SIGSTOP)
        try:
            with pytest.raises(ReplicaLostError, match="on 1 of 2 hosts"):
                memory.add("alone", namespace=name, key="k")
            assert memory.recall("whole", namespace=name).missing == ()
        finally:
            os.kill(host["pid"], signal.SIGCONT)
        wait_for(lambda: all(one["whole"] for one in memory.stats()["shards"].values()))
        # It may have been written, and was not acknowledged: with its key it is there once.
        memory.add("alone", namespace=name, key="k")
        assert Counter(e.text for e in memory.events(namespace=name)) == {"whole": 1, "alone": 1}


@pytest.mark.requirement("B22")
def test_only_a_namespace_that_holds_nothing_is_spread(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path, replicas=1, deadline_s=0.5, patience_s=2.0) as memory:
        name, other = two_homes(memory)
        kept = memory.add("the key is under the pot", namespace=name, key="k")
        memory.add("everybody knows", namespace=other, visibility="public")
        memory.merge()
        host = memory.stats()["hosts"][memory._client.layout.places[0].primary]
        os.kill(host["pid"], signal.SIGSTOP)
        try:
            with pytest.raises(MissingShardsError, match="it is not spread"):
                memory.spread(name, [1])
        finally:
            os.kill(host["pid"], signal.SIGCONT)
        wait_for(lambda: memory.recall("key", namespace=name))
        assert memory.add("the key is under the pot", namespace=name, key="k") == kept
        memory.forget([kept])
        for full in (name, other):
            with pytest.raises(InvalidInputError, match="holds nothing yet"):
                memory.spread(full, [0, 1])
        # A copy of what others made public is none of its own.
        memory.spread("crowd", [0, 1])
        assert memory._client.layout.shards_of("crowd") == (0, 1)


@pytest.mark.requirement("B22")
def test_an_export_is_one_file_a_shard(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path / "store") as memory:
        for name in two_homes(memory):
            memory.add(f"of {name}", namespace=name)
        with pytest.raises(InvalidInputError, match=r"all-\{shard\}.jsonl"):
            memory.admin.export(tmp_path / "all.jsonl")
        assert not (tmp_path / "all.jsonl").exists()
        told = memory.admin.export(tmp_path / "all-{shard}.jsonl")
        assert sorted(told) == [0, 1]
        files = [tmp_path / f"all-{shard}.jsonl" for shard in told]
        homes = two_homes(memory)
        texts = {event.text for name in homes for event in memory.events(namespace=name)}
        assert len(texts) == 2
        with Memory(embedder=PLAIN) as whole:
            for file in files:
                whole.admin.import_(file)
            assert {e.text for n in homes for e in whole.events(namespace=n)} == texts


@pytest.mark.requirement("B22")
def test_an_import_puts_each_namespace_where_it_belongs(
    nodes: LocalCluster, tmp_path: Path
) -> None:
    with opened(tmp_path / "store") as memory:
        names = [*two_homes(memory), "crowd"]
        memory.spread("crowd", [0, 1])
        with Memory(embedder=PLAIN) as plain:
            for name in names:
                for n in range(10):
                    entity = f"guest {n}"
                    plain.add(f"{name} {n}", namespace=name, entity=entity, aliases=[f"a{n}"])
            first, second = plain.events(namespace=names[0])[:2]
            plain.link(first, second, why="so it was")
            # A row as another cluster exports it: its original is in another file.
            plain.add("a copy", namespace=names[0], metadata={"cvx.id": 7})
            plain.admin.export(tmp_path / "plain.jsonl")
        told = memory.admin.import_(tmp_path / "plain.jsonl")
        assert sum(one.counts["events"] for one in told.values()) == 30
        for name in names:
            found = memory.events(namespace=name)
            assert sorted(e.text for e in found) == sorted(f"{name} {n}" for n in range(10))
            where = {memory._client.layout.shard_of(name, e.entity) for e in found}
            assert {e.id >> 36 for e in found} == where
            assert len(where) == (2 if name == "crowd" else 1)
        effect = next(e for e in memory.events(namespace=names[0]) if e.text.endswith(" 1"))
        assert [e.text for e in memory.why(effect, namespace=names[0])] == [f"{names[0]} 0"]
        with pytest.raises(ExportError, match="was taken in before"):
            memory.admin.import_(tmp_path / "plain.jsonl")
        assert len(memory) == 30


@pytest.mark.requirement("B22")
def test_what_is_closed_says_so_at_once(nodes: LocalCluster, tmp_path: Path) -> None:
    first = opened(tmp_path, patience_s=60.0, deadline_s=30.0)
    with opened(tmp_path) as second:
        event = first.add("the key is under the pot")
        view = first.within("ana")
        run = first.episode("find the hat")
        first.close()
        first.close()
        for verb, args in (
            ("add", ["a"]),
            ("add_many", [["a"]]),
            ("update", [event]),
            ("link", [1, 2]),
            ("forget", [[event]]),
            ("erase", [[event]]),
            ("feedback", [1]),
            ("get", [event]),
            ("events", []),
            ("recall", ["a"]),
            ("recall_many", [["a"]]),
            ("context", ["a"]),
            ("why", [event]),
            ("consequences", [event]),
            ("__len__", []),
            ("episode", ["a"]),
            ("stats", []),
            ("move", ["ana", "host-0"]),
            ("spread", ["ana", [0]]),
            ("merge", []),
            ("snapshot", []),
        ):
            with pytest.raises(StoreError, match="is closed: open the cluster again"):
                getattr(first, verb)(*args)
        for ask in (lambda: view.recall("a"), lambda: run.act("look"), first.admin.check):
            with pytest.raises(StoreError, match="is closed"):
                ask()
        assert second.recall("where is the key?")[0].event == event
        second.add("and the hat is on the hook")
    with opened(tmp_path) as third:
        assert len(third) == 2


def test_nobody_answered_is_not_nothing_remembered(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path, replicas=1, deadline_s=0.5, patience_s=60.0) as memory:
        name = two_homes(memory)[0]
        host = memory.stats()["hosts"][memory._client.layout.places[0].primary]
        os.kill(host["pid"], signal.SIGSTOP)
        try:
            for shown in (
                memory.recall("key", namespace=name),
                memory.context("key", namespace=name),
            ):
                assert "shard 0 did not answer in time" in str(shown.trace)
                assert "nothing is remembered" not in str(shown.trace)
                assert shown.trace.namespace == name
            # Nor is what one shard was not told of known to all.
            with pytest.raises(ReplicaLostError, match=r"shards \[.*1\] do not know yet"):
                memory.merge()
        finally:
            os.kill(host["pid"], signal.SIGCONT)


@pytest.mark.requirement("B22")
def test_errors_are_those_of_cvx_in_one_line(nodes: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordIOError, match="is a file: give the path of a folder"):
        opened(tmp_path / "file")
    with Memory.open(tmp_path / "plain", embedder=PLAIN) as plain:
        plain.add("the key is under the pot")
    with pytest.raises(StoreError, match=r"open it with cvx\.Memory\.open"):
        opened(tmp_path / "plain")
    with opened(tmp_path / "many") as memory:
        for create in (True, False):
            with pytest.raises(StoreError, match=r"open it with cvx\.cluster\.open"):
                Memory.open(tmp_path / "many", embedder=PLAIN, create=create)
        assert not (tmp_path / "many" / "memory.db").exists()
        for ask, error in (
            (lambda: memory.as_of(1), StoreError),
            (lambda: memory.episode("x", learn=False), InvalidInputError),
            (lambda: memory.admin.transaction(), StoreError),
            (lambda: memory.move("ada", "host-99"), InvalidInputError),
            (lambda: memory.snapshot(), InvalidInputError),
            (lambda: memory.spread("new", [0, 7]), InvalidInputError),
        ):
            with pytest.raises(error) as caught:
                ask()
            assert not isinstance(caught.value, ray.exceptions.RayError)
            assert "\n" not in str(caught.value)
            assert "\x1b" not in str(caught.value)


def test_what_a_move_that_broke_off_left_is_removed(nodes: LocalCluster, tmp_path: Path) -> None:
    with opened(tmp_path / "store", snapshots=f"file://{tmp_path}/bucket") as memory:
        name = two_homes(memory)[0]
        memory.add("the key is under the pot", namespace=name)
        # Nobody can lead the new shard, since the bucket does not take its snapshot.
        left = tmp_path / "bucket" / "shard-00002"
        left.write_text("in the way")
        host = memory._client.layout.places[1].primary
        with pytest.raises(StoreError):
            memory.move(name, host)
        wait_for(lambda: not left.exists() and not [*tmp_path.glob("store/host-*/shard-00002*")])
        assert memory.move(name, host) == 3
        # Who asks again, since no answer came, moves nothing.
        assert memory.move(name, host) == 3
        assert memory.recall("key", namespace=name)[0].text == "the key is under the pot"
