"""``python -m experiments.cluster``: a local cluster loses nodes and nothing else; the table."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cvx.errors import MissingExtraError


def main() -> None:
    """Start a cluster on this machine, kill nodes, and print what came of it and what it costs."""
    asked = argparse.ArgumentParser(prog="python -m experiments.cluster", description=__doc__)
    asked.add_argument("--kills", type=int, default=2, help="nodes that die (50 every night)")
    asked.add_argument("--table", action="store_true", help="measure costs too, and simulate")
    asked.add_argument("--events", type=int, default=5_000, help="in each shard, for the table")
    asked.add_argument("--moved", type=int, default=10_000, help="memories that move (100000)")
    asked.add_argument("--calls", type=int, default=300, help="of each kind, for the table")
    asked.add_argument("--out", type=Path, default=Path("runs/cluster.json"))
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    try:
        import cvx.cluster
    except MissingExtraError as error:
        raise SystemExit(str(error)) from error
    from cvx.embed import LexicalEmbedder
    from experiments.cluster.costs import measure
    from experiments.cluster.kills import kill_again_and_again
    from experiments.cluster.local import local_cluster
    from experiments.cluster.moves import move_under_writers
    from experiments.cluster.simulation import simulate

    rows: list[tuple[str, str, str]] = []
    folder = Path(tempfile.mkdtemp(prefix="cvx-cluster-"))
    options: dict[str, Any] = {"embedder": LexicalEmbedder()}
    with local_cluster(3) as nodes:
        print("three nodes are up; four write, one reads")
        with cvx.cluster.open(folder / "kills", shards=2, hosts=3, **options) as memory:
            told = kill_again_and_again(memory, nodes, given.kills)
        rows += [
            ("nodes killed", str(told.kills), ""),
            (
                "acknowledged writes, lost, twice",
                f"{told.acknowledged}, {len(told.lost)}, {len(told.twice)}",
                "0, 0",
            ),
            ("healed after, at most", f"{max(told.healed_s, default=0):.1f} s", "10 s"),
            (
                "a host on the new node after, at most",
                f"{max(told.replaced_s, default=0):.1f} s",
                "",
            ),
            (
                "reads, without an answer, partial",
                f"{len(told.reads_s)}, {told.unanswered}, {told.partial}",
                "0 without",
            ),
            ("slowest read (deadline 1 s)", f"{max(told.reads_s):.2f} s", "1 s"),
        ]
        if given.table:
            with cvx.cluster.open(
                folder / "moves", shards=2, hosts=3, patience_s=120.0, **options
            ) as memory:
                moved = move_under_writers(memory, given.moved, writers=4)
            rows += [
                (
                    f"a namespace of {given.moved} moved, writes lost, twice, refused",
                    f"{moved.move_s:.1f} s, {len(moved.lost)}, {len(moved.twice)}, "
                    f"{sum(moved.refused.values())}",
                    "0, 0",
                ),
                (
                    "writes meanwhile: p50, p99, longest",
                    ", ".join(f"{1e3 * moved.quantile(q):.0f} ms" for q in (0.5, 0.99, 1.0)),
                    "p99 200 ms",
                ),
            ]
            costs = measure(folder / "costs", given.events, given.calls)
            growth = costs.cpu_four / costs.cpu_one - 1
            rows += [
                (
                    f"recall of {costs.events} a shard: p50, p99",
                    f"{1e3 * costs.recall:.1f} ms, {1e3 * np.quantile(costs.recalls, 0.99):.1f} ms",
                    "p50 15 ms",
                ),
                ("the same by a memory in this process", f"{1e3 * costs.alone:.1f} ms", ""),
                ("Ray's empty round trip to a host", f"{1e3 * costs.round_trip:.1f} ms", ""),
                (
                    "the same by a plain Ray actor that has a memory",
                    f"{1e3 * costs.bare:.1f} ms",
                    "",
                ),
                ("overhead of a call over that", f"{1e3 * costs.overhead:.1f} ms", "2 ms"),
                (
                    "over a recall in this process and Ray's empty round trip",
                    f"{1e3 * costs.beyond:.1f} ms",
                    "",
                ),
                (
                    "CPU of a recall, by the cluster and by a plain Ray actor",
                    f"{1e3 * costs.cpu_one:.1f} ms, {1e3 * costs.cpu_bare:.1f} ms",
                    "",
                ),
                ("write on two nodes, p50", f"{1e3 * costs.add:.1f} ms", ""),
                (
                    "CPU of a recall, one shard and four",
                    f"{1e3 * costs.cpu_one:.1f} ms, {1e3 * costs.cpu_four:.1f} ms ({growth:+.0%})",
                    "+20%",
                ),
            ]
            for shards in (1, 4, 16, 64, 256, 1000):
                one = simulate(costs, shards)
                rows.append(
                    (
                        f"simulated: {shards} shards, {one.memories:.0e} memories",
                        f"CPU {1e3 * one.cpu:.1f} ms, p50 {1e3 * one.p50:.1f} ms, "
                        f"p99 {1e3 * one.p99:.1f} ms, busiest host {one.busiest:.1f}x",
                        "",
                    )
                )
    width = max(len(name) for name, *_ in rows)
    for name, value, bound in rows:
        print(f"{name:{width}}  {value}{f'   (at most {bound})' if bound else ''}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(
        json.dumps(
            [dict(zip(("what", "value", "bound"), row, strict=True)) for row in rows], indent=1
        )
    )
    if told.lost or told.twice:
        raise SystemExit("something that was acknowledged is lost, or there twice")
    print("nothing that was acknowledged is lost")
    print("load of the machine over 1, 5 and 15 minutes:", *os.getloadavg())


if __name__ == "__main__":
    main()
