"""Plots of what a memory has learned: its regions, and how well its predictions are calibrated."""

from __future__ import annotations

import math
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from cvx.errors import FileError, InvalidInputError
from cvx.extras import needs
from cvx.scoring import Calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cvx.learn.region_mdp import RegionMDP

Place = tuple[float, float]

_ENDS = {"success": (1.25, 0.8), "failure": (1.25, -0.8)}


def plot_regions(
    mdp: RegionMDP,
    path: str | PathLike[str] | None = None,
    *,
    task_type: str | None = None,
    most: int = 15,
    title: str = "",
) -> Figure:
    """Draw the regions of a model as discs, and the moves between them as arrows.

    From left to right lies when in an episode a region is passed; a disc is as large as it is
    often visited, its colour is the chance of success there, and its label is the hub's node with
    the best kind of action. An arrow is as thick as its move is frequent.

    Parameters
    ----------
    mdp : RegionMDP
        What was learned.
    path : path-like, optional
        Where to write it; the ending says in which format.
    task_type : str, optional
        Only this family of goals.
    most : int, default 15
        How many regions at most, those visited most often; the picture says how many are left out.
    title : str, optional
        Above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError
        matplotlib is not installed (extra ``plot``).
    InvalidInputError
        ``most`` below 1; no format with that ending.
    FileError
        The file cannot be written.
    """
    if most < 1:
        raise InvalidInputError(f"most is {most}: give at least 1")
    with needs("plot"):
        from matplotlib.cm import ScalarMappable
        from matplotlib.figure import Figure
    frames = mdp.frames(task_type)
    visited = frames.regions.sort("moves", "region", descending=[True, False])
    shown = list(visited.head(most).iter_rows(named=True))
    places = _laid_out(shown)
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set(xlim=(-0.15, 1.45), ylim=(-1.15, 1.15), title=title)
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
    figure.colorbar(colours, ax=axes, label="chance of success", shrink=0.6)
    _write(figure, path)
    return figure


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


def plot_reliability(
    found: Calibration, path: str | PathLike[str] | None = None, *, title: str = ""
) -> Figure:
    """Draw a reliability curve with its intervals, and how many predictions each point rests on.

    Points on the diagonal can be taken at their word; a bar that reaches it does not speak
    against that.

    Parameters
    ----------
    found : Calibration
        Of ``cvx.scoring.calibration`` or ``Memory.calibration``.
    path : path-like, optional
        Where to write it; the ending says in which format.
    title : str, optional
        Above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError
        matplotlib is not installed (extra ``plot``).
    InvalidInputError
        It knows no format with that ending.
    FileError
        The file cannot be written.
    """
    with needs("plot"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(5.0, 5.6), layout="constrained")
    curve, counts = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    curve.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="as expected")
    expected = [one.predicted for one in found.bins]
    happened = [one.happened.value for one in found.bins]
    reach = [
        [one.happened.value - one.happened.low for one in found.bins],
        [one.happened.high - one.happened.value for one in found.bins],
    ]
    curve.errorbar(expected, happened, yerr=reach, marker="o", capsize=3, label="happened, 95 %")
    curve.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of successes", title=title)
    curve.text(0.98, 0.03, _told(found), transform=curve.transAxes, ha="right", va="bottom")
    curve.legend(loc="upper left")
    counts.bar(
        [one.low for one in found.bins],
        [one.n for one in found.bins],
        width=[one.high - one.low for one in found.bins],
        align="edge",
        edgecolor="white",
    )
    counts.set(xlabel="expected chance of success", ylabel="predictions")
    _write(figure, path)
    return figure


def _told(found: Calibration) -> str:
    return (
        f"Brier {found.brier.value:.3f} [{found.brier.low:.3f}, {found.brier.high:.3f}]\n"
        f"ECE {found.ece.value:.3f} [{found.ece.low:.3f}, {found.ece.high:.3f}]\n"
        f"{found.n} predictions, {found.groups} groups"
    )


def _write(figure: Figure, path: str | PathLike[str] | None) -> None:
    if path is None:
        return
    try:
        figure.savefig(fspath(path))
    except ValueError as error:
        raise InvalidInputError(f"{fspath(path)!r} cannot be drawn: {error}") from error
    except OSError as error:
        raise FileError(f"{fspath(path)!r} cannot be written: {error}") from error
