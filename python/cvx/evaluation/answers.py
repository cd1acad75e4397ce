"""What is asked during an evaluation, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cvx.errors import InvalidInputError
from cvx.evaluation.labels import Label
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.types import Cue, Filter

CHARACTERS_A_TOKEN = 4
"""A rule of thumb for English and subword vocabularies; counts compare, and are not exact."""


@dataclass(frozen=True)
class Answer:
    """What a ranker says to one question.

    Parameters
    ----------
    ranked : tuple of int
        Event ids, best first, each once; empty where it says nothing.
    tokens : int
        Estimated size of the texts of ``ranked``.
    answerable : float, optional
        Probability that the memory holds an answer at all, in [0, 1].
    """

    ranked: tuple[int, ...]
    tokens: int = 0
    answerable: float | None = None


Ranker: TypeAlias = Callable[[Label, int], Answer]
"""From a question and how many events may come back to an answer."""


def tokens_of(texts: Sequence[str]) -> int:
    """Estimate how many tokens some texts are.

    Examples
    --------
    >>> tokens_of(["abcd", "ef"])
    2
    """
    return sum(-(-len(text) // CHARACTERS_A_TOKEN) for text in texts)


def cue_of(label: Label) -> Cue:
    """Return what is asked."""
    return Cue(text=label.query, vector=label.vector, time=label.time)


def where_of(label: Label) -> Filter | None:
    """Return whose events may answer."""
    return None if label.speaker is None else Filter(entities=[str(label.speaker)])


def recalling(memory: Memory, pipeline: Pipeline | None = None) -> Ranker:
    """Return a ranker that recalls.

    Parameters
    ----------
    memory : Memory
        What is asked.
    pipeline : Pipeline, optional
        How; default that of the memory.
    """
    plan = pipeline or memory.learning.pipeline

    def rank(label: Label, k: int) -> Answer:
        asked, where = cue_of(label), where_of(label)
        hits = memory.recall(asked, k, namespace=label.namespace, where=where, pipeline=plan)
        events = [hit.event for hit in hits if hit.event is not None]
        return Answer(
            tuple(event.event_id for event in events if event.event_id is not None),
            tokens_of([event.text for event in events]),
            hits.trace.answerable,
        )

    return rank


def resolved(memory: Memory, labels: Sequence[Label]) -> list[frozenset[int]]:
    """Return the gold of each label as event ids.

    Raises
    ------
    InvalidInputError, UnknownError
        An id, or a key, that the memory does not know.
    """
    known = {event for (event,) in memory.record.query("SELECT event_id FROM events")}
    out = []
    for number, label in enumerate(labels, start=1):
        ids = set[int]()
        for item in label.gold:
            event = item
            if isinstance(item, str):
                event = memory.get(key=item, namespace=label.namespace).event_id or 0
            if event not in known:
                raise InvalidInputError(
                    f"label {number} names the event {item!r}, which the memory does not hold: "
                    "label the events of this store"
                )
            ids.add(int(event))
        out.append(frozenset(ids))
    return out
