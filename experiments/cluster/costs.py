"""What a call to a cluster costs beside that to a memory, and beside Ray's own round trip."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray

import cvx.cluster
from cvx.cluster import ClusterMemory
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory

_WORDS = (
    *("rain", "flood", "cellar", "drain", "key", "pot", "door", "bridge", "rope", "lamp"),
    *("river", "boat", "storm", "cloud", "stone", "garden", "window", "table", "letter", "market"),
)
_BATCH = 1_000
_TICK = os.sysconf("SC_CLK_TCK")


def texts_of(count: int, seed: int) -> list[str]:
    """Return texts of six words each, drawn by a seed."""
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(_WORDS, 6))} {n}" for n in range(count)]


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of a call, in seconds.

    Attributes
    ----------
    events : int
        In each shard.
    round_trip, alone, recall, add : float
        Medians: of Ray to a host that does nothing; of a recall by a memory on disk in this
        process, as a shard is one; of a recall and of a write by the cluster.
    bare : float
        Median of a recall by a plain Ray actor that has a memory on disk and nothing else: what
        Ray's round trip comes to where the other side works as long and answers as much.
    overhead : float
        What the cluster adds to a recall of such an actor: the median over the rounds, in each of
        which all are asked the same.
    beyond : float
        The same beside the sum of a recall in this process and a round trip to a host that does
        nothing, from which both sides wake at once.
    recalls : ndarray of shape (n,), float64
        Of the cluster, each.
    cpu_one, cpu_four : float
        Processor time of a recall over all processes of the cluster and the client, beyond what
        they use when nobody asks: with one shard, with four.
    cpu_bare : float
        The same, of a recall by a plain Ray actor.
    idle : float
        Processor time a second of one host that nobody asks, and the coordinator's share for it.
    """

    events: int
    round_trip: float
    alone: float
    recall: float
    add: float
    bare: float
    overhead: float
    beyond: float
    recalls: np.ndarray[Any, np.dtype[np.float64]]
    cpu_one: float
    cpu_four: float
    cpu_bare: float
    idle: float


class Bare:
    """A memory in a plain Ray actor, as one would have it without a cluster.

    Parameters
    ----------
    folder : Path
        Of its store.
    embedder : LexicalEmbedder
        Of its texts.
    """

    def __init__(self, folder: Path, embedder: LexicalEmbedder) -> None:
        self._memory = Memory.open(folder, embedder=embedder)

    def do(self, verb: str, *args: Any, **options: Any) -> Any:
        """Return what the memory answers."""
        return getattr(self._memory, verb)(*args, **options)

    def pid(self) -> int:
        """Return of which process it is."""
        return os.getpid()


def _median(timed: list[float]) -> float:
    return float(np.median(timed))


def _cpu(pids: list[int]) -> float:
    """Return the processor time that processes have used."""
    used = 0
    for pid in pids:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used += int(told[11]) + int(told[12])
    return used / _TICK


def _pids(memory: ClusterMemory) -> list[int]:
    hosts = [one["pid"] for one in memory.stats()["hosts"].values()]
    return [os.getpid(), *hosts]


def measure(folder: Path, events: int, calls: int) -> Costs:
    """Measure on the Ray cluster that this process is connected to."""
    embedder = LexicalEmbedder()
    cpu, idle = {}, 0.0
    kinds = ("round_trip", "alone", "bare", "recall", "add")
    timed: dict[str, list[float]] = {name: [] for name in kinds}
    for shards in (1, 4):
        with (
            cvx.cluster.open(
                folder / str(shards),
                shards=shards,
                hosts=max(shards, 2),
                cpus=0.2,
                embedder=embedder,
                deadline_s=5.0,
            ) as memory,
            Memory.open(folder / f"alone-{shards}", embedder=embedder) as alone,
        ):
            names = _names(memory, shards)
            for seed, name in enumerate(names):
                texts = texts_of(events, seed)
                # A copy has three seconds to sync what comes in one call.
                for at in range(0, events, _BATCH):
                    memory.add_many(texts[at : at + _BATCH], namespace=name)
                if not seed:
                    alone.add_many(texts, namespace=name)
            cues = texts_of(calls, 99)
            for name in names:
                memory.recall(cues[0], namespace=name)
            alone.recall(cues[0], namespace=names[0])
            pids = _pids(memory)
            idle = _cpu_a_call(pids, 3, 0.0, lambda _: time.sleep(1.0))

            def asked(at: int) -> object:
                return memory.recall(cues[at], namespace=names[at % shards])  # noqa: B023

            cpu[shards] = _cpu_a_call(pids, calls, idle, asked)
            if shards == 4:
                continue

            options = {"num_cpus": 0.2, "max_concurrency": 32, "scheduling_strategy": "SPREAD"}
            bare: Any = ray.remote(Bare).options(**options).remote(folder / "bare", embedder)
            _asked(bare, "add_many", texts_of(events, 0), names[0])

            def asked_bare(at: int) -> object:
                return _asked(bare, "recall", cues[at], names[0])  # noqa: B023

            asked_bare(0)
            with_it = [*pids, ray.get(bare.pid.remote())]
            cpu_bare = _cpu_a_call(with_it, calls, idle, asked_bare)
            _time(memory, alone, bare, names[0], cues, timed)
            ray.kill(bare)
    rounds = {name: np.array(some) for name, some in timed.items()}
    return Costs(
        events,
        **{name: _median(some) for name, some in timed.items()},
        overhead=float(np.median(rounds["recall"] - rounds["bare"])),
        beyond=float(np.median(rounds["recall"] - rounds["alone"] - rounds["round_trip"])),
        recalls=rounds["recall"],
        cpu_one=cpu[1],
        cpu_four=cpu[4],
        cpu_bare=cpu_bare,
        idle=idle / 5,
    )


def _cpu_a_call(pids: list[int], calls: int, idle: float, do: Callable[[int], object]) -> float:
    """Return the processor time of a call, less what is used each second when nobody asks."""
    before, began = _cpu(pids), time.perf_counter()
    for at in range(calls):
        do(at)
    spent = time.perf_counter() - began
    return (_cpu(pids) - before - idle * spent) / calls


def _round_trip(memory: ClusterMemory, _at: int = 0) -> None:
    """Ask a host for nothing."""
    client = memory._client
    host = client.hosts[client.layout.places[0].primary]
    ray.get(host.call.remote(pickle.dumps((-1, *[None] * 5))))


def _time(
    memory: ClusterMemory,
    alone: Memory,
    bare: Any,
    name: str,
    cues: list[str],
    timed: dict[str, list[float]],
) -> None:
    """Time each kind of call in turn, so that all of them meet the same machine."""
    for at, cue in enumerate(cues):
        recalls = (
            ("round_trip", partial(_round_trip, memory)),
            ("alone", partial(alone.recall, cue, namespace=name)),
            ("bare", partial(_asked, bare, "recall", cue, name)),
            ("recall", partial(memory.recall, cue, namespace=name)),
        )
        first = at % len(recalls)
        new = partial(memory.add, f"{cue}, new", namespace=name)
        for kind, do in (*recalls[first:], *recalls[:first], ("add", new)):
            began = time.perf_counter()
            do()
            timed[kind].append(time.perf_counter() - began)
        # What the next recall takes in first, it takes in there too.
        alone.add(f"{cue}, new", namespace=name)
        _asked(bare, "add", f"{cue}, new", name)


def _asked(bare: Any, verb: str, said: object, name: str) -> object:
    return ray.get(bare.do.remote(verb, said, namespace=name))


def _names(memory: ClusterMemory, shards: int) -> list[str]:
    """Return a namespace of each shard."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < shards:
        name = f"agent {number}"
        names.setdefault(memory._client.layout.shard_of(name), name)
        number += 1
    return [names[shard] for shard in sorted(names)]
