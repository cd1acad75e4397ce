"""Plots of what a memory holds and has learned: the pictures of ``cvx inspect`` in matplotlib.

Each draws into ``axes``, or into axes of a figure of its own, and returns them;
``axes.figure.savefig(path)`` writes a file. Lines and marks are named where they are; no picture
needs a legend.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cvx.arguments import checked, whole
from cvx.causal.narrative import draw_story
from cvx.escaping import one_line
from cvx.extras import needs
from cvx.inspect import PageData
from cvx.scoring import Calibration
from cvx.types import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvx.learn.region_mdp import RegionMDP
    from cvx.memory import Memory
    from cvx.types import AnEvent, Hit

Place = tuple[float, float]

_COLOURS = {"won": "#2b7a49", "lost": "#b3261e", "other": "#7a8494"}
_LINES = ("#1f5fa8", "#b5560b", "#2b7a49", "#a32a6e", "#6a4fb3", "#7a6400", "#566070")
_ENDS = {"success": (1.25, 0.8), "failure": (1.25, -0.8)}


@checked(most=whole(1))
def plot_regions(
    mdp: RegionMDP,
    axes: Axes | None = None,
    *,
    task_type: str | None = None,
    most: int = 15,
) -> Axes:
    """Draw the regions of a model as discs, and the moves between them as arrows.

    From left to right lies when in an episode a region is passed; a disc is as large as it is
    often visited, its colour is the chance of success there, and its label is the hub's node with
    the best kind of action. An arrow is as thick as its move is frequent.

    Parameters
    ----------
    mdp : RegionMDP
        What was learned.
    axes : matplotlib.axes.Axes, optional
        Where to draw.
    task_type : str, optional
        Only this family of goals.
    most : int, default 15
        How many regions at most, those visited most often; the picture says how many are left out.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed (extra ``plot``).
    InvalidInputError
        ``most`` below 1.
    """
    axes = _axes(axes, (9.0, 5.0))
    from matplotlib.cm import ScalarMappable

    frames = mdp.frames(task_type)
    visited = frames.regions.sort("moves", "region", descending=[True, False])
    shown = list(visited.head(most).iter_rows(named=True))
    places = _laid_out(shown)
    axes.axis("off")
    axes.set(xlim=(-0.15, 1.45), ylim=(-1.15, 1.15))
    colours = ScalarMappable(cmap="RdYlGn")
    colours.set_clim(0.0, 1.0)
    flows: dict[tuple[Place, Place], int] = {}
    for row in frames.moves.iter_rows(named=True):
        start = places.get(row["region"])
        stop = places.get(row["to"]) if row["end"] is None else _ENDS.get(row["end"])
        if start is not None and stop is not None and start != stop:
            flows[(start, stop)] = flows.get((start, stop), 0) + row["count"]
    _draw_flows(axes, flows)
    for row in shown:
        x, y = places[row["region"]]
        share = math.sqrt(row["moves"] / shown[0]["moves"])
        colour = colours.to_rgba(row["quality"])
        axes.scatter([x], [y], s=150 + 900 * share, color=[colour], edgecolors="0.3", zorder=2)
        ranking = mdp.best_action(row["region"], task_type)
        axes.text(x, y, f"{row['region']}\n{ranking[0][0]}", fontsize=7, ha="center", va="center")
    for name, (x, y) in _ENDS.items():
        axes.text(x, y, name, ha="left", va="center", fontweight="bold")
    left_out = len(visited) - len(shown)
    note = "nothing was learned yet" if not shown else ""
    note = f"{left_out} regions visited less often are left out" if left_out else note
    axes.text(0.0, 0.0, note, transform=axes.transAxes, fontsize=8, color="0.4")
    axes.figure.colorbar(colours, ax=axes, label="chance of success", shrink=0.6)
    return axes


def _laid_out(rows: list[dict[str, Any]]) -> dict[int, Place]:
    """From left to right by when they are passed; up and down so that neighbours stay apart."""
    ordered = sorted(rows, key=lambda row: (row["when"], row["region"]))
    lanes = min(5, len(ordered))
    # In steps of two lanes: regions that are passed one after the other do not lie side by side.
    return {
        row["region"]: (row["when"], 0.9 * (1.0 - 2.0 * (2 * at % lanes) / max(lanes - 1, 1)))
        for at, row in enumerate(ordered)
    }


def _draw_flows(axes: Axes, flows: dict[tuple[Place, Place], int]) -> None:
    busiest = max(flows.values(), default=1)
    for (start, stop), count in sorted(flows.items()):
        axes.annotate(
            "",
            xy=stop,
            xytext=start,
            zorder=1,
            arrowprops={
                "arrowstyle": "-|>",
                "connectionstyle": "arc3,rad=0.12",
                "linewidth": 0.4 + 3.0 * count / busiest,
                "color": "0.55",
                "alpha": 0.3 + 0.6 * count / busiest,
                "shrinkA": 10,
                "shrinkB": 12,
            },
        )


def plot_reliability(found: Calibration, axes: Axes | None = None) -> Axes:
    """Draw a reliability curve with its intervals; at each point is how many it rests on.

    Points on the diagonal can be taken at their word; a bar that reaches it does not speak
    against that.

    Parameters
    ----------
    found : Calibration
        Of ``cvx.scoring.calibration`` or ``Memory.calibration``.
    axes : matplotlib.axes.Axes, optional
        Where to draw.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed (extra ``plot``).
    """
    axes = _axes(axes, (5.0, 5.0))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    expected = [one.predicted for one in found.bins]
    happened = [one.happened.value for one in found.bins]
    reach = [
        [one.happened.value - one.happened.low for one in found.bins],
        [one.happened.high - one.happened.value for one in found.bins],
    ]
    axes.errorbar(expected, happened, yerr=reach, marker="o", capsize=3)
    for one in found.bins:
        at = one.predicted, one.happened.value
        axes.annotate(f"{one.n:,}", at, (5, -9), textcoords="offset points", fontsize=7)
    told = (
        f"Brier {found.brier.value:.3f} [{found.brier.low:.3f}, {found.brier.high:.3f}]\n"
        f"ECE {found.ece.value:.3f} [{found.ece.low:.3f}, {found.ece.high:.3f}]\n"
        f"{found.n} predictions, {found.groups} groups"
    )
    axes.text(0.98, 0.03, told, transform=axes.transAxes, ha="right", va="bottom")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set(xlabel="expected chance of success", ylabel="share of successes, with 95 %")
    return axes


def plot_timeline(memory: Memory, axes: Axes | None = None) -> Axes:
    """Draw how many memories fall into each part of their time, by how they ended.

    Parameters
    ----------
    memory : Memory
        Not bound to a namespace.
    axes : matplotlib.axes.Axes, optional
        Where to draw.

    Raises
    ------
    MissingExtraError
        matplotlib or polars is not installed (extras ``plot`` and ``inspect``).
    """
    axes = _axes(axes, (9.0, 2.6))
    bins = PageData(memory).timeline({"state": "active"})["bins"]
    below = [0] * len(bins)
    starts = [one["since"] for one in bins]
    kinds = (("other", "no outcome"), ("lost", "lost"), ("won", "won"))
    for place, (name, told) in enumerate(kinds):
        counts = [one[name] for one in bins]
        if any(counts):
            width = bins[0]["until"] - bins[0]["since"]
            axes.bar(starts, counts, 0.9 * width, below, align="edge", color=_COLOURS[name])
            at = 1.0 - 0.12 * place, 1.02
            axes.text(*at, told, color=_COLOURS[name], ha="right", transform=axes.transAxes)
        below = [low + count for low, count in zip(below, counts, strict=True)]
    axes.set(xlabel="time, by the clock of the store", ylabel="memories")
    return axes


def plot_map(memory: Memory, axes: Axes | None = None, *, most: int = 12) -> Axes:
    """Draw the regions of a memory in a plane, as large as they are full.

    Parameters
    ----------
    memory, axes
        As for `plot_timeline`.
    most : int, default 12
        How many of the largest are named by the event at their hub, where there is room.

    Raises
    ------
    MissingExtraError
        As for `plot_timeline`.
    """
    axes = _axes(axes, (8.0, 5.5))
    told = PageData(memory).map()
    named: list[Place] = []
    largest = max((one["events"] for one in told["regions"]), default=1)
    for one in told["points"]:
        axes.plot(one["x"], one["y"], ".", color=_COLOURS[_kind(one["reward"])], markersize=3)
    for place, one in enumerate(told["regions"]):
        size, colour = 600 * one["events"] / largest, _COLOURS[_kind(one["reward"])]
        axes.scatter([one["x"]], [one["y"]], s=20 + size, color=colour, alpha=0.35, linewidths=0)
        near = [x for x, y in named if abs(x - one["x"]) < 0.4 and abs(y - one["y"]) < 0.1]
        if place < most and not near:
            named.append((one["x"], one["y"]))
            axes.annotate(
                shorten(one["text"], 28), (one["x"], one["y"]), (0, math.sqrt(size) / 2 + 3),
                textcoords="offset points", ha="center", fontsize=7, parse_math=False,
            )  # fmt: skip
    axes.set(xticks=[], yticks=[], xlim=(-1.15, 1.15), ylim=(-1.15, 1.2))
    return axes


def plot_chain(memory: Memory, event: AnEvent | str, axes: Axes | None = None) -> Axes:
    """Draw what led to an event, to its left, and what it led to, to its right.

    Parameters
    ----------
    memory, axes
        As for `plot_timeline`.
    event : Event, Hit, int or str
        Which one, or words that find it.

    Raises
    ------
    MissingExtraError
        As for `plot_timeline`.
    UnknownError
        No such event, or none that fits the words.
    """
    axes = _axes(axes, (10.0, 4.5))
    of = memory.why(event).of if isinstance(event, str) else memory.get(event)
    draw_story(memory.causes.story(of, namespace=of.namespace), axes)
    return axes


def plot_hit(hit: Hit, axes: Axes | None = None) -> Axes:
    """Draw a score factor by factor, the greatest share on top; the shares add up to it.

    Parameters
    ----------
    hit : Hit
        Of ``memory.recall``.
    axes : matplotlib.axes.Axes, optional
        Where to draw.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed (extra ``plot``).
    """
    telling = sorted((one for one in hit.factors if one.share), key=lambda one: abs(one.share))
    axes = _axes(axes, (7.0, 1.2 + 0.28 * len(telling)))
    for place, one in enumerate(telling):
        axes.barh(place, one.share, color=_COLOURS["won" if one.share > 0 else "lost"])
        said = f" {one.name}: {one.value:.2f} x {one.weight:.2f}"
        axes.text(max(one.share, 0.0), place, said, va="center", fontsize=8, parse_math=False)
    most = max((abs(one.share) for one in telling), default=1.0)
    axes.set(xlim=(min([0.0, *(one.share for one in telling)]), 1.9 * most), yticks=[])
    text = "" if hit.event is None else f": {one_line(hit.event.text, 50)}"
    axes.set_title(f"score {hit.score:.3f}{text}", fontsize=10, parse_math=False)
    axes.set_xlabel("share of the score")
    return axes


def plot_episode(memory: Memory, episode: int, axes: Axes | None = None) -> Axes:
    """Draw what each action was expected to be worth at each step, and which was taken.

    Parameters
    ----------
    memory, axes
        As for `plot_timeline`.
    episode : int
        Its id.

    Raises
    ------
    MissingExtraError
        As for `plot_timeline`.
    UnknownError
        No such episode.
    """
    axes = _axes(axes, (9.0, 4.0))
    told = PageData(memory).episode({"id": str(episode)})
    unit = "chance of success"
    for place, step in enumerate(told["steps"], start=1):
        advice = step["advice"]
        if advice is None:
            continue
        unit = unit if advice["unit"] != "return" else "expected return"
        taken = advice["action"] or step["action"]
        for option in advice["options"]:
            chosen = option["action"] == taken
            colour = _LINES[0] if chosen else _COLOURS["other"]
            axes.plot(place, option["value"], "o", color=colour, markersize=8 if chosen else 4)
            if chosen:
                axes.annotate(
                    shorten(option["action"], 18), (place, option["value"]), (0, -16),
                    textcoords="offset points", ha="center", fontsize=8, parse_math=False,
                )  # fmt: skip
    end = "has not ended" if told["reward"] is None else f"ended with {told['reward']:.2f}"
    axes.set_title(f"{shorten(told['goal'], 60)}: {end}", fontsize=10, parse_math=False)
    axes.set(xlabel="step (large: the action taken)", ylabel=unit)
    axes.set_xlim(0.5, len(told["steps"]) + 0.5)
    axes.locator_params(axis="x", integer=True)
    if unit == "chance of success":
        axes.set_ylim(-0.12, 1.08)
    else:
        axes.margins(y=0.15)
    return axes


def plot_curves(memory: Memory, axes: Axes | None = None) -> Axes:
    """Draw the trailing mean of how episodes ended, of each task, named at its end.

    Parameters
    ----------
    memory, axes
        As for `plot_timeline`.

    Raises
    ------
    MissingExtraError
        As for `plot_timeline`.
    """
    axes = _axes(axes, (9.0, 4.0))
    curves = PageData(memory).curves()
    ends = []
    for curve, colour in zip(curves, _LINES, strict=False):
        at, values = zip(*curve["points"], strict=True)
        axes.plot(at, values, color=colour, marker="o" if len(at) == 1 else None)
        ends.append((values[-1], at[-1], curve["name"], colour))
    rates = all(curve["unit"] == "episodes won" for curve in curves)
    low, high = (0.0, 1.0) if rates else axes.get_ylim()
    axes.set_ylim(low - 0.02 * (high - low), high + 0.04 * (high - low))
    above, last = math.inf, max((at for _, at, *_ in ends), default=1)
    # Names keep a line's distance, from the highest curve down.
    for value, _, name, colour in sorted(ends, reverse=True):
        above = min(value, above - 0.06 * (high - low))
        said = f"{value:.2f} {shorten(name, 30)}"
        axes.text(1.02 * last, above, said, color=colour, va="center", fontsize=8, parse_math=False)
    axes.set(xlabel="episodes", xlim=(1, 1.5 * last))
    axes.set_ylabel(curves[0]["unit"] if curves else "")
    return axes


def _axes(axes: Axes | None, size: tuple[float, float]) -> Axes:
    """Return axes to draw into; without pyplot there is no window, and no global state."""
    if axes is not None:
        return axes
    with needs("plot"):
        from matplotlib.figure import Figure
    made: Axes = Figure(figsize=size, layout="constrained").add_subplot()
    made.spines[["top", "right"]].set_visible(False)
    return made


def _kind(reward: float | None) -> str:
    if reward is None:
        return "other"
    return "won" if reward > 0.5 else "lost"
