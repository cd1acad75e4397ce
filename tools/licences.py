"""Fail where something that cvx installs or links carries a licence that it cannot live with.

What the Python package and its extras bring and all that the crates link must be permissive.
The groups of the repository are not judged: no user installs them, and `experiments` brings a
planner under the GPL.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
# The Mozilla licence asks nothing of who uses a package unchanged (certifi, by way of httpcore).
PERMISSIVE = re.compile(
    r"\b(MIT|Apache|BSD|ISC|Zlib|0BSD|Unlicense|Unicode|PSF|Python Software|CC0|BSL|Mozilla)",
    re.IGNORECASE,
)


def closure(requirements: list[str]) -> set[str]:
    """Names of all distributions that the requirements bring along."""
    names: set[str] = set()
    todo = [(Requirement(text), "") for text in requirements]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name in names:
            continue
        names.add(requirement.name)
        todo += [(Requirement(text), "") for text in metadata.requires(requirement.name) or ()]
    return names


def python_licence(name: str) -> str:
    """What the distribution's own metadata says."""
    about = metadata.metadata(name)
    classifiers = [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    return about.get("License-Expression") or " / ".join(classifiers) or about.get("License") or ""


def main() -> int:
    """Print one line a dependency that is not plainly permissive; return how many there are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    named = closure([*project["dependencies"], *(text for extra in extras for text in extra)])
    found = {f"python {name}": python_licence(name) for name in sorted(named)}
    packages = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version=1", "--quiet"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )["packages"]
    found |= {f"crate {p['name']}": p["license"] or "" for p in packages}
    refused = {name: text for name, text in found.items() if not PERMISSIVE.search(text)}
    for name, text in refused.items():
        print(f"licence of {name}: {text or 'not stated'}")
    print(f"licences: {len(found) - len(refused)} of {len(found)} dependencies permissive")
    return min(len(refused), 1)


if __name__ == "__main__":
    sys.exit(main())
