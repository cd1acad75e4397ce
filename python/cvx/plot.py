"""A picture of predictions held against what happened, in matplotlib."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from cvx.errors import FileError, InvalidInputError
from cvx.extras import needs
from cvx.scoring import Calibration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
