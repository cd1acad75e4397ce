"""Validates values before they are stored: text, time, metadata, reward, vector, tags.

What passes survives recall, reopening, export and import; what would not is refused with an error
that names the value, the bound and the cure. The record's writer, the loop, imports and the doctor
ask the same functions.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cvx.arguments import (
    Check,
    a_share,
    a_text,
    above_zero,
    among,
    an_outcome,
    check_fields,
    number,
    optional,
    whole,
    wrong,
)
from cvx.errors import (
    InvalidInputError,
    InvalidVectorError,
)
from cvx.types import ENTITY_KEY, Cue, Edge, Episode, Event, Vector

VISIBILITIES = ("private", "shared", "public")
STATES = ("active", "archived", "quarantined")
FURTHEST = 2**62
"""The bound of a timestamp, both ways: differences of two still have 64 bits."""
LAST_RECORDED = 253_402_300_800_000_000
"""The end of the year 9999 in microseconds: no change was recorded later."""
DEEPEST = 32
"""So many levels may metadata have; JSON of any depth overflows somebody's stack."""
SHORTEST_VECTOR, LONGEST_VECTOR = 1e-12, 1e18
"""Bounds of a vector's length, so that squares fit a float32; the lower for directions alone."""

# Half of a surrogate pair cannot be written as UTF-8; a NUL ends a text for much that reads it.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_an_entity = whole(0)
_an_integer = whole()
storable_time = whole(-FURTHEST, FURTHEST)
"""The check of a timestamp, an int in [-2**62, 2**62]."""


def storable_text(name: str, value: Any) -> str:
    r"""Return a text if every character of it can be stored.

    Raises
    ------
    InvalidInputError
        Not a string, or with a NUL or half of a surrogate pair in it.

    Examples
    --------
    >>> storable_text("text", "a \ud83d")
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: text has '\ud83d' at 2: replace NUL and lone surrogates first
    """
    if not isinstance(value, str):
        raise wrong(name, value, "a str")
    found = _UNSTORABLE.search(value) if not value.isascii() or "\0" in value else None
    if found is not None:
        raise InvalidInputError(
            f"{name} has {found[0]!a} at {found.start()}: replace NUL and lone surrogates first"
        )
    return value


optional_text = optional(storable_text)


def storable_namespace(name: str, value: Any) -> str:
    """Return the name of a namespace if it can be one: a text without U+001F.

    Raises
    ------
    InvalidInputError
        It cannot be one.
    """
    if "\x1f" in storable_text(name, value):
        raise InvalidInputError(f"{name} is {value!r}: give a string without U+001F")
    return str(value)


def storable_metadata(name: str, value: Any) -> dict[str, Any]:
    """Return a copy of metadata that JSON gives back as it is.

    Parameters
    ----------
    name : str
        What it is called in an error.
    value : mapping
        With strings as keys, and as values strings, ints of 64 bits, finite floats, True, False,
        None, or lists and mappings of these, at most 32 levels deep. Tuples become lists.

    Raises
    ------
    InvalidInputError
        Something else is in it; the error says where.

    Examples
    --------
    >>> storable_metadata("metadata", {"turn": 3, "at": [float("nan")]})
    Traceback (most recent call last):
    cvx.errors.InvalidInputError: metadata['at'][0] is nan: give a finite number
    """
    if not isinstance(value, Mapping):
        raise wrong(name, value, "a mapping, such as a dict")
    return _json_object(name, value, 0)


def _json_object(name: str, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {
        storable_text(f"a key of {name}", key): _json_value(f"{name}[{key!a}]", one, depth + 1)
        for key, one in value.items()
    }


def _json_value(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str(storable_text(name, value))
    if isinstance(value, int):
        return _an_integer(name, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise wrong(name, value, "a finite number")
        return float(value)
    if not isinstance(value, Mapping | list | tuple):
        raise wrong(name, value, "what JSON can hold")
    if depth >= DEEPEST:
        raise InvalidInputError(
            f"the metadata is more than {DEEPEST} levels deep: flatten it, or store it as a text"
        )
    if isinstance(value, Mapping):
        return _json_object(name, value, depth)
    return [_json_value(f"{name}[{at}]", one, depth + 1) for at, one in enumerate(value)]


def check_reward(reward: Any) -> float:
    """Return a reward as a float if it lies in [0, 1]; True is 1.

    Raises
    ------
    InvalidInputError
        It is outside, or not a number.
    """
    return an_outcome("reward", reward)


def storable_vector(
    name: str, value: Any, dim: int, metric: str, embedder: str = "its model"
) -> Vector:
    """Return a vector that an index of this dimension and metric takes, as float32.

    Raises
    ------
    InvalidVectorError
        It takes none such.
    """
    try:
        with np.errstate(over="ignore"):
            row = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(name, value, f"{dim} numbers", InvalidVectorError) from error
    if row.shape != (dim,):
        raise InvalidVectorError(
            f"{name} has shape {row.shape}, the memory holds ({dim},): embed it with {embedder}"
        )
    if not np.isfinite(row).all():
        raise InvalidVectorError(f"{name} holds NaN or infinity: give finite numbers")
    length = float(np.linalg.norm(row.astype(np.float64)))
    if metric == "cosine" and length == 0:
        raise InvalidVectorError(f"{name} is zero and has no direction: give another one")
    if length > LONGEST_VECTOR or (metric == "cosine" and length < SHORTEST_VECTOR):
        raise InvalidVectorError(
            f"{name} has length {length:e}: scale it to between {SHORTEST_VECTOR:e} and "
            f"{LONGEST_VECTOR:e}"
        )
    return row


def storable_tags(name: str, value: Any) -> tuple[str, ...]:
    """Return labels, each of which can be stored; a single string is refused."""
    if isinstance(value, str):
        raise InvalidInputError(f"{name} is the string {value!a}: give several strings")
    return tuple(storable_text(f"one of {name}", one) for one in value)


_EVENT: Mapping[str, Check] = {
    **dict.fromkeys(("text", "kind", "source"), storable_text),
    **dict.fromkeys(("action", "key"), optional_text),
    "namespace": storable_namespace,
    "timestamp": storable_time,
    "tags": storable_tags,
    "metadata": lambda name, value: storable_metadata(name, value) if value else {},
    "reward": optional(an_outcome),
    "trust": a_share,
    "salience": optional(a_share),
    "visibility": among(*VISIBILITIES),
    "state": among(*STATES),
}


def check_event(event: Any) -> None:
    """Raise what is wrong with an event, if it cannot be stored; its vector is another matter.

    Raises
    ------
    InvalidInputError and its subclasses
        A field that cannot be stored, by name.
    """
    if not isinstance(event, Event):
        raise InvalidInputError(f"{event!r} is no Event: give one, or a text to add")
    check_fields(event, **_EVENT)
    _check_entity(event)


def _check_entity(thing: Event | Episode) -> None:
    if thing.entity is not None:
        storable_text("entity", thing.entity)
        if not thing.entity:
            raise InvalidInputError("entity is '': give a name, or leave it out")
    if isinstance(thing.metadata, Mapping) and ENTITY_KEY in thing.metadata:
        raise InvalidInputError(f"metadata has a key {ENTITY_KEY!r}: give entity=")
    _an_entity("the number of an entity", thing.entity_id)


def check_episode(episode: Episode) -> None:
    """Raise what is wrong with an episode, its steps apart, if it cannot be stored."""
    check_fields(
        episode,
        goal=storable_text,
        kind=storable_text,
        task_type=optional_text,
        namespace=storable_namespace,
        metadata=storable_metadata,
    )
    _check_entity(episode)


def check_edge(edge: Edge) -> None:
    """Raise what is wrong with the words of a link, if they cannot be stored."""
    check_fields(edge, kind=storable_text, why=storable_text, evidence=storable_text)
    evidence_counts(edge.evidence)


EVIDENCE_KINDS = (
    *("stated", "confirmed", "judged"),
    *("precedence", "repetition", "counterexample", "granger"),
)
"""What evidence on a link may be of; see ``cvx.causal.evidence``."""
_CASES = number(0.0, 1e15)


def evidence_counts(
    text: str,
) -> tuple[float, float, list[tuple[Any, ...]]] | None:
    """Return the prior and the observations of the evidence on a link, None for other words.

    Parameters
    ----------
    text : str
        ``{"prior": [mean, strength], "observations": [[kind, supports, counters, note], ...]}``,
        or what a person wrote.

    Raises
    ------
    InvalidInputError
        JSON of this form whose numbers or kinds cannot be.
    """
    try:
        read = json.loads(text)
        mean, strength = read["prior"]
        rows = [(*row, "")[:4] if len(row) in (3, 4) else () for row in read["observations"]]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if () in rows:
        return None
    for kind, supports, counters, note in rows:
        if kind not in EVIDENCE_KINDS:
            raise InvalidInputError(f"evidence of kind {kind!r:.60}: written by a later cvx")
        _CASES("supports", supports)
        _CASES("counters", counters)
        a_text("a note of the evidence", note)
    return a_share("prior_mean", mean), above_zero("prior_strength", strength), rows


def check_cue(cue: Cue) -> None:
    """Raise what is wrong with the words of a cue, if they cannot be stored with a decision."""
    check_fields(
        cue,
        goal=storable_text,
        step=storable_text,
        text=storable_text,
        questions=storable_tags,
        task_type=optional_text,
    )


def cleaned(value: Any) -> Any:
    """Return a value of text or JSON in which what cannot be stored is replaced.

    NUL and halves of surrogate pairs become U+FFFD, numbers that JSON cannot hold texts or None.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list | tuple):
        return [cleaned(one) for one in value]
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(one) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def names_another_file(database: Path) -> bool:
    """Return whether the rollback journal of a database names a file, which SQLite would delete.

    Only a transaction over several databases writes such a name, and cvx makes none.

    References
    ----------
    SQLite, "Database File Format", section 3: the super-journal.
    """
    name, how = f"{database}-journal", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        journal = open(name, "rb", opener=lambda path, _: os.open(path, how))  # noqa: SIM115
    except OSError:
        return False
    with journal:
        # A pipe cannot be sought in: SQLite would wait for it.
        size = os.fstat(journal.fileno()).st_size
        journal.seek(max(size - len(_JOURNAL_MAGIC), 0))
        return journal.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
