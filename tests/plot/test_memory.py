"""The pictures of a memory as axes: the same figures as on the page, named where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cvx import plot
from cvx.embed import LexicalEmbedder
from cvx.errors import UnknownError
from cvx.inspect import PageData
from cvx.memory import Memory
from tests.inspect.conftest import fill


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("plot") / "house"
    fill(folder)
    with Memory.open(folder, read_only=True) as found:
        yield found


def words(axes: Axes) -> str:
    return " ".join(text.get_text() for text in axes.texts) + axes.get_title()


def drawn(axes: Axes) -> None:
    """What was drawn can be written, whatever its texts say."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    with mpl.rc_context({"font.family": "DejaVu Sans"}):
        figure.canvas.draw()


def test_the_timeline_stacks_what_the_page_counts(memory: Memory) -> None:
    axes = plot.plot_timeline(memory)
    bars = [one.get_height() for one in axes.patches if isinstance(one, Rectangle)]
    bins = PageData(memory).timeline({"state": "active"})["bins"]
    assert sum(bars) == sum(one["won"] + one["lost"] + one["other"] for one in bins) == 16
    assert {"won", "lost", "no outcome"} <= {text.get_text() for text in axes.texts}
    drawn(axes)


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
def test_the_map_draws_every_region_and_names_the_largest(memory: Memory) -> None:
    axes = plot.plot_map(memory, most=2)
    told = PageData(memory).map()["regions"]
    assert len(axes.collections) == len(told)
    assert len(axes.texts) == min(2, len(told))
    drawn(axes)


def test_a_chain_has_a_box_for_each_event_and_an_arrow_for_each_link(memory: Memory) -> None:
    axes = plot.plot_chain(memory, "the cellar flooded")
    boxes = [text for text in axes.texts if text.get_text()]
    assert len(boxes) == 3
    assert len(axes.texts) - len(boxes) == 2
    left, right = (next(t for t in boxes if word in t.get_text()) for word in ("drain", "pump"))
    assert left.get_position()[0] < right.get_position()[0]
    drawn(axes)
    with pytest.raises(UnknownError):
        plot.plot_chain(memory, 99)


def test_the_bars_of_a_hit_add_up_to_its_score(memory: Memory) -> None:
    hit = memory.recall("the cellar flooded")[0]
    axes = plot.plot_hit(hit)
    bars = [one.get_width() for one in axes.patches if isinstance(one, Rectangle)]
    assert sum(bars) == pytest.approx(hit.score)
    assert f"score {hit.score:.3f}" in axes.get_title()
    drawn(axes)


def test_an_episode_shows_what_each_action_was_worth_and_which_was_taken(memory: Memory) -> None:
    axes = plot.plot_episode(memory, 3)
    assert len(axes.lines) == 4
    assert [text.get_text() for text in axes.texts] == ["right", "take"]
    assert "ended with 1.00" in axes.get_title()
    drawn(axes)


def test_curves_are_named_at_their_ends_and_need_no_legend(memory: Memory) -> None:
    axes = plot.plot_curves(memory)
    (line,) = axes.lines
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([0.0, 0.5, 2 / 3, 0.75])
    assert words(axes) == "0.75 hats"
    assert axes.get_legend() is None
    drawn(axes)


def test_axes_that_are_given_are_drawn_into(memory: Memory, tmp_path: Path) -> None:
    figure = Figure(figsize=(8, 8))
    rows = figure.subplots(2, 1)
    assert plot.plot_timeline(memory, rows[0]) is rows[0]
    assert plot.plot_curves(memory, rows[1]) is rows[1]
    figure.savefig(tmp_path / "both.png")
    assert (tmp_path / "both.png").stat().st_size > 1_000


def test_an_empty_memory_has_empty_pictures() -> None:
    with Memory(embedder=LexicalEmbedder(32)) as memory:
        for axes in (plot.plot_timeline(memory), plot.plot_map(memory), plot.plot_curves(memory)):
            drawn(axes)
