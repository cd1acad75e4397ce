"""Cost of one insert and one search as an index grows; they should grow like log n.

    python -m benches.growth [--most 1280000] [--out runs/bench/growth.json]

The rows are made as those of the comparison with the peers, mixed from the real ones of CVX_DATA.
An index grows by doublings from 10,000 (`benches/million.py` prints the same curve to a million);
the last thousand nodes of each size are inserted one by one and timed, on one thread. If inserts
grow like log n, the last column stays level, and the fitted exponent of log n is 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


from benches.figures import RUNS, leave
from benches.growing_index import EF, HEADER, Mixture, exponent, grown, show
from benches.peers.data import K, real
from benches.peers.targets import Line
from cvx.index import RawIndex

FIRST = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=160_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RUNS / "bench" / "growth.json")
    args = parser.parse_args()

    base, queries = real()
    sizes = [FIRST * 2**step for step in range(30) if FIRST * 2**step <= args.most]
    mixture = Mixture(base, sizes[-1])
    index = RawIndex(base.shape[1], exact_below=0)
    print(f"dim={base.shape[1]} M=16 efC=200 ef={EF} k={K}, CPU us on one thread")
    print("".join(f"{name:>16}" for name in HEADER))
    table = []
    for upto in sizes:
        table.append(grown(index, mixture, queries[: args.queries], upto))
        show(table[-1])
    fitted = exponent(table)
    measure = f"one insert, {sizes[0]:,} to {sizes[-1]:,}: p of (log n)^p"
    line = Line(measure, fitted, 1, 1, "", at_most=True)
    print(line)
    title, command = "Index: one insert as it grows", "python -m benches.growth"
    leave(args.out, title, command, [line.figure()], exponent_of_log=round(fitted, 3), sizes=table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
