"""TextWorld's PDDL environment without its repeated work.

`FastPddlEnv` is `textworld.envs.pddl.PddlEnv` for every wrapper that goes around it, and the state
machine is the same fast-downward library. What changes: operators, propositions and the texts of
commands are pure functions of the translated task, so each is made once and remembered.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fast_downward  # type: ignore[import-untyped]
from textworld.core import GameState  # type: ignore[import-untyped]
from textworld.envs.pddl import PddlEnv  # type: ignore[import-untyped]
from textworld.envs.pddl.logic import PddlState  # type: ignore[import-untyped]

from experiments.alfworld.game_tables import GameTables, Operator, placeholder, tables_of
from experiments.alfworld.grammar import Context
from experiments.alfworld.translation import translate

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each copy of the library holds one task: an environment owns one from its start to its close.
_idle: list[Any] = []


class _State(PddlState):  # type: ignore[misc]
    """A `PddlState` made from a remembered translation."""

    def __init__(self, library: Any, tables: GameTables) -> None:
        # PddlState's own constructor translates the problem twice; everything it sets is set here.
        self._facts = defaultdict(set)
        self._vars_by_name: dict[str, Any] = {}
        self._vars_by_type: dict[str, Any] = defaultdict(set)
        self._var_counts: Counter[str] = Counter()
        self._logic = tables.logic
        self.downward_lib = library
        self.tables = tables
        library.load_sas(zlib.decompress(tables.translation.sas))
        if not tables.first_facts:
            tables.first_facts = [tables.fact(*fact) for fact in tables.translation.facts]
            size = library.get_state_size()
            atoms = (fast_downward.Atom * size)()
            library.get_state(atoms)
            current = (tables.proposition(atom.name)[0] for atom in atoms)
            tables.first_facts += [fact for fact in current if not fact.is_negation]
        for fact in tables.first_facts:
            self._facts[fact.signature].add(fact)
        self._sorted: dict[Any, list[Any]] = {}

    def facts_with_signature(self, sig: Any) -> list[Any]:
        """Return the facts of a signature in order: queries sort them, which is then no work."""
        found = self._sorted.get(sig)
        if found is None:
            found = self._sorted[sig] = sorted(self._facts.get(sig, ()))
        return found

    def applicable(self) -> Any:
        """Return the applicable operators as fast-downward lists them."""
        count = self.downward_lib.get_applicable_operators_count()
        operators = (fast_downward.Operator * count)()
        self.downward_lib.get_applicable_operators(operators)
        return operators

    def apply(self, operator: Any) -> None:
        """Apply one of the operators that `applicable` returned."""
        atoms = (fast_downward.Atom * operator.nb_effect_atoms)()
        self.downward_lib.apply_operator(operator.id, atoms)
        for atom in atoms:
            fact, negation = self.tables.proposition(atom.name)
            self._facts[negation.signature].discard(negation)
            self._facts[fact.signature].add(fact)
            self._sorted.pop(negation.signature, None)
            self._sorted.pop(fact.signature, None)


class FastPddlEnv(PddlEnv):  # type: ignore[misc]
    """`PddlEnv` with identical feedback, commands, reward and end, some hundred times faster.

    Parameters
    ----------
    infos : textworld.EnvInfos, optional
        As for `PddlEnv`. ``admissible_commands`` are always there; ``facts`` when
        asked for.
    cache : Path, optional
        Folder for translations that outlive the process.
    """

    def __init__(self, infos: Any = None, cache: Path | None = None) -> None:
        # PddlEnv's own constructor copies and loads the library; idle copies serve as well.
        super(PddlEnv, self).__init__(infos)
        self.downward_lib = _idle.pop() if _idle else fast_downward.load_lib()
        self._cache = cache

    def load(self, data: Mapping[str, Any]) -> None:
        """Load a game from its content."""
        translation = translate(data["pddl_domain"], data["pddl_problem"], self._cache)
        self._tables = tables_of(translation, data["grammar"])
        self._logic = self._tables.logic
        self._start()
        self._entity_infos = self._get_entity_infos()

    def close(self) -> None:
        """Give the library back; the environment cannot be used any more."""
        if self.downward_lib is not None:
            _idle.append(self.downward_lib)
        self.downward_lib = None

    def _start(self) -> None:
        self._fresh = True
        self._pddl_state = _State(self.downward_lib, self._tables)

    def reset(self) -> Any:
        """Start the loaded game anew."""
        if not self._fresh:
            self._start()
        self._fresh = False
        names = {key: info.name for key, info in self._entity_infos.items()}
        if names != self._tables.names:
            self._tables.names = names
            self._tables.operators = {}
        self.state = GameState()
        self._tell(self._derive("#intro#", {}))
        self._gather_infos()
        return self.state

    def step(self, command: str) -> tuple[Any, int, bool]:
        """Play a command; one that is not admissible changes nothing."""
        command = command.strip()
        self.state = GameState()
        self.state["last_command"] = command
        chosen = self._commands.get(command)
        if chosen is None:
            self._tell("Nothing happens.")
        else:
            native, operator = chosen
            self._pddl_state.apply(native)
            self._tell(self._derive(operator.feedback_rule, operator.mapping))
        self._gather_infos()
        self.state["score"] = int(self.state["won"])
        self.state["done"] = self.state["won"]
        return self.state, self.state["score"], self.state["done"]

    def _tell(self, text: str) -> None:
        self.state["feedback"] = self.state["raw"] = text

    def _derive(self, text: str, mapping: Mapping[Any, Any]) -> str:
        context = Context(self._pddl_state, self._entity_infos, mapping)
        return self._logic.grammar.derive(text, context)

    def _gather_infos(self) -> None:
        self.state["won"] = self._pddl_state.check_goal()
        self.state["lost"] = False
        # Where two operators read the same, TextWorld takes the first; so does setdefault.
        self._commands: dict[str, tuple[Any, Operator]] = {}
        for native in self._pddl_state.applicable():
            operator = self._tables.operators.get(native.id) or self._operator(native)
            command = operator.command
            if command is None:
                command = self._derive(operator.template, operator.mapping)
            self._commands.setdefault(command, (native, operator))
        self.state["admissible_commands"] = sorted(self._commands)
        if self.request_infos.facts:
            # Sorted: the order of a set of texts changes from process to process.
            facts = sorted(self._pddl_state.facts)
            self.state["facts"] = [self._get_human_readable_fact(fact) for fact in facts]

    def _operator(self, native: Any) -> Operator:
        action, *arguments = native.name.split()
        template = self._logic.actions[action].template
        operator = Operator(
            name=native.name,
            template=template,
            feedback_rule=self._logic.actions[action].feedback_rule,
            mapping={
                placeholder(name, kind): self._tables.variable(argument, kind)
                # Existential parameters come last and are not part of the operator's name.
                for (name, kind), argument in zip(
                    self._tables.translation.parameters[action], arguments, strict=False
                )
            },
            command=None,
        )
        if not self._logic.grammar.depends_on(template) & self._tables.translation.fluents:
            operator.command = self._derive(template, operator.mapping)
        self._tables.operators[native.id] = operator
        return operator
