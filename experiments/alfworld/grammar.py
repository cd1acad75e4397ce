"""TextWorld's grammar of a game: parsed once, derived without copies.

The texts of ALFWorld come from a context-sensitive grammar inside the game file. Stock TextWorld
parses it anew for every game, parses every template again on every derivation, and deep-copies
each symbol with its context. Parsing depends on the text alone, so it is remembered here; a
derivation only reads its context, so it is evaluated in place.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from textworld.envs.pddl import logic as stock_logic  # type: ignore[import-untyped]
from textworld.envs.pddl import textgen as stock_textgen
from textworld.logic import Rule, Type, TypeHierarchy  # type: ignore[import-untyped]

from experiments.errors import GameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Grammars of one release differ in the task's sentence alone; the rest is parsed once for all.
_TASK = re.compile(r'(?<="Your task is to: )(?:[^"\\]|\\.)*(?=")')
_NO_TASK = "UNKNOWN GOAL."


@lru_cache(maxsize=8192)
def _symbols(text: str) -> tuple[Any, ...]:
    return tuple(stock_textgen._parse_and_convert(text, rule_name="symbols"))


@lru_cache(maxsize=1024)
def parse_query(expression: str) -> Any:
    """Parse a conjunctive query such as ``openable(r:receptacle) & opened(r:receptacle)``."""
    return Rule.parse_conjunctive_query(expression)


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression.strip(), mode="eval").body


def _value(node: ast.expr, entities: Mapping[str, Any]) -> Any:
    """Return what ``o``, ``o.name``, ``r.name or r.id`` or ``a.indefinite + ' ' + a.name`` say."""
    match node:
        case ast.Name(name):
            return entities[name]
        case ast.Attribute(ast.Name(name), attribute) if not attribute.startswith("_"):
            return getattr(entities[name], attribute)
        case ast.Constant(str() as text):
            return text
        case ast.BinOp(left, ast.Add(), right):
            return _value(left, entities) + _value(right, entities)
        case ast.BoolOp(ast.Or(), parts):
            found = (_value(part, entities) for part in parts)
            return next((value for value in found if value), "")
    raise GameError(
        f"the grammar says {{{ast.unparse(node)}}}: only entities and their attributes, texts, + "
        "and or are understood, such as {r.name or r.id}"
    )


@lru_cache(maxsize=64)
def _document(text: str) -> tuple[dict[str, Any], dict[str, list[tuple[str, str]]]]:
    """Actions by name, and for every symbol its (right-hand side, condition) in order."""
    model = stock_logic._PARSER.parse(text, rule_name="pddlStart")
    actions, grammar = _Converter().walk(model)
    return actions, grammar


class _Converter(stock_logic._ModelConverter):  # type: ignore[misc]
    """TextWorld's converter, but for the last step: the rules stay text."""

    def walk_PddlDocumentNode(self, node: Any) -> Any:  # noqa: N802
        actions: dict[str, Any] = {}
        rules: dict[str, list[tuple[str, str]]] = {}
        for part in node.parts:
            if isinstance(part, stock_logic.model.ActionTypeNode):
                action = self.walk(part)
                actions[action.name.lower()] = action
                lines = action.grammar.split("\n")
                text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            elif isinstance(part, stock_logic.model.ActionGrammarNode):
                text = self._unescape_block(part.code)
            else:
                continue
            for name, alternatives in json.loads(text).items():
                rules[name] = [(r["rhs"], r.get("condition", "")) for r in alternatives]
        return actions, rules


class Grammar:
    """The production rules of one game.

    Parameters
    ----------
    rules : mapping of str to list of (right-hand side, condition)
    """

    def __init__(self, rules: Mapping[str, list[tuple[str, str]]]) -> None:
        self._rules = rules

    def derive(self, text: str, context: Context) -> str:
        """Derive a text, as ``ContextSensitiveGrammar.derive`` does, symbol by symbol.

        Parameters
        ----------
        text : str
            A template, for example ``#look.feedback#`` or ``take {o} from {r}``.
        context : Context
            Where placeholders are bound and conditions are asked.

        Returns
        -------
        str
        """
        return "".join(self._expand(_symbols(text), context))

    def depends_on(self, text: str) -> frozenset[str]:
        """Return the predicates that a derivation of ``text`` may ask about."""
        return frozenset(self._predicates(_symbols(text), set()))

    def _predicates(self, symbols: Iterable[Any], seen: set[str]) -> Iterator[str]:
        for symbol in symbols:
            if isinstance(symbol, stock_textgen.ListSymbol):
                yield from self._predicates((symbol.symbol,), seen)
            elif isinstance(symbol, stock_textgen.ConditionalSymbol):
                yield from _asked(symbol.given)
                yield from self._predicates((symbol.expression,), seen)
            elif isinstance(symbol, stock_textgen.NonterminalSymbol) and symbol.symbol not in seen:
                seen.add(symbol.symbol)
                for right, condition in self._rules.get(symbol.symbol, ()):
                    yield from _asked(condition)
                    yield from self._predicates(_symbols(right), seen)

    def _expand(self, symbols: tuple[Any, ...], context: Context) -> Iterator[str]:
        for symbol in symbols:
            if isinstance(symbol, stock_textgen.TerminalSymbol):
                yield symbol.symbol
            elif isinstance(symbol, stock_textgen.NonterminalSymbol):
                yield from self._expand(self._right_hand_side(symbol, context), context)
            elif isinstance(symbol, stock_textgen.EvalSymbol):
                yield str(_value(_parsed(symbol.expression), context.variables))
            elif isinstance(symbol, stock_textgen.ConditionalSymbol):
                for bound in context.matches(symbol.given):
                    yield from self._expand((symbol.expression,), bound)
            else:
                yield from self._enumerate(symbol.symbol, context)

    def _enumerate(self, item: Any, context: Context) -> Iterator[str]:
        found = list(context.matches(item.given))
        if not found:
            yield from self._named("list_empty", context)
        for place, bound in enumerate(found):
            if place:
                last = place == len(found) - 1
                yield from self._named("list_last_separator" if last else "list_separator", context)
            yield from self._expand((item.expression,), bound)

    def _named(self, name: str, context: Context) -> Iterator[str]:
        return self._expand((stock_textgen.NonterminalSymbol(name),), context)

    def _right_hand_side(self, symbol: Any, context: Context) -> tuple[Any, ...]:
        for right, condition in self._rules.get(symbol.symbol, ()):
            if not condition or context.holds(condition):
                return _symbols(right)
        raise stock_textgen.CSGUnknownSymbolError(symbol)


def _asked(condition: str | None) -> Iterator[str]:
    if condition:
        for predicate in parse_query(condition).preconditions:
            yield predicate.name.removeprefix("not_")


class Context:
    """What a derivation may look at: a state, bound placeholders and the names of entities."""

    __slots__ = ("entities", "mapping", "state", "variables")

    def __init__(
        self,
        state: Any,
        entities: Mapping[str, Any],
        mapping: Mapping[Any, Any],
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self.state = state
        self.entities = entities
        self.mapping = mapping
        if variables is None:
            variables = {ph.name: entities[var.name] for ph, var in mapping.items()}
        self.variables = variables

    def holds(self, condition: str) -> bool:
        """Return whether some binding of the free placeholders satisfies ``condition``."""
        for _ in self.state.all_assignments(parse_query(condition), self.mapping):
            return True
        return False

    def matches(self, condition: str | None) -> Iterator[Context]:
        """Yield a context for every binding that satisfies ``condition``, in TextWorld's order."""
        if not condition:
            yield self
            return
        for found in self.state.all_assignments(parse_query(condition), self.mapping):
            new = {ph.name: self.entities[var.name] for ph, var in found.items()}
            yield Context(
                self.state, self.entities, {**self.mapping, **found}, {**self.variables, **new}
            )


class Logic:
    """Actions and grammar of a game and its types; what ``textworld``'s ``GameLogic`` holds.

    Parameters
    ----------
    grammar : str
        The game's grammar file.
    types : tuple of (name, supertypes)
        The types of the PDDL domain.
    """

    def __init__(self, grammar: str, types: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
        self.types = _hierarchy(types)
        tasks = _TASK.findall(grammar)
        if len(tasks) == 1:
            actions, rules = _document(_TASK.sub(_NO_TASK, grammar))
            rules = {
                name: [
                    (_with_task(right, tasks[0]), condition) for right, condition in alternatives
                ]
                for name, alternatives in rules.items()
            }
        else:
            actions, rules = _document(grammar)
        self.actions = {name: copy.copy(action) for name, action in actions.items()}
        self.grammar = Grammar(rules)


@lru_cache(maxsize=64)
def _hierarchy(types: tuple[tuple[str, tuple[str, ...]], ...]) -> Any:
    hierarchy = TypeHierarchy()
    for name, parents in types:
        # PDDL lets a domain declare its root type again; TextWorld keeps the first.
        with suppress(ValueError):
            hierarchy.add(Type(name, parents))
    return hierarchy


def _with_task(right: str, task: str) -> str:
    written = f"Your task is to: {_NO_TASK}"
    if written not in right:
        return right
    return right.replace(written, json.loads(f'"Your task is to: {task}"'))
