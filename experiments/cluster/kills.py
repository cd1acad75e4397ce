"""Killing nodes while four write and one reads, and looking for what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cvx.cluster import ClusterMemory
from cvx.errors import CvxError
from experiments.cluster.local import LocalCluster, everything_of

_WRITERS = 4


@dataclass(slots=True)
class Killed:
    """What came of it.

    Attributes
    ----------
    kills, acknowledged : int
        How many nodes, and how many writes.
    lost, twice : list of str
        Keys that were acknowledged and are not there; that are there twice.
    refused : Counter
        Writes that were not acknowledged, by the name of the error.
    healed_s, replaced_s : list of float
        From each death until every shard was on two nodes again; until the host that died lives on
        the new node.
    reads_s : list of float
        What each read took.
    partial, unanswered : int
        Reads that named a missing shard; that raised.
    """

    kills: int
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    healed_s: list[float] = field(default_factory=list)
    replaced_s: list[float] = field(default_factory=list)
    reads_s: list[float] = field(default_factory=list)
    partial: int = 0
    unanswered: int = 0


def kill_again_and_again(
    memory: ClusterMemory, nodes: LocalCluster, kills: int, patience_s: float = 90.0
) -> Killed:
    """Kill the node of one host after the other, each replaced by a new node."""
    told = Killed(kills)
    acknowledged: dict[str, list[str]] = {f"writer {n}": [] for n in range(_WRITERS)}
    ended = threading.Event()

    def write(whose: str) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            key = f"{whose}, fact {number}"
            try:
                memory.add(key, key=key, namespace=whose)
            except CvxError as error:
                told.refused[type(error).__name__] += 1
                ended.wait(0.05)
            else:
                acknowledged[whose].append(key)

    def read() -> None:
        while not ended.wait(0.02):
            for whose in acknowledged:
                began = time.perf_counter()
                try:
                    found = memory.recall("fact", namespace=whose)
                except CvxError:
                    told.unanswered += 1
                else:
                    told.partial += bool(found.missing)
                told.reads_s.append(time.perf_counter() - began)

    threads = [threading.Thread(target=write, args=(whose,)) for whose in acknowledged]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    try:
        for number in range(kills):
            ended.wait(0.5)
            hosts = memory.stats()["hosts"]
            victim = hosts[sorted(hosts)[number % len(hosts)]]
            began = time.monotonic()
            nodes.kill(victim)
            nodes.add()
            for found, when in ((told.healed_s, _is_whole), (told.replaced_s, _is_replaced)):
                if _comes(memory, when, victim["pid"], began + patience_s):
                    found.append(time.monotonic() - began)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for whose, keys in acknowledged.items():
        there = Counter(event.key for event in everything_of(memory, whose))
        told.acknowledged += len(keys)
        told.lost += [key for key in keys if key not in there]
        told.twice += [str(key) for key, times in there.items() if times > 1]
    return told


def _is_whole(stats: dict[str, Any], dead: int) -> bool:
    known = all(one["pid"] != dead for one in stats["hosts"].values())
    return known and all(one["whole"] for one in stats["shards"].values())


def _is_replaced(stats: dict[str, Any], dead: int) -> bool:
    return _is_whole(stats, dead) and all(one["alive"] for one in stats["hosts"].values())


def _comes(
    memory: ClusterMemory, when: Callable[[dict[str, Any], int], bool], dead: int, until: float
) -> bool:
    while time.monotonic() < until:
        if when(memory.stats(), dead):
            return True
        time.sleep(0.1)
    return False
