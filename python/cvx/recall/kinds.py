"""Kinds of memory: what is known, what happened, how something is done."""

from __future__ import annotations

from typing import Literal

from cvx.types import Event

MemoryKind = Literal["semantic", "episodic", "procedural"]

SHORT: dict[str, str] = {"semantic": "sem", "episodic": "epi", "procedural": "proc"}

_SEMANTIC = frozenset(
    ("semantic", "fact", "trait", "preference", "character", "scene", "character_knowledge",
     "reflection", "inference", "summary")
)  # fmt: skip
_PROCEDURAL = frozenset(("procedural", "skill", "procedure", "checklist", "plan"))
_INFERRED = frozenset(("reflection", "inference", "summary"))


def kind_of(event: Event | None) -> MemoryKind:
    """Return the kind of memory an event is, from its label; what says nothing is episodic.

    Examples
    --------
    >>> kind_of(Event(entity_id=0, timestamp=0, kind="reflection"))
    'semantic'
    """
    label = "" if event is None else event.kind.casefold()
    if label in _SEMANTIC:
        return "semantic"
    return "procedural" if label in _PROCEDURAL else "episodic"


def inferred(event: Event) -> bool:
    """Return whether an event is a conclusion rather than something observed.

    Its kind says so, or ``inferred`` in its metadata.
    """
    return event.kind.casefold() in _INFERRED or bool(event.metadata.get("inferred"))
