"""A cluster of up to 1,000 shards and a billion memories, simulated from measured costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.cluster.costs import Costs

_CALLS = 40_000
_LOAD = 0.4
"""Share of a core that recalls keep busy on a host, on average."""
_GROWTH = 1.2
"""How a search grows from a hundred thousand vectors to a million: log(1e6) / log(1e5)."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a number of shards is expected to do.

    Attributes
    ----------
    shards, memories : int
        How many.
    cpu : float
        Processor time a call, in seconds: of the shard, the client, and the share of pings.
    p50, p99 : float
        Seconds of a recall.
    busiest : float
        Load of the busiest host over that of the mean, where namespaces are of unequal use.
    """

    shards: int
    memories: int
    cpu: float
    p50: float
    p99: float
    busiest: float


def simulate(costs: Costs, shards: int, a_shard: int = 1_000_000, seed: int = 0) -> Simulated:
    """Simulate recalls at random times to namespaces whose use falls off as 1 / rank.

    Each host answers one after the other. A namespace is on one shard, so that a call does the same
    work however many there are; what grows is the difference between the hosts.
    """
    rng = np.random.default_rng(seed)
    service = rng.choice(costs.recalls - costs.round_trip, _CALLS).clip(1e-4) * _GROWTH
    # A hundred namespaces a shard, placed at random.
    weights = 1.0 / np.arange(10, 100 * shards + 10) ** 0.5
    home = rng.integers(shards, size=len(weights))
    load = np.bincount(home, weights / weights.sum(), minlength=shards) * shards
    rate = _LOAD / service.mean()
    waits = []
    for at in rng.choice(shards, min(shards, 50), replace=False):
        some = rng.choice(service, _CALLS // min(shards, 50))
        gaps = rng.exponential(1.0 / (rate * load[at]), len(some))
        waits.append(_answered(gaps, some))
    taken = np.concatenate(waits) + costs.round_trip
    cpu = costs.cpu_four * _GROWTH + costs.idle / rate
    return Simulated(
        shards,
        shards * a_shard,
        float(cpu),
        float(np.quantile(taken, 0.5)),
        float(np.quantile(taken, 0.99)),
        float(load.max()),
    )


def _answered(
    gaps: np.ndarray[tuple[int], np.dtype[np.float64]],
    service: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return from each arrival to its answer, of one host that answers in order."""
    wait, taken = 0.0, np.empty(len(service))
    for at, (gap, work) in enumerate(zip(gaps, service, strict=True)):
        wait = max(wait - gap, 0.0) + work
        taken[at] = wait
    return taken
