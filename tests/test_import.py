"""Importing costs little, and each part stands alone."""

import subprocess
import sys

import pytest

HEAVY = ("sklearn", "polars", "scipy", "textworld", "alfworld", "httpcore", "matplotlib")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_and_its_types_loads_nothing_heavy() -> None:
    loaded = run(
        "import sys, cvx, cvx.types, cvx.learn.loop, cvx.temporal_index\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert loaded.strip() == "[]"


@pytest.mark.requirement("V18")
@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("cvx.scoring", ["cvx.learn", "cvx.recall"]),
        ("cvx.learn.region_mdp", ["cvx.scoring", "cvx.learn.decay", "cvx.learn.loop"]),
        ("cvx.learn.decay", ["cvx.scoring", "cvx.learn.region_mdp", "cvx.index", "cvx.store"]),
        ("cvx.learn.episode_recorder", ["cvx.learn.region_mdp", "cvx.scoring"]),
        ("cvx.embed", ["cvx.index", "cvx.store", "cvx.learn", "cvx.scoring"]),
        ("cvx.store", ["cvx.embed", "cvx.learn", "cvx.scoring"]),
        ("cvx.index", ["cvx.store", "cvx.embed", "cvx.learn", "cvx.scoring"]),
    ],
)
def test_a_part_imports_without_the_others(module: str, absent: list[str]) -> None:
    loaded = run(f"import sys, {module}\nprint([m for m in {absent!r} if m in sys.modules])")
    assert loaded.strip() == "[]"
