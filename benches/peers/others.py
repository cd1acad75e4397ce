"""Other comparisons: builds, call overhead, bytes, opening, cold filters."""

from __future__ import annotations

from benches.growing_index import HEADER, Mixture, exponent, grown, show
from benches.peers import first_filters
from benches.peers.data import real
from benches.peers.ours import EDGES
from benches.peers.targets import Line
from benches.peers.workers import Workers
from cvx.index import RawIndex


def lines(workers: Workers, queries: int, *, headline: bool, whole: bool) -> list[Line]:
    """What is asked once (`headline`), and of each set; `whole` builds it at every thread count."""
    name = workers.data.name
    hnswlibs = [other for other in workers.build_s if other.startswith("hnswlib")]
    found = []
    for other in hnswlibs:
        m = other.removeprefix("hnswlib").strip() or "16"
        share = workers.build_s[other] / workers.build_s["cvx"]
        must, aim = (3, 8) if other == "hnswlib" else (3, 3)
        detail = {library: workers.build_s[library] for library in ("cvx", other)}
        found.append(Line(f"{name} build, hnswlib M={m}", share, must, aim, detail=detail))
    if whole:
        built = workers.ask("cvx", "threads")
        print(f"\n{name}, built at 1, 2 and 4 threads: {built}", flush=True)
        differing = 0.0 if built["identical"] else 1.0
        measure = f"{name} build, bytes differing at 1, 2, 4 threads"
        found.append(Line(measure, differing, 0, 0, "", at_most=True, detail=built))
    if not headline:
        return found
    return [*found, *once(workers, queries)]


def once(workers: Workers, queries: int) -> list[Line]:
    """What is asked on one set only."""
    bytes_of = workers.ask("cvx", "memory")
    found = [
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
        *first_filters.lines(workers.ask("cvx", "cold")),
    ]
    workers.ask("cvx", "edges")
    beside = workers.ask("cvx", "beside_plain", 64, min(queries, 300))
    agrees = beside["agreement"] >= 0.95
    graph, causal = beside["graph"], beside["causal"]
    opened = workers.ask("cvx", "opening")
    count = f"{len(workers.data.base) * EDGES / 1e6:.1f} million"
    return [
        *found,
        Line(
            "graph_search, 8 edges, 2 hops, plain",
            graph,
            1.5,
            1.2,
            at_most=True,
            holds=agrees,
            detail=beside,
        ),
        Line("causal_search, 5 steps, plain", causal, 1.2, 1.05, at_most=True, detail=beside),
        Line(f"open, with {count} typed edges", opened, 10, 2, " ms", at_most=True),
    ]


def growth(most: int) -> Line:
    """How the cost of an insert grows, as the exponent of log n that fits it best."""
    base, queries = real()
    mixture = Mixture(base, most)
    index = RawIndex(base.shape[1], exact_below=0)
    sizes = [10_000 * 2**step for step in range(30) if 10_000 * 2**step <= most]
    print("\ninserts as an index grows\n" + "".join(f"{name:>16}" for name in HEADER))
    table = []
    for upto in sizes:
        table.append(grown(index, mixture, queries[:100], upto))
        show(table[-1])
    measure = f"one insert, {sizes[0]:,} to {sizes[-1]:,}: p of (log n)^p"
    return Line(measure, exponent(table), 1, 1, "", at_most=True, detail={"sizes": table})
