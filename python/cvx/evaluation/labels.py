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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvx.arguments import Check, a_text, optional, whole, wrong
from cvx.errors import FileError, InvalidInputError
from cvx.types import DEFAULT_NAMESPACE, Cue, Vector


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


def _a_question(name: str, value: Any) -> str:
    if not a_text(name, value).strip():
        raise wrong(name, value, "what is asked")
    return str(value)


def _answers(name: str, value: Any) -> frozenset[int | str]:
    if not isinstance(value, list) or not all(type(one) in (int, str) for one in value):
        raise wrong(name, value, "a list of event ids or keys")
    return frozenset(value)


_KEYS: Mapping[str, Check] = {
    "query": _a_question,
    "gold": _answers,
    **dict.fromkeys(("time", "speaker"), optional(whole())),
    **dict.fromkeys(("group", "category", "namespace"), optional(a_text)),
}


def _label(row: Any) -> Label:
    if not isinstance(row, dict):
        raise TypeError(f"{type(row).__name__} instead of an object")
    unknown = set(row).difference(_KEYS)
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    told = {key: check(key, row.get(key)) for key, check in _KEYS.items()}
    # An empty category or namespace may be written as null, or left out.
    return Label(**{**told, **{key: told[key] or "" for key in ("category", "namespace")}})
