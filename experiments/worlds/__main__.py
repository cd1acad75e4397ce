"""Play the small text worlds and print a table: ``python -m experiments.worlds [--quick]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from cvx.embed import LocalEmbedder
from experiments.worlds.arms import ARMS
from experiments.worlds.course import ALL, figures, play
from experiments.worlds.learners import VECTORS

_FIRST_SEED = 0
_TABLES = {
    "agents": "Advice: regret in small text worlds",
    "parts": "Advice: small text worlds, the learner without a part",
    "routes": "Advice: small text worlds, with RFC-013's parts as routes",
}
_QUICK = ("cvx", "random", "copy wins", "table")
_QUICK_WORLDS = "shelf,chain,errands,tea"


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.worlds",
        description="Total regret of agents in small text worlds with a known optimum. The seeds "
        "0 to 9 were set aside; docs/experiment.md says what changed after seeing them. --quick "
        "takes under a minute; of the tables agents and parts take half an hour, routes "
        "more than half an hour, on one free core.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="the memory and three baselines, two seeds")
    add("--worlds", help=f"default all: {', '.join(ALL)}; with --quick {_QUICK_WORLDS}")
    add("--table", choices=_TABLES, default="agents", help="which arms play")
    add("--arms", help=f"in their place, beside the learner: {', '.join(ARMS)}")
    add("--seeds", type=int, help="default 10; with --quick 2")
    add("--first-seed", type=int, default=_FIRST_SEED, help="the others count up from it")
    add("--embedder", help="the folder of a local model, in the place of the lexical default")
    add("--json", type=Path, help="where the figures go, default runs/worlds-TABLE.json")
    given = parser.parse_args(argv)
    named = [arm for arm in ARMS if arm == "learner" or ARMS[arm].table == given.table]
    arms = given.arms.split(",") if given.arms else list(_QUICK if given.quick else named)
    worlds = (given.worlds or (_QUICK_WORLDS if given.quick else ",".join(ALL))).split(",")
    for name, known in [(arm, ARMS) for arm in arms] + [(world, ALL) for world in worlds]:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(known)}")
    if given.embedder:
        VECTORS.embedder = LocalEmbedder(Path(given.embedder))
    seeds = given.seeds or (2 if given.quick else 10)
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    print(_HEAD)
    played = []
    for world in worlds:
        for arm in arms:
            played += [play(world, arm, given.first_seed + at) for at in range(seeds)]
        rows = figures(played)
        for row in rows:
            if row["world"] == world:
                print(line(row), flush=True)
    print(f"{seeds} seeds from {given.first_seed}; {time.perf_counter() - start:.0f} s")
    print("late: share of the optimum in the last third. more: regret above the learner's with all")
    print("parts, paired by seed, 95%, p by Holm over the rows above and including its world.")
    for arm in arms:
        print(f"  {arm}: {ARMS[arm].title}")
    path = given.json or (None if given.quick else Path("runs") / f"worlds-{given.table}.json")
    if path is not None:
        told = {
            "title": f"{_TABLES[given.table]}, {seeds} seeds"
            + (", a local model" if given.embedder else ""),
            "command": f"python -m experiments.worlds --table {given.table}",
            "figures": [
                {"what": f"{row['world']}: {ARMS[row['arm']].title}", "value": told_of(row)}
                for row in rows
            ],
            "rows": rows,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        print(path)
    return 0


_HEAD = (
    f"{'world':<17}{'arm':<20}{'regret':>7}{'sd':>6}{'after':>7}{'late':>6}{'calib':>7}"
    f"{'skill':>7}{'ms/ep':>7}  more [95%] p"
)


def told_of(row: dict[str, Any]) -> str:
    """Return a row as the page of figures tells it."""
    parts = [f"{row['regret']:.1f}"]
    parts += [f"{row['after']:.1f} after the change"] if "after" in row else []
    parts.append(f"{100 * row['late']:.0f}% of the best late")
    for name in ("calibration", "skill"):
        parts += [f"{name} {row[name]:.3f}"] if row[name] == row[name] else []
    if "more" in row:
        ends = f"[{row['low']:+.1f}, {row['high']:+.1f}]"
        parts.append(f"{row['more']:+.1f} {ends} against the learner, p {row['p']:.4f}")
    return ", ".join(parts)


def line(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    after = f"{row['after']:7.1f}" if "after" in row else " " * 7
    told = f"{row['calibration']:7.3f}{row['skill']:7.2f}".replace("nan", "  -")
    more = ""
    if "more" in row:
        more = f"  {row['more']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}] {row['p']:.4f}"
    return (
        f"{row['world']:<17}{row['arm']:<20}{row['regret']:7.1f}{row['spread']:6.1f}{after}"
        f"{row['late']:6.2f}{told}{row['ms']:7.1f}{more}"
    )


if __name__ == "__main__":
    sys.exit(main())
