"""Print the requirements of the project and of the extras and groups named, one a line, for pip."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(names: list[str]) -> None:
    """Print base dependencies, then those of each extra or dependency group in the order given."""
    root = Path(__file__).resolve().parent.parent
    about = tomllib.loads((root / "pyproject.toml").read_text())
    named = about["project"]["optional-dependencies"] | about["dependency-groups"]
    for requirement in (*about["project"]["dependencies"], *(r for n in names for r in named[n])):
        print(requirement)


if __name__ == "__main__":
    main(sys.argv[1:])
