"""Writes docs/figures.md from the figures in ``runs/``.

    python -m benches.figures

Each program calls `leave`, which writes its whole report as JSON with a title, its command and a
few figures in front. `make figures` gathers those of every run into one page, so that no figure
there is typed by hand. What was not run on this machine is not on the page.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs"
PAGE = ROOT / "docs" / "figures.md"
HEAD = """# Figures

`make figures` writes this page from what `make bench` and the experiments left in `runs/`; none
is typed by hand. Each is that of the defaults, unless its line names something else, and of the
commit named above its table. Times are CPU times of one thread on a shared machine: compare ratios.
"""


@dataclass(frozen=True)
class Figure:
    """One measured figure and the bound that it has to reach, both as they are to be read.

    Attributes
    ----------
    what : str
        What was measured.
    value, bound : str
        The figure with its unit, and the bound, empty where there is none.
    met : bool or None
        Whether it reaches the bound.
    """

    what: str
    value: str
    bound: str = ""
    met: bool | None = None


def leave(path: Path, title: str, command: str, figures: list[Figure], **report: Any) -> None:
    """Write a program's report as JSON, with its figures for the page in front.

    Parameters
    ----------
    path : path
        The file, in ``runs/``.
    title, command : str
        The heading on the page, and the command that measures it again.
    figures : list of Figure
        The rows of the table.
    **report
        All else that the program measured.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "title": title,
        "command": command,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": f"commit {_commit()}",
        "figures": [asdict(figure) for figure in figures],
        **report,
    }
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(path)


def page(folder: Path = RUNS) -> str:
    """Return the page of what was left under a folder, of each title the newest.

    Parameters
    ----------
    folder : path
        Where the JSON files are.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.rglob("*.json"), key=lambda file: file.stat().st_mtime):
        try:
            told = json.loads(file.read_text())
        except ValueError:
            # A memory that `make run` left has files of its own.
            continue
        if isinstance(told, dict) and "figures" in told and "title" in told:
            found[told["title"]] = told
    return "\n".join([HEAD, *(_section(found[title]) for title in sorted(found))])


def _section(told: dict[str, Any]) -> str:
    rows = ["| what | figure | bound |", "|---|---|---|"]
    for row in told["figures"]:
        missed = " (missed)" if row.get("met") is False else ""
        rows.append(f"| {row['what']} | {row['value']} | {row.get('bound', '')}{missed} |")
    of = [f"`{told['command']}`", *(told[name] for name in ("commit", "machine") if name in told)]
    return "\n".join([f"## {told['title']}", ", ".join(of), "", *rows, ""])


def _commit() -> str:
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.stdout.strip()


def main() -> int:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
