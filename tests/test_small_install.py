"""A plain installation has numpy and typer: everything else is asked for where it is used."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cvx.errors import MissingExtraError
from cvx.extras import EXTRAS, needs

ROOT = Path(__file__).parent.parent
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

PLAIN = """
import importlib, importlib.metadata, pkgutil, sys, warnings
from packaging.requirements import Requirement

def closure(names):
    found, todo = set(), list(names)
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            for text in importlib.metadata.requires(name) or ():
                one = Requirement(text)
                if one.marker is None or one.marker.evaluate({"extra": ""}):
                    todo.append(one.name)
    return found

plain = closure(["numpy", "typer"])
owners = importlib.metadata.packages_distributions()
for name in [name for name in sys.modules if name.startswith("packaging")]:
    del sys.modules[name]

class Bare:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        names = {owner.lower().replace("_", "-") for owner in owners.get(top, ())}
        if names and not names & plain and top != "cvx":
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, Bare())
"""


def plainly(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAIN + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_imports_plainly_or_names_the_packages_that_it_needs() -> None:
    told = plainly("""
import cvx
from cvx.errors import MissingExtraError
for module in pkgutil.walk_packages(cvx.__path__, "cvx."):
    if module.name != "cvx.__main__":
        try:
            importlib.import_module(module.name)
        except MissingExtraError as error:
            print(module.name, str(error).partition("pip install ")[2], sep="|")
""")
    assert dict(line.split("|") for line in told.splitlines()) == {
        "cvx.cluster": "ray fsspec",
        "cvx.embed.deadline": "httpcore stamina",
        "cvx.integrations.gymnasium": "gymnasium",
        "cvx.integrations.langchain": "langchain-core",
        "cvx.integrations.langgraph": "langgraph",
        "cvx.integrations.minari": "h5py minari",
        "cvx.mcp.server": "mcp",
        "cvx.mcp.tools": "mcp",
        "cvx.scoring.estimator": "scikit-learn",
        "cvx.store.transfer.parquet_file": "polars",
    }


def test_a_memory_lives_and_learns_plainly(tmp_path: Path) -> None:
    plainly(
        """
import cvx
memory = cvx.Memory.open(sys.argv[1], embedder=cvx.LexicalEmbedder())
pot = memory.add("the pot was left on the stove")
smoke = memory.add("the kitchen filled with smoke")
memory.link(pot, smoke, "caused", why="it burned")
assert len(memory.recall("smoke in the kitchen", 2)) == 2
assert [event.text for event in memory.why(smoke)] == ["the pot was left on the stove"]
for outcome in (1.0, 0.0, 1.0, 0.0):
    with memory.episode("cook the soup") as episode:
        advice = episode.advise("in the kitchen", ["light the stove", "open the window"])
        episode.act("light the stove" if outcome else "open the window")
        episode.end(outcome)
assert advice.best.action == "light the stove"
memory.admin.export(sys.argv[1] + ".jsonl")
memory.close()
again = cvx.Memory.open(sys.argv[1] + "2", embedder=cvx.LexicalEmbedder())
again.admin.import_(sys.argv[1] + ".jsonl")
assert len(again.recall("smoke in the kitchen", 2)) == 2
again.close()
""",
        str(tmp_path / "notes"),
    )


def test_the_command_runs_plainly(tmp_path: Path) -> None:
    said = plainly(
        """
from cvx.cli.app import run
for line in (["add", "the key is under the pot"], ["recall", "key"]):
    try:
        run([*line, "--store", sys.argv[1]])
    except SystemExit as done:
        assert not done.code
""",
        str(tmp_path / "notes"),
    )
    assert "under the pot" in said


def test_the_first_memory_loads_what_it_uses_alone() -> None:
    loaded = plainly("""
import warnings
before = set(sys.modules)
import cvx
warnings.simplefilter("ignore")
cvx.Memory()
print(*sorted(set(sys.modules) - before))
""").split()
    # Each takes 5 to 60 ms, and loads when it is used.
    late = {
        "asyncio", "ssl", "http.client", "tomllib", "tempfile", "importlib.resources", "scipy",
        "cvx.causal.cause_probability", "cvx.causal.judges", "cvx.causal.reflection",
        "cvx.embed.http", "cvx.evaluation", "cvx.learn.advisor", "cvx.learn.loop",
        "cvx.learn.region_mdp", "cvx.memory.causes", "cvx.store.doctor", "cvx.store.erase",
        "cvx.store.transfer", "cvx.temporal_index",
    }  # fmt: skip
    assert "cvx.memory.memory" in loaded
    assert not late & set(loaded)


def test_the_core_needs_numpy_and_the_command_typer_alone() -> None:
    names = [re.split(r"[<>=!~ ]", text)[0] for text in ABOUT["dependencies"]]
    assert names == ["numpy", "typer"]


def test_every_extra_of_the_wheel_has_a_hint() -> None:
    assert set(ABOUT["optional-dependencies"]) == set(EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_hint_names_the_packages_of_the_extra_and_never_ours(extra: str) -> None:
    listed = [re.split(r"[<>=!~ ]", text)[0] for text in ABOUT["optional-dependencies"][extra]]
    assert sorted(listed) == sorted(EXTRAS[extra])
    with pytest.raises(MissingExtraError) as told, needs(extra):
        raise ModuleNotFoundError("No module named 'x'")
    assert str(told.value) == f"No module named 'x': pip install {' '.join(EXTRAS[extra])}"


def test_no_text_of_the_library_would_install_somebody_elses_package() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for folder in ("python", "docs", "benches", "experiments")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".pyi"}
        and re.search(r"(install|pip)[^\n]*\bcvx\[", path.read_text())
        and path.name != "extras.py"
    ]
    assert wrong == []


def test_frames_may_be_looked_at_without_polars() -> None:
    # Notebooks and debuggers look at every attribute.
    code = """
import cvx
memory = cvx.Memory(embedder=cvx.LexicalEmbedder())
assert hasattr(memory, "frames")
try:
    memory.frames.events()
except cvx.errors.MissingExtraError as error:
    print(error)
"""
    assert "pip install polars" in plainly(code)
