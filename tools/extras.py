"""Print the requirements of the project and of the extras named, one a line, for pip."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    """Print base dependencies, then those of each extra in the order given."""
    root = Path(__file__).resolve().parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    for requirement in (*project["dependencies"], *(r for e in extras for r in optional[e])):
        print(requirement)


if __name__ == "__main__":
    main(sys.argv[1:])
