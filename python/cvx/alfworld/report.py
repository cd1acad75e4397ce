"""What an experiment is shown as: a table, a JSON file and a picture."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvx.alfworld.course import Played
from cvx.alfworld.material import Setup, describe
from cvx.alfworld.statistics import Difference, Interval, paired_difference, wilson
from cvx.textgames.arms import ARMS

if TYPE_CHECKING:
    from rich.console import Group

FOCUS = "full"
_COLOURS = ("#1b6ca8", "#d95f02", "#7a7a7a", "#1b9e77", "#b8860b", "#8e6bbf", "#bbbbbb")


def summary(setup: Setup, games: Sequence[Played]) -> dict[str, Any]:
    """Return all figures of an experiment as plain values.

    Returns
    -------
    dict
        ``arms``: for each the success of each round and of all with Wilson's interval, mean
        steps, mean steps of won games, milliseconds a decision, success by kind of task.
        ``differences``: the full loop minus each other arm over all rounds and over the last one,
        paired by game and seed, with intervals clustered by game.
    """
    arms = {}
    for name in setup.arms:
        own = [g for g in games if g.arm == name]
        if own:
            arms[name] = {
                "title": ARMS[name].title,
                "rounds": [
                    _figures([g for g in own if g.round == number])
                    for number in range(setup.rounds)
                ],
                "all": _figures(own),
                "by_task_type": {
                    kind: _figures([g for g in own if g.task_type == kind])
                    for kind in sorted({g.task_type for g in own})
                },
            }
    differences = {
        name: {
            "success": _difference(games, name, lambda g: float(g.won)),
            "success_last_round": _difference(
                [g for g in games if g.round == setup.rounds - 1], name, lambda g: float(g.won)
            ),
            "steps": _difference(games, name, lambda g: float(g.steps)),
        }
        for name in arms
        if name != FOCUS and FOCUS in arms
    }
    return {"setup": describe(setup), "arms": arms, "differences": differences}


def _figures(games: Sequence[Played]) -> dict[str, Any]:
    wins = [g for g in games if g.won]
    decisions = sum(g.decisions for g in games)
    return {
        "games": len(games),
        "success": wilson(len(wins), len(games)),
        "steps": sum(g.steps for g in games) / max(len(games), 1),
        "steps_of_wins": sum(g.steps for g in wins) / len(wins) if wins else None,
        "ms_per_decision": 1000 * sum(g.seconds for g in games) / decisions if decisions else None,
    }


def _difference(games: Sequence[Played], other: str, value: Any) -> Difference | None:
    first = {(g.seed, g.place): g for g in games if g.arm == FOCUS}
    second = {(g.seed, g.place): g for g in games if g.arm == other}
    pairs = [(first[key], second[key]) for key in first if key in second]
    if not pairs:
        return None
    return paired_difference(
        [value(a) for a, _ in pairs], [value(b) for _, b in pairs], [a.game for a, _ in pairs]
    )


def conditions(setup: Setup) -> str:
    """Say in words what was played, as it has to stand beside the figures."""
    if setup.games is None:
        games = f"{setup.rounds * setup.games_per_round} ALFWorld-generated games a seed"
    else:
        games = f"{setup.rounds * setup.games_per_round} real ALFWorld games (valid_seen) a seed"
    agent = f"language model {setup.model}" if setup.llm else "agent without a language model"
    return (
        f"{games}, {setup.seeds} seeds, each game once and new to the arm; "
        f"6 winning demonstrations (one a task type, alfworld's handcoded expert, other games); "
        f"{setup.max_steps} steps; {agent}; memory learns from game to game"
    )


def render(setup: Setup, figures: Mapping[str, Any]) -> Group:
    """Return the tables for a terminal of 80 columns or more."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    arms = figures["arms"]
    last = setup.rounds - 1
    numbers = range(setup.rounds) if setup.rounds <= 3 else (0, last // 2, last)
    table = Table(
        title="Games won, %, with 95% intervals (Wilson)",
        box=box.SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("arm", no_wrap=True)
    for title in (*(f"round {n + 1}" for n in numbers), "all", "steps", "of won", "ms"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, arm in arms.items():
        whole = arm["all"]
        table.add_row(
            name,
            *(_rate(arm["rounds"][n]["success"]) for n in numbers),
            _rate(whole["success"]),
            _number(whole["steps"]),
            _number(whole["steps_of_wins"]),
            _number(whole["ms_per_decision"]),
        )
    legend = "; ".join(f"{name}: {arm['title']}" for name, arm in arms.items())
    parts: list[Table | Text] = [
        table,
        Text(f"{conditions(setup)}. steps: lost games included; ms: of memory, a decision."),
        Text(legend),
    ]
    if figures["differences"]:
        paired = Table(
            title=f"\n{FOCUS} minus each other arm, paired by game (95% bootstrap over games)",
            box=box.SIMPLE,
            pad_edge=False,
            collapse_padding=True,
        )
        paired.add_column("arm", no_wrap=True)
        for title in ("points", "p", f"round {last + 1}", "steps"):
            paired.add_column(title, justify="right", no_wrap=True)
        for name, found in figures["differences"].items():
            whole, late, steps = found["success"], found["success_last_round"], found["steps"]
            paired.add_row(
                name,
                _points(whole),
                "-" if whole is None else f"{whole.p:.3f}",
                _points(late),
                "-" if steps is None else f"{steps.mean:+.1f} [{steps.low:.0f}, {steps.high:.0f}]",
            )
        parts.append(paired)
    return Group(*parts)


def _rate(rate: Interval) -> str:
    return f"{100 * rate.mean:.0f} [{100 * rate.low:.0f}-{100 * rate.high:.0f}]"


def _points(d: Difference | None) -> str:
    return "-" if d is None else f"{100 * d.mean:+.1f} [{100 * d.low:.1f}, {100 * d.high:.1f}]"


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def write_json(
    path: Path, setup: Setup, figures: Mapping[str, Any], games: Sequence[Played], seconds: float
) -> None:
    """Write the figures and every game to a file."""
    from importlib.metadata import version

    def plain(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return {k: None if v != v else v for k, v in value._asdict().items()}
        if isinstance(value, Mapping):
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, list) else value

    ordered = sorted(games, key=lambda g: (g.seed, setup.arms.index(g.arm), g.place))
    content = {
        "conditions": conditions(setup),
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("textworld", "alfworld", "numpy")},
        **plain(figures),
        "games": [asdict(game) for game in ordered],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def draw(path: Path, setup: Setup, figures: Mapping[str, Any]) -> None:
    """Draw success and steps by round, one line an arm."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rounds = range(1, setup.rounds + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), width_ratios=(3, 2))
    for colour, (name, arm) in zip(_COLOURS, figures["arms"].items(), strict=False):
        rates = [one["success"] for one in arm["rounds"]]
        focus = name == FOCUS
        style = {
            "color": colour,
            "marker": "o",
            "linewidth": 3 if focus else 1.6,
            "zorder": 3 if focus else 2,
        }
        left.plot(rounds, [100 * r.mean for r in rates], label=f"{name}: {arm['title']}", **style)
        left.fill_between(
            rounds,
            [100 * r.low for r in rates],
            [100 * r.high for r in rates],
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
        right.plot(rounds, [one["steps"] for one in arm["rounds"]], **style)
    left.set(
        ylim=(-2, 102), xlabel="round", ylabel="games won, %", title="Success (bands: 95%, Wilson)"
    )
    right.set(
        ylim=(0, setup.max_steps + 1), xlabel="round", title="Steps a game, lost ones included"
    )
    for axes in (left, right):
        axes.set_xticks(list(rounds))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False)
    figure.text(0.5, 0.985, conditions(setup), ha="center", va="top", fontsize=7.5, wrap=True)
    figure.tight_layout(rect=(0, 0.14, 1, 0.95))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
