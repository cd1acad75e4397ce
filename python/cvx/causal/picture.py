"""A story as a picture."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.causal.events import EventId
from cvx.errors import MissingExtraError, OutputError

if TYPE_CHECKING:
    from cvx.causal.narrative import Story

_COLOURS = {"cause": "#fde2c8", "event": "#f6b3a8", "consequence": "#cfe3f5"}
_WIDEST, _TALLEST = 60.0, 40.0
_TEXT_WIDTH, _TEXT_LENGTH = 22, 88


def draw(story: Story, path: Path) -> None:
    """Write a story as a picture; see ``Story.draw``."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(f"{error}: pip install 'cvx[plot]'") from error
    columns = _columns(story)
    places = _places(columns)
    tallest = max(len(events) for events in columns.values())
    figure = Figure(
        figsize=(min(_WIDEST, 2.6 * len(columns) + 0.6), min(_TALLEST, 1.3 * tallest + 0.8)),
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axis("off")
    boxes = {}
    for column, events in columns.items():
        role = "event" if column == 0 else "cause" if column < 0 else "consequence"
        for event in events:
            boxes[event] = axes.text(
                *places[event],
                _wrapped(story.events[event].text),
                ha="center",
                va="center",
                fontsize=8,
                parse_math=False,
                bbox={
                    "boxstyle": "round,pad=0.4",
                    "facecolor": _COLOURS[role],
                    "edgecolor": "#888",
                },
            ).get_bbox_patch()
    for link in (*story.causes, *story.effects):
        if link.cause in places and link.effect in places:
            arrow = {
                "arrowstyle": "-|>",
                "linewidth": 0.6 + 2.0 * link.weight,
                "color": "#666666",
                "patchA": boxes[link.cause],
                "patchB": boxes[link.effect],
                "shrinkA": 2,
                "shrinkB": 2,
            }
            axes.annotate("", xy=places[link.effect], xytext=places[link.cause], arrowprops=arrow)
    axes.set_xlim(min(columns) - 0.6, max(columns) + 0.6)
    axes.set_ylim(-tallest / 2 - 0.2, tallest / 2 + 0.2)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise OutputError(
            f"{path} cannot be written ({error}): give a .png, .svg or .pdf"
        ) from error


def _columns(story: Story) -> dict[int, list[EventId]]:
    columns: dict[int, list[EventId]] = {}
    for reached in reversed(story.before):
        columns.setdefault(-reached.depth, []).append(reached.id)
    columns[0] = [story.subject.id]
    seen = {reached.id for reached in story.before}
    for reached in story.after:
        # In a cycle a cause is a consequence too: it is drawn once.
        if reached.id not in seen:
            columns.setdefault(reached.depth, []).append(reached.id)
    return columns


def _places(columns: dict[int, list[EventId]]) -> dict[EventId, tuple[float, float]]:
    return {
        event: (float(column), (len(events) - 1) / 2.0 - row)
        for column, events in columns.items()
        for row, event in enumerate(events)
    }


def _wrapped(text: str) -> str:
    short = textwrap.shorten(text, _TEXT_LENGTH, placeholder=" \u2026") or "(no words)"
    return "\n".join(textwrap.wrap(short, _TEXT_WIDTH))
