"""The notebooks of the documentation run from top to bottom, and print what they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
_CHANGES = re.compile(r"\d*\.?\d+%?")
"""What differs where recall and causes weigh differently."""


def printed(notebook: Any) -> list[str]:
    """What each cell printed and returned as text, but for those that say that it differs."""
    told = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "differs from version" not in cell.source:
            for one in cell.outputs:
                assert one.output_type != "error"
                told.append(one.text if "text" in one else one.data["text/plain"])
    return [_CHANGES.sub("#", one) for one in told]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    shown = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    expected = printed(shown)
    assert len(expected) >= 3
    done = NotebookClient(shown, timeout=300, kernel_name="python3").execute()
    assert printed(done) == expected


def test_there_are_two() -> None:
    assert len([*FOLDER.glob("*.ipynb")]) == 2
