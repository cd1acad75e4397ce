"""How much of the evidence gets into the prompt, for several budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from benches.recalling.baselines import baselines
from cvx.evaluation import Label
from cvx.memory import Memory
from cvx.render.block import entries_of
from cvx.types import Event

BUDGETS = (250, 500, 1_000, 2_000)
_RANKED = 200


def blocks(
    memory: Memory, labels: Sequence[Label], gold: Sequence[frozenset[int]]
) -> Mapping[str, list[float]]:
    """Return the share of evidence turns whose whole text is shown, by way and budget.

    The mean over the questions, as recall is: ``Memory.context`` as it is shipped, the same ranking
    and the nearest vectors printed one turn a line with its date and speaker.
    """
    ids = [event for (event,) in memory.record.query("SELECT event_id FROM events")]
    events = {event.id: event for event in memory.record.whole_events(ids)}
    dense = baselines(memory)["dense"]
    found: dict[str, list[list[float]]] = {"context": [], "plain lines": [], "dense lines": []}
    for label, wanted in zip(labels, gold, strict=True):
        sought = [events[one] for one in wanted]
        hits = memory.recall(label.query, _RANKED, namespace=label.namespace)
        same = [hit.event for hit in hits if hit.event is not None]
        near = [events[one] for one in dense(label, _RANKED).ranked]
        shown = {
            "context": [
                [
                    text
                    for texts in entries_of(
                        memory.context(label.query, size, namespace=label.namespace)
                    )
                    for text in texts
                ]
                for size in BUDGETS
            ],
            "plain lines": [_lines(same, size) for size in BUDGETS],
            "dense lines": [_lines(near, size) for size in BUDGETS],
        }
        for name, texts in shown.items():
            found[name].append([_held(one, sought) for one in texts])
    return {name: np.mean(rows, axis=0).tolist() for name, rows in found.items()}


def _held(texts: Iterable[str], wanted: Sequence[Event]) -> float:
    shown = {_plain(one) for one in texts}
    return float(np.mean([_plain(event.text) in shown for event in wanted]))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _lines(events: Iterable[Event], tokens: int) -> list[str]:
    """Return the texts of as many lines "[date] speaker: text" as there is room for."""
    texts: list[str] = []
    room = 4 * tokens
    for event in events:
        day = datetime.fromtimestamp(event.timestamp / 1e6, UTC).strftime("%Y-%m-%d")
        room -= len(f"[{day}] {event.metadata['speaker']}: {event.text}\n".encode())
        if room < 0:
            break
        texts.append(event.text)
    return texts
