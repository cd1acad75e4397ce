"""Draws the learning curves of an experiment."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.harness.arms import ARMS, FOCUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "os^vDPX*<>"
# What stays below this share of games in the end is a control: beside it nothing can be told apart.
_CONTROLS = 0.65
_STORY = {FOCUS: "#1f5fa8", "wins": "#2f8f4e", "frozen": "#c0620e", "none": "#a32424"}
# The least distance of two names in the picture, in points of success.
_LINE = 5.5


def draw(path: Path, figures: Mapping[str, Any]) -> None:
    """Draw the learning curves that tell the story into a picture file."""
    figure = _canvas(9, 5.2)
    story(figure.subplots(), figures)
    figure.text(0.5, 0.99, figures["conditions"], ha="center", va="top", fontsize=7.5, wrap=True)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def draw_all(path: Path, figures: Mapping[str, Any]) -> None:
    """Draw success and steps of wins by round of every arm, and what memory holds."""
    figure = _canvas(12, 9.6)
    panels = figure.subplots(2, 2)
    drawn = (success, success_closer, steps, contamination)
    for axes, picture in zip(panels.flat, drawn, strict=True):
        picture(axes, figures)
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="lower center", ncols=4, frameon=False, fontsize=8.5)
    figure.text(0.5, 0.99, figures["conditions"], ha="center", va="top", fontsize=7.5, wrap=True)
    rows = -(-len(figures["arms"]) // 4)
    figure.tight_layout(rect=(0, 0.01 + 0.024 * rows, 1, 0.955))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def svg(picture: Callable[[Axes, Mapping[str, Any]], None], figures: Mapping[str, Any]) -> str:
    """Return a picture as an SVG element, the same for the same figures."""
    import matplotlib as mpl

    figure = _canvas(10, 4.6)
    axes = figure.subplots()
    picture(axes, figures)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.tight_layout()
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "cvx", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def story(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the few curves that tell what memory is worth, each named at its end."""
    ends = []
    for name, arm, style in _lines(figures):
        if name not in _STORY or not arm["rounds"]:
            continue
        at = [row["round"] for row in arm["rounds"]]
        rates = [100 * row["success"]["mean"] for row in arm["rounds"]]
        colour = _STORY[name]
        axes.plot(at, rates, **{**style, "color": colour})
        ends.append((rates[-1], at[-1], arm["title"], colour))
    # Names keep a line's distance, from the lowest curve up.
    below = -math.inf
    for rate, last, title, colour in sorted(ends):
        height = max(rate, below + _LINE)
        axes.text(last + 0.15, height, f"{title}, {rate:.0f}%", color=colour, va="center")
        below = height
    axes.set(ylim=(-2, 106), ylabel="games won, %")
    axes.margins(x=0.02)
    _by_round(axes, figures, "What memory is worth")
    left, right = axes.get_xlim()
    axes.set_xlim(left, right + 0.38 * (right - left))


def success(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the learning curves, with the intervals of the full loop."""
    for name, arm, style in _lines(figures):
        at = [row["round"] for row in arm["rounds"]]
        rates = [row["success"] for row in arm["rounds"]]
        axes.plot(at, [100 * r["mean"] for r in rates], label=f"{name}: {arm['title']}", **style)
        if name == FOCUS:
            low, high = ([100 * r[end] for r in rates] for end in ("low", "high"))
            axes.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.set(ylim=(-2, 102), ylabel="games won, %")
    _by_round(axes, figures, "Success")


def success_closer(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the learning curves above the controls, so far up that they can be told apart."""
    success(axes, figures)
    means = [
        row["success"]["mean"]
        for arm in figures["arms"].values()
        if arm["late"]["success"]["mean"] > _CONTROLS
        for row in arm["rounds"]
    ]
    axes.set_ylim(100 * min(means, default=0.0) - 3, 101)
    axes.set_title("Success, closer")


def steps(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the mean steps of games won."""
    for _, arm, style in _lines(figures):
        rows = [row for row in arm["rounds"] if row["steps_of_wins"] is not None]
        at = [row["round"] for row in rows]
        axes.plot(at, [row["steps_of_wins"] for row in rows], **style)
    axes.set(ylim=(0, None), ylabel="steps")
    _by_round(axes, figures, "Steps of a win")


def contamination(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the share of successes among what may advise (solid) and among all (dotted)."""
    for _, arm, style in _lines(figures):
        for kind, line in (("share_of_advice", "-"), ("share_of_all", ":")):
            rows = [row for row in arm["held"] if row[kind] is not None]
            at, shares = [row["round"] for row in rows], [100 * row[kind] for row in rows]
            axes.plot(at, shares, **{**style, "linestyle": line})
    axes.set(ylim=(0, 102), ylabel="successes in memory, %")
    _by_round(axes, figures, "Memory: that advise (solid), all (dotted)")


def by_task_type(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw late success by kind of task, the arms beside each other."""
    arms = list(_lines(figures))
    kinds = sorted({kind for _, arm, _ in arms for kind in arm["by_task_type"]})
    height = 0.8 / len(arms)
    for place, (name, arm, style) in enumerate(arms):
        found = [arm["by_task_type"].get(kind) for kind in kinds]
        at = [i + place * height for i, one in enumerate(found) if one is not None]
        rates = [100 * one["success"]["mean"] for one in found if one is not None]
        axes.barh(at, rates, height, color=style["color"], label=f"{name}: {arm['title']}")
    axes.set_yticks([i + 0.4 for i in range(len(kinds))], [_words(kind) for kind in kinds])
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="games won late, %", title="By kind of task")
    axes.spines[["top", "right"]].set_visible(False)


def gaps(axes: Axes, figures: Mapping[str, Any]) -> None:
    """Draw the full loop minus each other arm in the late rounds, with intervals.

    Controls that are far behind are left out.
    """
    rows = [
        (name, found["late"])
        for name, found in figures["differences"].items()
        if found["late"] and figures["arms"][name]["late"]["success"]["mean"] > _CONTROLS
    ]
    for place, (name, found) in enumerate(rows):
        mean, low, high = (100 * found[key] for key in ("mean", "low", "high"))
        error = [[max(0.0, mean - low)], [max(0.0, high - mean)]]
        axes.errorbar(mean, place, xerr=error, fmt="o", capsize=3, color=_colour(name))
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.axvline(0, color="#444", linewidth=0.8)
    axes.grid(alpha=0.25, axis="x")
    axes.set(xlabel=f"points that {FOCUS} is ahead, late", title=f"{FOCUS} minus others")
    axes.spines[["top", "right"]].set_visible(False)


def _canvas(width: float, height: float) -> Figure:
    # Without pyplot there is no backend to choose, and no window or global state.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _lines(figures: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    found = []
    for place, (name, arm) in enumerate(figures["arms"].items()):
        focus = name == FOCUS
        style = {
            "color": _colour(name),
            "marker": _MARKERS[place % len(_MARKERS)],
            "markersize": 4,
            "linewidth": 2.8 if focus else 1.3,
            "zorder": 3 if focus else 2,
        }
        found.append((name, arm, style))
    return found


def _colour(name: str) -> Any:
    import matplotlib as mpl

    return mpl.colormaps["tab20"](list(ARMS).index(name) % 20)


def _by_round(axes: Axes, figures: Mapping[str, Any], title: str) -> None:
    setup = figures["setup"]
    unit = "rounds of own experience before"
    axes.set(title=title, xlabel=unit)
    axes.set_xticks(range(setup["rounds"] + bool(setup["measured"])))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _words(kind: str) -> str:
    return kind.replace("_", " ")
