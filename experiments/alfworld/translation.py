"""PDDL to SAS, once per content.

TextWorld translates a game's PDDL four times before the first observation (at load and again at
reset, each time with and without optimisation), a third of a second each. The translation is a
pure function of two texts, so it is kept: in memory, and in a folder if the caller names one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.alfworld.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMAT = 1
_REMEMBERED = 512
_memory: OrderedDict[str, Translation] = OrderedDict()

Fact = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Translation:
    """What TextWorld reads from a translated task.

    Attributes
    ----------
    key : str
        SHA-256 of domain and problem.
    sas : bytes
        The task in fast-downward's format, zlib-compressed (about 900 kB of text).
    types : tuple of (name, supertypes)
        The type hierarchy in the order of declaration.
    objects : dict of str to str
        The type of every object.
    facts : tuple of (predicate, arguments)
        Facts of the initial state, static ones included, ``=`` and costs left out.
    parameters : dict of str to tuple of (name, type)
        Parameters of every action, without the question mark.
    fluents : frozenset of str
        Predicates that some action changes. All others are constant for the life of a game.
    """

    key: str
    sas: bytes
    types: tuple[tuple[str, tuple[str, ...]], ...]
    objects: dict[str, str]
    facts: tuple[Fact, ...]
    parameters: dict[str, tuple[tuple[str, str], ...]]
    fluents: frozenset[str]


def translate(domain: str, problem: str, cache: Path | None = None) -> Translation:
    """Translate a PDDL task, or recall its translation.

    Parameters
    ----------
    domain, problem : str
        PDDL texts.
    cache : Path, optional
        Folder of earlier translations; it is created when missing. A damaged entry is replaced.

    Returns
    -------
    Translation
    """
    key = hashlib.sha256(f"{_FORMAT}\0{domain}\0{problem}".encode()).hexdigest()
    known = _memory.get(key)
    if known is not None:
        _memory.move_to_end(key)
        return known
    path = None if cache is None else cache / "sas" / f"{key}.z"
    translation = None if path is None else _read(path, key)
    if translation is None:
        translation = _translate(domain, problem, key)
        if path is not None:
            _write(path, translation)
    _memory[key] = translation
    if len(_memory) > _REMEMBERED:
        _memory.popitem(last=False)
    return translation


@contextmanager
def _argv_kept() -> Iterator[None]:
    # fast_downward.pddl2sas overwrites sys.argv, which its option parser reads on import.
    argv = sys.argv
    try:
        yield
    finally:
        sys.argv = argv


def _translate(domain: str, problem: str, key: str) -> Translation:
    with _argv_kept():
        import fast_downward  # type: ignore[import-untyped]

        task, sas = fast_downward.pddl2sas(domain, problem)
    facts = [fact for fact in map(_initial_fact, task.init) if fact is not None]
    return Translation(
        key=key,
        sas=zlib.compress(sas.encode(), 1),
        types=tuple((t.name, tuple(t.supertype_names)) for t in task.types),
        objects={o.name: o.type_name for o in task.objects},
        facts=tuple(facts),
        parameters={
            action.name: tuple((p.name.strip("?"), p.type_name) for p in action.parameters)
            for action in task.actions
        },
        fluents=frozenset(
            [effect.literal.predicate for action in task.actions for effect in action.effects]
            + [axiom.name for axiom in task.axioms]
        ),
    )


def _initial_fact(atom: Any) -> Fact | None:
    predicate = getattr(atom, "predicate", None)
    if predicate is not None:
        return None if predicate == "=" else (predicate, tuple(atom.args))
    # An assignment. PddlState keeps those with a value that is not a number; costs are numbers.
    value = str(atom.expression.value)
    if atom.fluent.symbol == "total-cost" or value.isdigit():
        return None
    return (value, tuple(atom.fluent.args))


def _read(path: Path, key: str) -> Translation | None:
    try:
        header, _, sas = path.read_bytes().partition(b"\n")
        fields = json.loads(zlib.decompress(bytes.fromhex(header.decode())))
        zlib.decompress(sas)
        if fields["key"] != key:
            return None
        return Translation(
            key=key,
            sas=sas,
            types=tuple((name, tuple(parents)) for name, parents in fields["types"]),
            objects=fields["objects"],
            facts=tuple((name, tuple(args)) for name, args in fields["facts"]),
            parameters={
                name: tuple((p, t) for p, t in pairs)
                for name, pairs in fields["parameters"].items()
            },
            fluents=frozenset(fields["fluents"]),
        )
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None


def _write(path: Path, translation: Translation) -> None:
    fields = asdict(translation)
    sas = fields.pop("sas")
    fields["fluents"] = sorted(fields["fluents"])
    header = zlib.compress(json.dumps(fields).encode(), 6).hex().encode()
    write_whole(path, header + b"\n" + sas)
