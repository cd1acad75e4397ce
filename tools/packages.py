"""Install each package of dist/ into an empty environment, and use it as a newcomer would.

``python tools/packages.py [--tests] [FOLDER]``; ``make packages`` builds them before. With
``--tests`` the programs of ``tests/newcomers`` run against what was installed, too. Other versions
of Python are tried where they are on the path, or pyenv has them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# What the programs of tests/newcomers need beside the package.
TESTING = (
    "pytest",
    "pytest-timeout",
    "hypothesis",
    "polars",
    "gymnasium",
    "statsmodels",
    "matplotlib",
    "networkx",
)

USE = """
import sys, cvx
assert "site-packages" in cvx.__file__, cvx.__file__
folder = sys.argv[1]
with cvx.Memory.open(folder, embedder="lexical") as memory:
    rain, flood = memory.add("It rained all night."), memory.add("The cellar flooded.")
    memory.link(rain, flood, why="the drain is too small")
    assert memory.recall("water in the cellar?")[0].text == "The cellar flooded."
    assert str(memory.why(flood)).startswith("It rained all night, so the cellar flooded")
    for way in ("left", "right", "right"):
        with memory.episode("find the hat") as episode:
            episode.advise("a hall", ["left", "right"])
            episode.act(way)
            episode.end(way == "right")
    last = memory.episode("find the hat")
    assert last.advise("a hall", ["left", "right"]).best.action == "right"
    last.discard()
with cvx.Memory.open(folder) as memory:
    assert len(memory.events({"kind": "event"})) == 2
index = cvx.TemporalIndex(2)
index.insert(vector=[1, 0])
assert index.search([1, 0], k=1)[0].tolist() == [0]
print("cvx", cvx.__version__, "on Python", sys.version.split()[0])
"""


def run(*command: object, cwd: Path | None = None) -> None:
    """Run a command, and stop where it fails."""
    print("+", *command, flush=True)
    # Not what the caller's own environment would import.
    clean = {name: one for name, one in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(one) for one in command], check=True, cwd=cwd, env=clean)


def python_of(version: str) -> Path | None:
    """Return the Python of a version that is on the path, or that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    there = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    found = shutil.which(f"python{version}")
    # A shim of pyenv stands for every version, and works for those that are chosen.
    return there[-1] if there else Path(found) if found else None


def use(package: Path, base: Path, *, tests: bool) -> None:
    """Install a package into an empty environment of a Python, and use it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(base, "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", package)
        (folder / "use.py").write_text(USE)
        run(python, "use.py", "store", cwd=folder)
        run(python, "-m", "cvx", "recall", "rain", "--store", folder / "store", cwd=folder)
        run(folder / "venv" / "bin" / "cvx", "--version", cwd=folder)
        if tests:
            locked = ROOT / "tools" / "constraints.txt"
            run(python, "-m", "pip", "install", "--quiet", *TESTING, "-c", locked)
            shutil.copytree(ROOT / "tests", folder / "tests")
            for file in ("conftest.py", "pyproject.toml"):
                shutil.copy(ROOT / file, folder)
            options = ("-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
            run(python, "-m", "pytest", *options, "tests/newcomers", cwd=folder)


def main(arguments: list[str]) -> None:
    """Try every package under every Python that is here, and say which are not."""
    tests = "--tests" in arguments
    named = [one for one in arguments if not one.startswith("-")]
    folder = Path(named[0] if named else ROOT / "dist")
    packages = [*folder.glob("cvx-*.whl"), *folder.glob("cvx-*.tar.gz")]
    if not packages:
        sys.exit(f"nothing to try in {folder}: make build")
    for version in VERSIONS:
        python = python_of(version)
        if python is None:
            print(f"not tried: Python {version} is not here")
            continue
        for package in packages:
            use(package.resolve(), python, tests=tests and package.suffix == ".whl")
        # What an sdist compiles is the same for every version, and takes minutes.
        packages = [one for one in packages if one.suffix == ".whl"] or packages


if __name__ == "__main__":
    main(sys.argv[1:])
