"""Reports of an experiment: tables for a terminal, and a JSON file."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.harness.arms import FOCUS
from experiments.harness.figures import scored
from experiments.harness.play_arm import Played

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

NOTES = {
    "measured": "after n rounds of own experience, memory not learning",
    "learning": "of n rounds, memory learning along the way",
    "interval": "95%: Wilson over distinct games, however many seeds played them",
    "paired": "paired by seed and game; 95%: the wider of bootstrap over seeds and games and "
    "t over seeds; p corrected (Holm)",
}
"""What stands beside the tables, in words."""


def render(figures: Mapping[str, Any]) -> Group:
    """Return the tables for a terminal of 80 columns or more."""
    from rich.console import Group
    from rich.text import Text

    measures = bool(figures["setup"]["measured"])
    parts: list[Table | Text] = [
        _success(figures, measures),
        Text(
            f"{figures['conditions']}. rounds: {NOTES['measured' if measures else 'learning']}. "
            f"intervals: {NOTES['interval']}. area: under the curve. score: late, in "
            "per cent, where a game can be won in part. steps: of won games, first "
            "and last rounds. held: successes in memory as the last round begins, % of what may "
            "advise / of all. ms: of memory, a decision."
        ),
        Text("; ".join(f"{name}: {arm['title']}" for name, arm in figures["arms"].items())),
    ]
    if figures["differences"]:
        parts.append(_paired(figures))
    return Group(*parts)


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title, box=box.SIMPLE, pad_edge=False, collapse_padding=True)


def _success(figures: Mapping[str, Any], measures: bool) -> Table:
    points = figures["setup"]["measured_after"]
    shown = points if len(points) <= 4 else [points[0], points[len(points) // 2], points[-1]]
    table = _table("Games won, %")
    table.add_column("arm", no_wrap=True)
    heads = [f"after {n}" if measures else f"round {n + 1}" for n in shown]
    score = ["score"] if scored(figures) else []
    for title in (*heads, "area", *score, "steps", "held", "ms"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, arm in figures["arms"].items():
        rows = {row["round"]: row for row in arm["rounds"]}
        steps = [_number(arm[when]["steps_of_wins"]) for when in ("early", "late")]
        table.add_row(
            name,
            *(rate(rows[n]["success"]) for n in shown),
            _number(None if arm["area"] is None else 100 * arm["area"]),
            *(_number(100 * arm["late"][kind]) for kind in score),
            " > ".join(steps),
            held(arm["held"]),
            _number(arm["all"]["ms_per_decision"]),
        )
    return table


def _paired(figures: Mapping[str, Any]) -> Table:
    table = _table(f"\n{FOCUS} minus each other arm, points ({NOTES['paired']})")
    late = ", ".join(str(n if figures["setup"]["measured"] else n + 1) for n in figures["late"])
    table.add_column("arm", no_wrap=True)
    for title in (f"late ({late})", "p", "area", "p", "steps (late)"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, found in figures["differences"].items():
        steps = found["steps"]
        table.add_row(
            name,
            *(text for kind in ("late", "area") for text in (points(found[kind]), p(found[kind]))),
            "-" if steps is None else f"{steps['mean']:+.1f}",
        )
    return table


def rate(success: Mapping[str, float] | None) -> str:
    """Return a rate with its interval, in per cent."""
    if success is None:
        return "-"
    low, high = (100 * success[end] for end in ("low", "high"))
    return f"{100 * success['mean']:.1f} [{low:.0f}-{high:.0f}]"


def points(found: Mapping[str, float] | None) -> str:
    """Return a difference of rates with its interval, in points."""
    if found is None:
        return "-"
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"


def p(found: Mapping[str, float] | None) -> str:
    """Return a corrected p-value."""
    if found is None:
        return "-"
    value = found["p_corrected"]
    return "<.001" if value < 0.001 else f"{value:.3f}"[1:] if value < 0.9995 else "1"


def held(rows: Sequence[Mapping[str, float | None]]) -> str:
    """Return the shares of successes among what may advise, and among all, at the end."""
    last = rows[-1] if rows else {}
    shares = [last.get(key) for key in ("share_of_advice", "share_of_all")]
    return "/".join("-" if share is None else f"{100 * share:.0f}" for share in shares)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def write_json(
    path: Path, figures: Mapping[str, Any], games: Sequence[Played], seconds: float, command: str
) -> None:
    """Write the figures and every game to a file, with what docs/figures.md says of them."""
    from importlib.metadata import version

    arms = list(figures["arms"])
    ordered = sorted(games, key=lambda g: (g.seed, arms.index(g.arm), g.place))
    rows = [
        {
            "what": arm["title"],
            "value": f"{rate(arm['early']['success'])} > {rate(arm['late']['success'])}",
            "bound": "",
            "met": None,
        }
        for arm in figures["arms"].values()
    ]
    content = {
        "title": f"Games won before > after, %: {figures['conditions']}",
        "command": command,
        "figures": rows,
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "scipy", "statsmodels")},
        **figures,
        "games": [asdict(game) for game in ordered],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
