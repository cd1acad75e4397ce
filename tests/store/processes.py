"""What the tests of crashes run in other processes."""

from __future__ import annotations

import os
import random
import signal
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.store import Record
from cvx.store.transfer import export_record

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["sklearn.linear_model", "cvx.memory", "tests.store.processes"])


def embedder() -> LexicalEmbedder:
    return LexicalEmbedder(dim=16)


def write_until_killed(folder: str, name: str, seed: int, acks: Connection) -> None:
    """Write for ever; say so after each write that was acknowledged."""
    rng = random.Random(seed)
    memory = Memory.open(folder, embedder=embedder())
    own: list[int] = []
    number = 0
    while True:
        kind = rng.random()
        if kind < 0.7 or len(own) < 2:
            text = f"{name} saw thing {number} {rng.random()}"
            number += 1
            own.append(
                memory.add(text, namespace=rng.choice(["", "other"]), aliases=["an alias"]).id
            )
            acks.send(("add", own[-1], text))
        elif kind < 0.8:
            reward = rng.randrange(5) / 4
            event = rng.choice(own)
            memory.update(event, reward=reward)
            acks.send(("reward", event, reward))
        elif kind < 0.9:
            a, b = rng.sample(own, 2)
            memory.link(a, b, "caused", weight=0.5, effect_first="allow")
            acks.send(("link", a, b))
        elif kind < 0.95:
            event = own.pop(rng.randrange(len(own)))
            memory.forget(event)
            acks.send(("forget", event, None))
        else:
            memory.admin.snapshot()


def export_until_killed(folder: str, path: str) -> None:
    """Write an export, and die before it gets its name."""

    def die_at_the_end(done: int, total: int) -> None:
        if done == total:
            os.kill(os.getpid(), signal.SIGKILL)

    with Record(Path(folder) / "memory.db", read_only=True) as record:
        export_record(record, Path(path), progress=die_at_the_end)


def consistent(folder: Path) -> None:
    """Every row is right, and the index that opens is the one that the rows make."""
    with Memory.open(folder, embedder=embedder()) as memory:
        assert memory.admin.check() == []
        index = memory.index
        seq = memory._shared.store.replica.seq
        assert seq == memory.record.tail().seq
        memory._shared.store.replica.rebuild()
        built = memory._shared.store.fresh()
        built.become(memory._shared.store.index)
    with Memory.open(folder, embedder=embedder()) as memory:
        index = memory.index
        assert index.stats()["ids_given"] == built.stats()["ids_given"]
        assert index.stats()["nodes"] == built.stats()["nodes"]
        assert [e[:4] for e in map(_ends, index.edges())] == [
            e[:4] for e in map(_ends, built.edges())
        ]
        rng = np.random.default_rng(0)
        from cvx.types import Filter

        for query in rng.normal(size=(5, 16)).astype(np.float32):
            for recallable in (True, None):
                where = Filter(namespaces=["", "other"], recallable=recallable)
                ids, distances = index.search(query, 20, where=where)
                twins, others = built.search(query, 20, where=where)
                np.testing.assert_array_equal(ids, twins)
                np.testing.assert_array_equal(distances, others)
                assert [index.reward(i) for i in ids] == [built.reward(i) for i in ids]


def _ends(edge: object) -> tuple[object, ...]:
    return tuple(getattr(edge, n) for n in ("from_node", "to_node", "kind", "weight"))


def scenario(folder: str) -> None:
    """Reach every failpoint, and say what was done."""

    def say(*words: object) -> None:
        print(*words, flush=True)

    memory = Memory.open(folder, embedder=embedder())
    say("opened")
    ids = []
    for number in range(3):
        ids.append(memory.add(f"the first secret number {number}").id)
        say("added", ids[-1], f"the first secret number {number}")
    memory.admin.snapshot()
    memory.link(ids[0], ids[1])
    say("linked")
    memory.admin.snapshot()
    memory.add("something between")
    memory.admin.snapshot()
    memory.erase(ids[0])
    say("erased", ids[0], "the first secret number 0")
    ids.append(memory.add("the last one").id)
    say("added", ids[-1], "the last one")
    memory.close()
    say("closed")


if __name__ == "__main__":
    assert os.environ["CVX_FAILPOINT"]
    scenario(sys.argv[1])
