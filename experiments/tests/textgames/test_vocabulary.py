"""Neither the agent nor the library that it plans with says a word of a game."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import experiments.plans
import experiments.textgames
from experiments.alfworld.floorplans import tables

# A language model is told of games in general; what it is told is no code of the agent.
SOURCES = [
    path
    for package in (experiments.plans, experiments.textgames)
    for path in sorted(Path(package.__path__[0]).glob("*.py"))
    if path.stem != "prompt"
]
VERBS = {
    "go", "take", "put", "move", "open", "close", "toggle", "heat", "cool", "clean", "slice",
    "examine", "look", "inventory", "help", "use", "pick",
}  # fmt: skip
FOODS = {
    "cook", "cookbook", "recipe", "meal", "ingredient", "ingredients", "kitchen", "knife", "stove",
    "oven", "bbq", "fry", "roast", "grill", "dice", "chop", "eat", "drop", "prepare", "north",
    "south", "east", "west", "door", "pepper", "onion", "pork", "apple",
}  # fmt: skip


def _strings(source: str) -> list[str]:
    tree = ast.parse(source)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_no_object_no_place_and_no_verb_of_a_game_is_named(path: Path) -> None:
    nouns = {kind.lower() for kind in (*tables().objects, *tables().receptacles)}
    assert {"mug", "fridge", "desklamp"} <= nouns
    source = path.read_text(encoding="utf-8")
    said = set(re.findall(r"[a-z]+", source.lower()))
    assert not said & (nouns | FOODS), f"{path.name} names {said & (nouns | FOODS)}"
    spoken = {w for text in _strings(source) for w in re.findall(r"[a-z_]+", text.lower())}
    assert not spoken & VERBS, f"{path.name} speaks of {spoken & VERBS}"


def test_the_agent_and_how_it_explores_stay_under_three_hundred_lines() -> None:
    own = [p for p in SOURCES if p.stem in ("agent", "explore")]
    assert len(own) == 2
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in own) < 300
