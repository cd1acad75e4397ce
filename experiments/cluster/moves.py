"""Moving a namespace to another host while four write to it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from cvx.cluster import ClusterMemory
from cvx.errors import CvxError
from experiments.cluster.local import everything_of

NAMESPACE = "moving"
_BATCH = 1_000


@dataclass(slots=True)
class Moved:
    """What came of it.

    Attributes
    ----------
    size, acknowledged : int
        Events before, and written meanwhile.
    first : int
        The id of the first.
    move_s : float
        What the move took.
    writes_s : list of float
        What each write took, from a second before the move to a second after it.
    lost, twice : list of str
        Texts that were acknowledged and are not there; that are there twice.
    refused : Counter
        Writes that were not acknowledged, by the name of the error.
    """

    size: int
    acknowledged: int = 0
    first: int = 0
    move_s: float = 0.0
    writes_s: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def quantile(self, share: float) -> float:
        """Return what this share of the writes took at most."""
        return float(np.quantile(self.writes_s, share))


def move_under_writers(memory: ClusterMemory, size: int, writers: int) -> Moved:
    """Fill a namespace, move it away from its host, and write to it all the while."""
    told = Moved(size)
    texts = [f"memory {n} of a namespace that moves" for n in range(size)]
    for at in range(0, size, _BATCH):
        ids = memory.add_many(texts[at : at + _BATCH], namespace=NAMESPACE)
        told.first = told.first or int(ids[0])
    written: list[str] = []
    ended = threading.Event()

    def write(number: int) -> None:
        count = 0
        while not ended.is_set():
            count += 1
            text = f"writer {number} wrote {count}"
            began = time.perf_counter()
            try:
                memory.add(text, namespace=NAMESPACE)
            except CvxError as error:
                told.refused[type(error).__name__] += 1
            else:
                written.append(text)
            told.writes_s.append(time.perf_counter() - began)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    try:
        ended.wait(1.0)
        layout = memory._client.layout
        host = layout.places[layout.shards_of(NAMESPACE)[0]].primary
        other = next(name for name in sorted(memory.stats()["hosts"]) if name != host)
        began = time.monotonic()
        memory.move(NAMESPACE, other)
        told.move_s = time.monotonic() - began
        ended.wait(1.0)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    there = Counter(event.text for event in everything_of(memory, NAMESPACE))
    told.acknowledged = len(written)
    told.lost = [text for text in (*texts, *written) if text not in there]
    told.twice = [text for text, times in there.items() if times > 1]
    return told
