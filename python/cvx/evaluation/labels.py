"""Labelled questions, one JSON object a line: a question and the events that answer it.

| key | is |
|---|---|
| query | what is asked |
| gold | the events that answer: ids, or the keys they were added with; empty: nothing does |
| group | what belongs together and must not be split between training and measuring; optional |
| category | reported by itself; optional |
| time | when it is asked, in the store's unit; optional |
| speaker | the entity whose events alone may answer; optional |
| namespace | which memory is asked; optional |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvx.errors import FileError, InvalidInputError
from cvx.types import DEFAULT_NAMESPACE, Cue, Vector

_KINDS = {"time": int, "speaker": int, "group": str, "category": str, "namespace": str}
_KEYS = frozenset(("query", "gold", *_KINDS))


@dataclass(frozen=True, kw_only=True)
class Label:
    """One question, and what answers it.

    Parameters
    ----------
    query : str
        What is asked.
    gold : frozenset of int or str
        Ids or keys of the events that answer; empty where the memory holds no answer.
    group : str, optional
        What it belongs to; ``None`` is a group of its own.
    category : str, default ""
        Reported by itself.
    time : int, optional
        When it is asked.
    speaker : int, optional
        The entity whose events alone may answer.
    namespace : str, default ""
        Which memory is asked.
    vector : ndarray of shape (dim,), optional
        Where the question lies; by default it is embedded. Not part of the file.
    cue : Cue, optional
        The whole cue, where it is more than a question. Not part of the file.
    """

    query: str
    gold: frozenset[int | str]
    group: str | None = None
    category: str = ""
    time: int | None = None
    speaker: int | None = None
    namespace: str = DEFAULT_NAMESPACE
    vector: Vector | None = None
    cue: Cue | None = None


def read_labels(path: Path) -> list[Label]:
    """Read a labelled file.

    Raises
    ------
    FileError
        It is not there, or cannot be read.
    InvalidInputError
        A line that is no such object, named by its number; no line at all, or no text.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        why = error.strerror
        raise FileError(f"{path} cannot be read ({why}): give a file of labels") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path.name} is no text in UTF-8 ({error}): save it so") from error
    out = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                out.append(_label(json.loads(line)))
            except (ValueError, TypeError) as error:
                raise InvalidInputError(
                    f"{path.name}, line {number}: {error}: see cvx.evaluation.labels"
                ) from error
    if not out:
        raise InvalidInputError(f"{path.name} holds no labels: give one JSON object a line")
    return out


def groups_of(labels: Sequence[Label]) -> list[str]:
    """Return the group of each label; one without is a group of its own."""
    return [f"#{at}" if label.group is None else label.group for at, label in enumerate(labels)]


def _label(row: Any) -> Label:
    if not isinstance(row, dict):
        raise TypeError(f"{type(row).__name__} instead of an object")
    unknown = set(row) - _KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    query, gold = row.get("query"), row.get("gold")
    if not isinstance(query, str) or not query.strip():
        raise ValueError("query is no text")
    if not isinstance(gold, list) or not all(_is_id(item) for item in gold):
        raise ValueError("gold is no list of event ids or keys")
    for key, kind in _KINDS.items():
        value = row.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"{key} is {value!r}, no {kind.__name__}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{key} is {value}, which does not fit into 64 bits")
    return Label(
        query=query,
        gold=frozenset(gold),
        group=row.get("group"),
        category=row.get("category") or "",
        time=row.get("time"),
        speaker=row.get("speaker"),
        namespace=row.get("namespace") or DEFAULT_NAMESPACE,
    )


def _is_id(item: object) -> bool:
    return isinstance(item, (int, str)) and not isinstance(item, bool)
