"""A region model as frames, and as a picture."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.learn.region_mdp import RegionMDP
from cvx.plot import plot_regions
from tests.learn.ruler import Ruler
from tests.learn.test_mdp import random_index
from tests.learn.test_mdp_answers import CLEAN, HEAT, TAKE, model_of


def kitchen() -> RegionMDP:
    ruler, families = Ruler(), {}
    for _ in range(3):
        families[ruler.play([0, 4, 8], [TAKE, TAKE, CLEAN], 1.0)] = "wash"
    families[ruler.play([0, 4], [TAKE, HEAT], 0.0)] = "warm"
    ruler.play([0], [TAKE], None)
    return model_of(ruler, families)


@pytest.mark.requirement("V3")
@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_frames_add_up_to_what_the_model_counted(seed: int) -> None:
    ix, episodes = random_index(seed)
    model = RegionMDP(ix)
    model.learn_from_episodes(ix, episodes)
    frames = model.frames()
    moves = model.moves()
    assert frames.regions["moves"].sum() == sum(n.total() for n in moves.values())
    assert (
        frames.actions["moves"].sum()
        == frames.moves["count"].sum()
        == frames.regions["moves"].sum()
    )
    shares = frames.moves.group_by("region", "action").agg(pl.col("share").sum())
    assert shares["share"].to_list() == pytest.approx([1.0] * len(moves))
    for row in frames.actions.iter_rows(named=True):
        assert row["success"] == model.success(row["region"], row["action"])
        assert row["low"] <= row["success"] <= row["high"]
    for row in frames.regions.iter_rows(named=True):
        assert row["quality"] == model.region_quality(row["region"])


@pytest.mark.requirement("V3")
def test_frames_say_where_each_action_led_and_how_it_ended() -> None:
    frames = kitchen().frames()
    assert frames.moves.filter(region=4).rows() == [
        (4, "heat", None, "failure", 1, 1.0),
        (4, "take", 8, None, 3, 1.0),
    ]
    assert frames.moves.filter(region=0, end="unknown")["count"].to_list() == [1]
    assert frames.regions.select("region", "moves", "trials", "wins").rows() == [
        (0, 5, 4, 3),
        (4, 4, 4, 3),
        (8, 3, 3, 3),
    ]
    assert frames.regions["when"].to_list() == [0.0, pytest.approx((3 * 0.5 + 1.0) / 4), 1.0]
    assert kitchen().frames("warm").actions["action"].to_list() == ["take", "heat"]


def test_a_model_that_learned_nothing_has_empty_frames() -> None:
    assert all(frame.is_empty() for frame in model_of(Ruler()).frames())


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture_shows_regions_ends_and_flows(tmp_path: Path, ending: str) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    path = tmp_path / f"regions.{ending}"
    axes = plot_regions(kitchen())
    assert isinstance(axes.figure, figures.Figure)
    axes.figure.savefig(path)
    words = [text.get_text() for text in axes.texts]
    assert {"0\ntake", "4\ntake", "8\nclean", "success", "failure"} <= set(words)
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None) is not None]
    # 0 -> 4 -> 8 -> success, and 4 -> failure; unknown ends are not drawn.
    assert len(arrows) == 4
    assert path.stat().st_size > 1000


def test_the_picture_says_what_it_leaves_out() -> None:
    pytest.importorskip("matplotlib")
    words = [text.get_text() for text in plot_regions(kitchen(), most=1).texts]
    assert "2 regions visited less often are left out" in words
    empty = [text.get_text() for text in plot_regions(model_of(Ruler())).texts]
    assert "nothing was learned yet" in empty
    with pytest.raises(InvalidInputError, match="most is 0"):
        plot_regions(kitchen(), most=0)
