"""Experiments are written against what cvx offers to everybody; their tests may reach further."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import cvx

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [
    path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] != "tests"
]
PUBLIC = {
    "cvx", "cvx.causal", "cvx.characters", "cvx.cluster", "cvx.embed", "cvx.errors", "cvx.escaping",
    "cvx.evaluation", "cvx.index",
    "cvx.integrations.gymnasium", "cvx.integrations.langchain", "cvx.integrations.langgraph",
    "cvx.learn.advisor",
    "cvx.learn.decay", "cvx.learn.edges", "cvx.learn.episode_recorder",
    "cvx.learn.loop", "cvx.learn.region_mdp",
    "cvx.memory", "cvx.plot", "cvx.recall", "cvx.scoring", "cvx.store", "cvx.temporal_index",
    "cvx.types",
}  # fmt: skip
"""The modules whose names users may import; what lies below or beside them is cvx's own."""


def imported(source: str) -> Iterator[tuple[str, str | None]]:
    """Modules of cvx that a source imports, each with the name that it takes from there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((str(node.module), alias.name) for alias in node.names)


def private(source: str) -> set[str]:
    """What a source takes from cvx that is not offered to everybody."""
    found = set()
    for module, name in imported(source):
        if module.partition(".")[0] != cvx.__name__:
            continue
        whole = module if name is None else f"{module}.{name}"
        if module not in PUBLIC:
            if whole not in PUBLIC:
                found.add(whole)
        elif name is not None and whole not in PUBLIC:
            offered = getattr(import_module(module), "__all__", None)
            if name.startswith("_") or (offered is not None and name not in offered):
                found.add(whole)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names_of_cvx_are_imported(path: Path) -> None:
    assert private(path.read_text(encoding="utf-8")) == set()


def test_what_is_private_is_told_from_what_is_public() -> None:
    good = "import cvx, math\nfrom cvx import Memory, errors\nfrom cvx.embed import HttpOptions\n"
    assert private(good) == set()
    bad = (
        "import cvx.time_limits\nfrom cvx import arguments\nfrom cvx.embed.http import Http\n"
        "from cvx.learn.loop import _Open\nfrom cvx.types import _HIT_ITEMS\n"
    )
    assert private(bad) == {
        "cvx.time_limits", "cvx.arguments", "cvx.embed.http.Http", "cvx.learn.loop._Open",
        "cvx.types._HIT_ITEMS",
    }  # fmt: skip


def inherited(path: Path) -> Iterator[tuple[type, type]]:
    """The classes that a file defines, each with the classes of cvx that it inherits from."""
    module = import_module(".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts)))
    for _, own in inspect.getmembers(module, inspect.isclass):
        if own.__module__ == module.__name__:
            yield from ((own, b) for b in own.__mro__ if b.__module__.startswith("cvx."))


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if "cvx.learn.loop" in path.read_text(encoding="utf-8")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_class_uses_or_replaces_a_private_name_of_its_base(path: Path) -> None:
    for own, base in inherited(path):
        hidden = {n for n in (*vars(base), *base.__annotations__) if n[0] == "_" != n[1]}
        used = {node.attr for node in ast.walk(ast.parse(inspect.getsource(own).strip()))
                if isinstance(node, ast.Attribute)}  # fmt: skip
        assert hidden & {*used, *vars(own)} == set(), f"{own} reaches into {base}"
