"""The page opens without a network, and says what the JSON file says."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("statsmodels")
pytest.importorskip("matplotlib")

from experiments.harness.figures import summary
from experiments.harness.page import write_page
from experiments.harness.report import points, rate, write_json
from experiments.harness.setup import Setup
from experiments.tests.harness.hat_domain import played, small

_LOADING = {"src", "href", "xlink:href", "srcset", "data", "poster", "action", "background"}
_VOID = {"meta", "br", "img", "link", "hr"}


class Reader(HTMLParser):
    """Collects tables, the places that would be loaded, and whether all tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.drawn = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in _LOADING]
        self.drawn += tag == "svg"
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in _LOADING]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


def _setup(protocol: str) -> Setup:
    measured = 2 if protocol == "transfer" else 0
    arms = ("full", "none", "e7c", "no_search")
    return small(protocol=protocol, seeds=2, games_per_round=2, arms=arms, measured=measured)


def _report(folder: Path, protocol: str) -> tuple[dict[str, Any], Reader, str]:
    setup = _setup(protocol)
    transfer = protocol == "transfer"
    games = [
        played(
            arm,
            seed,
            place,
            round=2 * (place >= 6) if transfer else place // 4,
            measured=transfer and (place < 2 or place >= 6),
            game=f"game {place % 2}",
            task_type=f"kind_{place % 2}",
            won=(place + seed + number) % (number + 2) > 0,
            steps=10 + place,
        )
        for number, arm in enumerate(setup.arms)
        for seed in range(2)
        for place in range(8)
    ]
    figures = summary(setup, games)
    write_json(folder / "report.json", figures, games, 1.5, "python -m experiments.alfworld")
    kept = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    write_page(folder / "report.html", kept, "python -m experiments.hats <all> & more", 1.5)
    text = (folder / "report.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    return kept, reader, text


@pytest.mark.parametrize("protocol", ["transfer", "repeat"])
def test_nothing_is_loaded_from_elsewhere_and_all_tags_close(tmp_path: Path, protocol: str) -> None:
    _, page, text = _report(tmp_path, protocol)
    assert page.open == []
    assert page.drawn == 6
    assert all(place.startswith(("#", "data:")) for place in page.loaded), page.loaded
    assert "@import" not in text
    assert "url(http" not in text
    assert "<script" not in text
    assert "python -m experiments.hats &lt;all&gt; &amp; more" in text


@pytest.mark.requirement("V21")
@pytest.mark.parametrize("protocol", ["transfer", "repeat"])
def test_every_arm_and_figure_of_the_page_is_that_of_the_json(
    tmp_path: Path, protocol: str
) -> None:
    kept, page, _ = _report(tmp_path, protocol)
    listed, headline, growth, differences, held, kinds, seeds = page.tables
    assert {row[0]: row[1] for row in listed[1:]} == {
        name: arm["title"] for name, arm in kept["arms"].items()
    }
    for table in (headline, growth, held, kinds, seeds):
        assert [row[0] for row in table[1:]] == list(kept["arms"])
    for row in headline[1:]:
        arm = kept["arms"][row[0]]
        curve = [rate(point["success"]) for point in arm["rounds"]]
        assert row[1 : 1 + len(curve)] == curve
        assert row[1 + len(curve)] == f"{100 * arm['area']:.1f}"
        assert row[3 + len(curve)] == f"{arm['late']['steps_of_wins']:.1f}"
    for row in growth[1:]:
        assert row[1] == points(kept["arms"][row[0]]["gain"])
    assert [row[0] for row in differences[1:]] == list(kept["differences"])
    for row in differences[1:]:
        found = kept["differences"][row[0]]
        assert row[1] == points(found["late"])
        assert row[3] == points(found["area"])
    for row in held[1:]:
        share = kept["arms"][row[0]]["held"][-1]["share_of_all"]
        assert row[4] == f"{100 * share:.1f}"
    for row in kinds[1:]:
        by_kind = kept["arms"][row[0]]["by_task_type"]
        assert row[1:] == [rate(by_kind[kind]["success"]) for kind in sorted(by_kind)]
    for row in seeds[1:]:
        ends = kept["arms"][row[0]]["seeds"].values()
        assert row[1:] == [f"{100 * s['early']:.1f} → {100 * s['late']:.1f}" for s in ends]


def test_the_same_figures_make_the_same_page(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert _report(tmp_path / "a", "repeat")[2] == _report(tmp_path / "b", "repeat")[2]
