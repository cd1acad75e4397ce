"""The picture of a calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from cvx.plot import plot_reliability
from cvx.scoring import calibration

P = np.random.default_rng(0).random(200)
FOUND = calibration(P, np.random.default_rng(1).random(200) < P)


@pytest.mark.requirement("B6")
def test_the_picture_shows_every_bin_with_its_interval_and_its_size(tmp_path: Path) -> None:
    axes = plot_reliability(FOUND)
    (drawn,) = axes.containers
    assert isinstance(drawn, ErrorbarContainer)
    line, _, (bars,) = drawn.lines
    assert line is not None
    points = [(one.predicted, one.happened.value) for one in FOUND.bins]
    np.testing.assert_allclose(np.asarray(line.get_xydata(), dtype=float), np.array(points))
    assert isinstance(bars, LineCollection)
    reached = [(segment[0][1], segment[1][1]) for segment in bars.get_segments()]
    np.testing.assert_allclose(reached, [one.happened[1:] for one in FOUND.bins])
    words = [text.get_text() for text in axes.texts]
    assert words[:-1] == [str(one.n) for one in FOUND.bins]
    assert "200 predictions, 200 groups" in words[-1]
    assert isinstance(axes.figure, Figure)
    axes.figure.savefig(tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")
