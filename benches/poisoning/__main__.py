"""Poisoning attacks on recall and on advice: how far planted memories get.

    python -m benches.poisoning [--all] [--only talks worlds] [--out runs/bench/poisoning.json]

1,000 honest memories and 10 hostile ones, through `Memory` with its defaults. The attacks are
written anew after the papers named in `benches.poisoning.talks`. The defences were written on the
development set (texts, conversations, worlds, seed); what counts is the held-out one, which has
others. Needs CVX_DATA for the conversations.

The short form takes the held-out set, the main attacks, a label of their own and one seed of the
worlds. ``--all`` takes every set, attack and label, and each
defence alone, which takes hours.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent.parent

from benches.figures import Figure, leave
from benches.poisoning import talks, worlds
from benches.poisoning.texts import DEVELOPMENT, HELD_OUT, SEEN
from cvx.errors import LexicalOnlyWarning
from cvx.store.prompt_injection import reads_like_an_order

SETS = {
    "development": (DEVELOPMENT, ("conv-26", "conv-30", "conv-41"), (1,)),
    "seen": (SEEN, ("conv-42", "conv-43"), (11, 12, 13)),
    "held-out": (HELD_OUT, ("conv-42", "conv-43"), (51, 52, 53)),
}
DEFENCES = ("echoes", "crowds", "orders", "hubs", "copies", "shares")


def of_talks(data: Path, name: str, embedder: Any, *, whole: bool) -> dict[str, Any]:
    """Measure attacks with the defences and without: all under every label, or the main ones."""
    kit, conversations, seeds = SETS[name]
    told = talks.talk(data, conversations)
    marked = [reads_like_an_order(order) for order in kit.orders]
    false = [reads_like_an_order(turn["text"]) for turn in told.turns]
    print(f"\n== {name}: {len(told.turns)} turns, {len(told.asked)} questions, seeds {seeds}")
    print(f"orders marked {sum(marked)} of {len(marked)}, honest turns marked {sum(false)}")
    report: dict[str, Any] = {"orders": [sum(marked), len(marked)], "false": sum(false)}
    for label in talks.LABELS if whole else ("own",):
        good, bad = talks.LABELS[label]
        memory, ids = talks.remembered(told, good, embedder)
        plans = {way: talks.plain(memory, way) for way in [("all",), ()]}
        honest = [talks.evidence(memory, told, ids, plan) for plan in plans.values()]
        report[label] = {"honest": honest}
        print(
            f"\nlabel of the hostile: {label}. Honest evidence among the first 5 / 10: "
            + ", with the defences ".join(f"{100 * a:.1f} / {100 * b:.1f}" for a, b in honest)
        )
        print(f"{'':<26}{'of the attacked cues, %':^34}{'of all cues, %':>16}")
        print(f"{'':<26}{'first, without':>16}{'with':>6}{'of 5':>7}{'with':>6}{'with':>16}")
        for attack in talks.ATTACKS if whole else talks.QUICK:
            runs = [
                talks.attacked(memory, told, kit, attack, bad, seed, [*plans.values()])
                for seed in seeds
            ]
            found = [talks.mean_of(each) for each in zip(*runs, strict=True)]
            report[label][attack] = found
            print(
                f"{attack:<26}{100 * found[0].first:>16.1f}{100 * found[1].first:>6.1f}"
                f"{100 * found[0].five:>7.1f}{100 * found[1].five:>6.1f}"
                f"{100 * found[1].of_all:>16.1f}",
                flush=True,
            )
    return report


def taken_out(data: Path, name: str, embedder: Any) -> dict[str, Any]:
    """Measure what each defence alone is worth: everything at work but one of them."""
    kit, conversations, seeds = SETS[name]
    told = talks.talk(data, conversations)
    chosen = ("PoisonedRAG", "question and order", "generic texts", "word lists, vectors")
    report = {}
    print(f"\n== {name}, one defence taken out; hostile own label. First, of the attacked cues, %")
    print(f"{'':<12}" + "".join(f"{attack:>22}" for attack in chosen) + f"{'honest @5':>12}")
    good, bad = talks.LABELS["own"]
    memory, ids = talks.remembered(told, good, embedder)
    for without in ("", *DEFENCES, "all"):
        plan = talks.plain(memory, (without,) if without else ())
        row = [
            talks.attacked(memory, told, kit, attack, bad, seeds[0], [plan])[0] for attack in chosen
        ]
        honest = talks.evidence(memory, told, ids, plan)[0]
        report[without or "none"] = [*row, honest]
        print(
            f"{without or 'none':<12}"
            + "".join(f"{100 * one.first:>14.1f} ({100 * one.five:>4.1f})" for one in row)
            + f"{100 * honest:>12.1f}",
            flush=True,
        )
    return report


def told(report: dict[str, Any]) -> list[Figure]:
    """Return what docs/figures.md says of the held-out part."""
    figures = []
    found = report.get("talks", {}).get("held-out", {})
    for label in [one for one in talks.LABELS if one in found]:
        before, after = (100 * one[0] for one in found[label]["honest"])
        figures.append(
            Figure(
                f"Poisoning, label {label}: honest evidence @5 without and with defences, %",
                f"{before:.1f} / {after:.1f}",
                "at most .5 lower",
                after >= before - 0.5,
            )
        )
        for attack, (off, on) in found[label].items():
            if attack == "honest":
                continue
            figures.append(
                Figure(
                    f"Poisoning, label {label}, {attack}: hostile first of the attacked cues, %, "
                    "without and with defences; of all cues",
                    f"{100 * off.first:.1f} / {100 * on.first:.1f}; {100 * on.of_all:.1f}",
                    "5.0 of the attacked cues",
                    on.first <= 0.05,
                )
            )
    return [*figures, *worlds.told(report.get("worlds", {}))]


def main() -> int:
    """Print the tables and leave the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=("talks", "worlds"))
    parser.add_argument("--all", action="store_true", help="every set, attack and label: hours")
    parser.add_argument("--minilm", action="store_true", help="with MiniLM instead of the default")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bench" / "poisoning.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", LexicalOnlyWarning)
    report: dict[str, Any] = {}
    sets = [*SETS] if args.all else ["held-out"]
    data = os.environ.get("CVX_DATA")
    if not args.only or "talks" in args.only:
        if not data or not Path(data).is_dir():
            print("left out: CVX_DATA names no folder with the shared conversations")
        else:
            embedder = None
            if args.minilm:
                from benches.recalling.minilm import minilm

                embedder = minilm()
            report["talks"] = {
                name: of_talks(Path(data), name, embedder, whole=args.all) for name in sets
            }
            if args.all:
                report["taken out"] = {name: taken_out(Path(data), name, embedder) for name in sets}
    if not args.only or "worlds" in args.only:
        report["worlds"] = {name: worlds.measured(name, whole=args.all) for name in sets}
    command = "python -m benches.poisoning" + " --all" * args.all
    leave(args.out, "Poisoning", command, told(report), **report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
