"""docs/figures.md: what programs left in runs/, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from benches.figures import Figure, leave, page


def test_the_newest_figures_of_each_title_are_on_the_page(tmp_path: Path) -> None:
    older, newer, other = (tmp_path / name for name in ("a.json", "sub/b.json", "c.json"))
    leave(older, "Store", "python -m benches.store", [Figure("an add", "9 ms", "< 10", met=True)])
    leave(newer, "Store", "python -m benches.store", [Figure("an add", "12 ms", "< 10", met=False)])
    leave(other, "Recall", "python -m benches.recall", [Figure("R@5", "77 %")], detail=[1, 2])
    os.utime(older, (1, 1))
    text = page(tmp_path)
    assert "| an add | 12 ms | < 10 (missed) |" in text
    assert "9 ms" not in text
    assert text.index("## Recall") < text.index("| R@5 | 77 % |  |") < text.index("## Store")


def test_files_without_figures_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text('["a list"]')
    (tmp_path / "rows.json").write_text('{"rows": []}')
    (tmp_path / "index.json").write_text('{"seq": 4}\n{"crc": 7}\n')
    assert "##" not in page(tmp_path)
