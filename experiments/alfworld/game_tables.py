"""What the engine knows of a game that no step changes, made once and remembered."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from textworld.logic import Placeholder, Proposition, Variable  # type: ignore[import-untyped]

from experiments.alfworld.grammar import Logic

if TYPE_CHECKING:
    from experiments.alfworld.translation import Translation

# Games, one to two megabytes each: as many as a round trip through the real ones has.
_REMEMBERED = 400
_tables: OrderedDict[tuple[str, str], GameTables] = OrderedDict()


@lru_cache(maxsize=1024)
def placeholder(name: str, kind: str) -> Any:
    """Return the placeholder of an action's parameter."""
    return Placeholder(name, kind)


@dataclass(slots=True)
class Operator:
    """A grounded action: what `all_applicable_actions` builds anew at every step in TextWorld."""

    name: str
    template: str
    feedback_rule: str
    mapping: dict[Any, Any]
    command: str | None  # None where the text depends on the state


@dataclass(slots=True)
class GameTables:
    """Everything about one game that no step changes."""

    translation: Translation
    logic: Logic
    operators: dict[int, Operator] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # those that the commands were made with
    propositions: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    variables: dict[tuple[str, str], Any] = field(default_factory=dict)
    first_facts: list[Any] = field(default_factory=list)

    def proposition(self, atom: str) -> tuple[Any, Any]:
        """Return the proposition that fast-downward writes as ``atom``, and its negation."""
        found = self.propositions.get(atom)
        if found is None:
            kind, rest = atom.split(" ", 1)
            name, arguments = rest[:-1].split("(", 1)
            if kind == "NegatedAtom":
                name = f"not_{name}"
            fact = self.fact(name, [a for a in arguments.split(", ") if a])
            found = self.propositions[atom] = (fact, fact.negate())
        return found

    def fact(self, name: str, arguments: list[str] | tuple[str, ...]) -> Any:
        """Return a new proposition about objects of the game."""
        types = self.translation.objects
        return Proposition(name, [self.variable(a, types[a]) for a in arguments])

    def variable(self, name: str, kind: str) -> Any:
        """Return the variable that stands for an object."""
        found = self.variables.get((name, kind))
        if found is None:
            found = self.variables[name, kind] = Variable(name, kind)
        return found


def tables_of(translation: Translation, grammar: str) -> GameTables:
    """Return the tables of a game; the last 400 games' are kept."""
    key = (translation.key, grammar)
    tables = _tables.get(key)
    if tables is None:
        tables = _tables[key] = GameTables(translation, Logic(grammar, translation.types))
        if len(_tables) > _REMEMBERED:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return tables
