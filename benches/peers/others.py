"""The floor of a call, build, bytes, opening, and searches that look around a hit."""

from __future__ import annotations

from benches.peers.targets import Line
from benches.peers.workers import Workers


def lines(workers: Workers, queries: int, *, around: bool) -> list[Line]:
    name = workers.data.name
    share = workers.build_s["hnswlib"] / workers.build_s["cvx"]
    found = [Line(f"{name} build, hnswlib M=16", share, 3, 8, detail=dict(workers.build_s))]
    if not around:
        return found
    bytes_of = workers.ask("cvx", "memory")
    found += [
        Line("floor of one call", workers.ask("cvx", "floor"), 2, 1.2, " us", at_most=True),
        Line(
            "bytes a vector, rows in full precision apart",
            bytes_of["hot"],
            1350,
            600,
            " B",
            at_most=True,
            detail=bytes_of,
        ),
        Line(
            f"open {len(workers.data.base):,} rows",
            workers.ask("cvx", "opening"),
            10,
            2,
            " ms",
            at_most=True,
        ),
    ]
    workers.ask("cvx", "edges")
    beside = workers.ask("cvx", "beside_plain", 64, min(queries, 300))
    agrees = beside["agreement"] >= 0.95
    found += [
        Line(
            "graph_search, 8 edges, 2 hops, plain",
            beside["graph"],
            1.5,
            1.2,
            at_most=True,
            holds=agrees,
            detail=beside,
        ),
        Line(
            "causal_search, 5 steps, plain",
            beside["causal"],
            1.2,
            1.05,
            at_most=True,
            detail=beside,
        ),
    ]
    return found
