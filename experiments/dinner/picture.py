"""Draws who remembers what was said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.escaping import one_line

if TYPE_CHECKING:
    from experiments.dinner.play import Line

_SPOKE, _HEARD, _NOTHING = "#b5541c", "#e8b98a", "#f4f1ec"


def draw(known: dict[str, dict[int, bool]], lines: Sequence[Line], path: Path) -> None:
    """Draw a row for each line and a column for each character.

    Parameters
    ----------
    known : dict of str to dict of int to bool
        Of each character the turns it remembers, and whether it was the one who spoke.
    lines : sequence of Line
        What was said.
    path : path
        Where the picture goes; its ending says in which format.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    names = [*known]
    figure = Figure(figsize=(11, 0.26 * len(lines) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    for row, line in enumerate(lines):
        for column, name in enumerate(names):
            spoke = known[name].get(line.turn)
            colour = _NOTHING if spoke is None else _SPOKE if spoke else _HEARD
            axes.add_patch(Rectangle((column, row), 0.94, 0.86, facecolor=colour))
        axes.text(
            len(names) + 0.1, row + 0.43, one_line(f"{line.speaker}: {line.text}", 110),
            va="center", fontsize=8, parse_math=False,
        )  # fmt: skip
    axes.set_xlim(0, len(names) + 9)
    axes.set_ylim(len(lines), -0.1)
    axes.set_xticks([place + 0.47 for place in range(len(names))], names)
    axes.set_yticks([row + 0.43 for row in range(len(lines))], [str(one.turn) for one in lines])
    axes.tick_params(length=0, labelsize=8, labeltop=True, labelbottom=False)
    axes.set_ylabel("turn", fontsize=9)
    for side in axes.spines.values():
        side.set_visible(False)
    shown = [(_SPOKE, "said it"), (_HEARD, "heard it"), (_NOTHING, "does not know of it")]
    axes.legend(
        handles=[Patch(facecolor=colour, label=text) for colour, text in shown],
        loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, frameon=False, fontsize=9,
    )  # fmt: skip
    axes.set_title("Who remembers which line of the dinner", fontsize=11)
    figure.savefig(path, dpi=110)
