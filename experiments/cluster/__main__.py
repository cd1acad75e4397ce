"""``python -m experiments.cluster``: a local cluster loses nodes and nothing else; the table."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cvx.errors import MissingExtraError
from experiments.cluster.local import QUICK

Row = tuple[str, str, str]
"""What was measured, its value, and the bound that it is to keep."""
_WIDTH = 56
_LOST = "something that was acknowledged is lost, or there twice"


def main() -> None:
    """Start a cluster on this machine, kill nodes, and print what came of it and what it costs."""
    asked = argparse.ArgumentParser(prog="python -m experiments.cluster", description=__doc__)
    asked.add_argument(
        "--kills", type=int, default=2, help="nodes that die (50 every night; 0: none)"
    )
    asked.add_argument("--table", action="store_true", help="measure costs too, and simulate")
    asked.add_argument("--events", type=int, default=5_000, help="in each shard, for the table")
    asked.add_argument("--moved", type=int, default=10_000, help="memories that move (100000)")
    asked.add_argument("--calls", type=int, default=300, help="of each kind, for the table")
    asked.add_argument("--out", type=Path, default=Path("runs/cluster.json"))
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    # Ray reads some of these where it is imported.
    os.environ.update(QUICK)
    try:
        import cvx.cluster  # noqa: F401
    except MissingExtraError as error:
        raise SystemExit(str(error)) from error

    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    # Each row as soon as it is known: a run that breaks off has measured something.
    for name, value, bound in _rows(given):
        rows.append((name, value, bound))
        print(f"{name:{_WIDTH}}  {value}{f'   (at most {bound})' if bound else ''}", flush=True)
        told = [dict(zip(("what", "value", "bound"), row, strict=True)) for row in rows]
        given.out.write_text(json.dumps(told, indent=1))
    print("nothing that was acknowledged is lost")


def _rows(given: argparse.Namespace) -> Iterator[Row]:
    """Measure one thing after the other on one local cluster."""
    from cvx.embed import LexicalEmbedder
    from experiments.cluster.local import local_cluster

    options: dict[str, Any] = {"embedder": LexicalEmbedder()}
    with (
        tempfile.TemporaryDirectory(prefix="cvx-cluster-", ignore_cleanup_errors=True) as root,
        local_cluster(3) as nodes,
    ):
        folder = Path(root)
        print("three nodes are up; four write, one reads", flush=True)
        if given.kills:
            yield from _killed(folder / "kills", nodes, given.kills, options)
            yield _load()
        if given.table:
            # Before the move, which fills the machine: what a call costs is asked of a quiet one.
            yield from _costs(folder / "costs", given)
            yield _load()
            yield from _moved(folder / "moves", given.moved, options)
            yield _load()


def _load() -> Row:
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return "load of the machine by then, over 1, 5 and 15 minutes", load, ""


def _killed(folder: Path, nodes: Any, kills: int, options: dict[str, Any]) -> Iterator[Row]:
    import cvx.cluster
    from experiments.cluster.kills import kill_again_and_again

    with cvx.cluster.open(folder, shards=2, hosts=3, **options) as memory:
        told = kill_again_and_again(memory, nodes, kills)
    yield "nodes killed", str(told.kills), ""
    written = f"{told.acknowledged}, {len(told.lost)}, {len(told.twice)}"
    yield "acknowledged writes, lost, twice", written, "0, 0"
    yield "healed after, at most", f"{max(told.healed_s, default=0):.1f} s", "10 s"
    replaced = f"{max(told.replaced_s, default=0):.1f} s"
    yield "a host on the new node after, at most", replaced, ""
    read = f"{len(told.reads_s)}, {told.unanswered}, {told.partial}"
    yield "reads, without an answer, partial", read, "0 without"
    yield "slowest read (deadline 1 s)", f"{max(told.reads_s):.2f} s", "1 s"
    if told.lost or told.twice:
        raise SystemExit(_LOST)


def _moved(folder: Path, size: int, options: dict[str, Any]) -> Iterator[Row]:
    import cvx.cluster
    from experiments.cluster.moves import move_under_writers

    with cvx.cluster.open(folder, shards=2, hosts=3, patience_s=120.0, **options) as memory:
        moved = move_under_writers(memory, size, writers=4)
    yield (
        f"a namespace of {size} moved, writes lost, twice, refused",
        f"{moved.move_s:.1f} s, {len(moved.lost)}, {len(moved.twice)}, "
        f"{sum(moved.refused.values())} of {moved.acknowledged}",
        "0, 0",
    )
    taken = ", ".join(f"{1e3 * moved.quantile(q):.0f} ms" for q in (0.5, 0.99, 1.0))
    yield "writes meanwhile: p50, p99, longest", taken, "p99 200 ms"
    if moved.lost or moved.twice:
        raise SystemExit(_LOST)


def _costs(folder: Path, given: argparse.Namespace) -> Iterator[Row]:
    from experiments.cluster.costs import measure
    from experiments.cluster.simulation import simulate

    costs = measure(folder, given.events, given.calls)
    growth = costs.cpu_four / costs.cpu_one - 1
    slow = np.quantile(costs.recalls, 0.99)
    for name, seconds, bound in (
        (f"recall of {costs.events} a shard: p50, p99", (costs.recall, slow), "p50 15 ms"),
        ("the same by a memory in this process", (costs.alone,), ""),
        ("Ray's empty round trip to a host", (costs.round_trip,), ""),
        ("the same by a plain Ray actor that has a memory", (costs.bare,), ""),
        ("overhead of a call over that", (costs.overhead,), "2 ms"),
        ("over a recall in this process and an empty round trip", (costs.beyond,), ""),
        (
            "CPU of a recall, by the cluster and a plain Ray actor",
            (costs.cpu_one, costs.cpu_bare),
            "",
        ),
        ("write on two nodes, p50", (costs.add,), ""),
    ):
        yield name, ", ".join(f"{1e3 * one:.1f} ms" for one in seconds), bound
    grown = f"{1e3 * costs.cpu_one:.1f} ms, {1e3 * costs.cpu_four:.1f} ms ({growth:+.0%})"
    yield "CPU of a recall, one shard and four", grown, "+20%"
    for shards in (1, 4, 16, 64, 256, 1000):
        one = simulate(costs, shards)
        yield (
            f"simulated: {shards} shards, {one.memories:.0e} memories",
            f"CPU {1e3 * one.cpu:.1f} ms, p50 {1e3 * one.p50:.1f} ms, "
            f"p99 {1e3 * one.p99:.1f} ms, busiest host {one.busiest:.1f}x",
            "",
        )


if __name__ == "__main__":
    main()
