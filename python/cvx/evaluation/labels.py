"""Labelled questions: what is asked, and the events that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cvx.types import DEFAULT_NAMESPACE, Cue, Vector


@dataclass(frozen=True, kw_only=True)
class Label:
    """One question, and what answers it.

    Parameters
    ----------
    query : str
        What is asked.
    gold : frozenset of int
        Ids of the events that answer; empty where the memory holds no answer.
    group : str, optional
        What belongs together and must not be split between fitting and measuring; ``None`` is a
        group of its own.
    category : str, default ""
        Reported by itself.
    time : int, optional
        When it is asked, in the store's unit.
    speaker : int, optional
        The entity whose events alone may answer.
    namespace : str, default ""
        Which memory is asked.
    vector : ndarray of shape (dim,), optional
        Where the question lies; by default it is embedded.
    cue : Cue, optional
        The whole cue, where it is more than a question.
    """

    query: str
    gold: frozenset[int]
    group: str | None = None
    category: str = ""
    time: int | None = None
    speaker: int | None = None
    namespace: str = DEFAULT_NAMESPACE
    vector: Vector | None = None
    cue: Cue | None = None


def groups_of(labels: Sequence[Label]) -> list[str]:
    """Return the group of each label; one without is a group of its own."""
    return [f"#{at}" if label.group is None else label.group for at, label in enumerate(labels)]
