"""What a call to a cluster costs beside that to a memory, and beside Ray's own round trip."""

from __future__ import annotations

import os
import pickle
import time
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
        Medians: of Ray to a host that does nothing; of a recall by a memory in this process; of a
        recall and of a write by the cluster.
    recalls : ndarray of shape (n,), float64
        Of the cluster, each.
    cpu_one, cpu_four : float
        Processor time of a recall over all processes of the cluster and the client, beyond what
        they use when nobody asks: with one shard, with four.
    idle : float
        Processor time a second of one host that nobody asks, and the coordinator's share for it.
    """

    events: int
    round_trip: float
    alone: float
    recall: float
    add: float
    recalls: np.ndarray[Any, np.dtype[np.float64]]
    cpu_one: float
    cpu_four: float
    idle: float

    @property
    def overhead(self) -> float:
        """What the cluster adds to a recall beyond Ray's round trip."""
        return self.recall - self.alone - self.round_trip


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
    timed: dict[str, list[float]] = {"round_trip": [], "alone": [], "recall": [], "add": []}
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
            Memory(embedder=embedder) as alone,
        ):
            names = _names(memory, shards)
            for seed, name in enumerate(names):
                memory.add_many(texts_of(events, seed), namespace=name)
                if not seed:
                    alone.add_many(texts_of(events, seed), namespace=name)
            cues = texts_of(calls, 99)
            for name in names:
                memory.recall(cues[0], namespace=name)
            pids = _pids(memory)
            idle_before, began = _cpu(pids), time.perf_counter()
            time.sleep(3.0)
            idle = (_cpu(pids) - idle_before) / (time.perf_counter() - began)
            before, began = _cpu(pids), time.perf_counter()
            for at, cue in enumerate(cues):
                memory.recall(cue, namespace=names[at % shards])
            spent = time.perf_counter() - began
            cpu[shards] = (_cpu(pids) - before - idle * spent) / calls
            if shards == 4:
                continue
            _time(memory, alone, names[0], cues, timed)
    return Costs(
        events,
        **{name: _median(some) for name, some in timed.items()},
        recalls=np.array(timed["recall"]),
        cpu_one=cpu[1],
        cpu_four=cpu[4],
        idle=idle / 5,
    )


def _time(
    memory: ClusterMemory, alone: Memory, name: str, cues: list[str], timed: dict[str, list[float]]
) -> None:
    """Time each kind of call in turn, so that all of them meet the same machine."""
    client, nothing = memory._client, pickle.dumps((-1, *[None] * 5))
    host = client.hosts[client.layout.places[0].primary]
    for cue in cues:
        for kind, do in (
            ("round_trip", lambda: ray.get(host.call.remote(nothing))),
            ("alone", partial(alone.recall, cue, namespace=name)),
            ("recall", partial(memory.recall, cue, namespace=name)),
            ("add", partial(memory.add, f"{cue}, new", namespace=name)),
        ):
            began = time.perf_counter()
            do()
            timed[kind].append(time.perf_counter() - began)
        # What the next recall takes in first, it takes in there too.
        alone.add(f"{cue}, new", namespace=name)


def _names(memory: ClusterMemory, shards: int) -> list[str]:
    """Return a namespace of each shard."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < shards:
        name = f"agent {number}"
        names.setdefault(memory._client.layout.shard_of(name), name)
        number += 1
    return [names[shard] for shard in sorted(names)]
