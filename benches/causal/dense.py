"""Councils over dense auto-linked graphs: quality and cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benches.causal.report import Figure, Report
from benches.precomputed import NoEmbedder
from cvx.councils import Council
from cvx.memory import Memory
from cvx.types import Event

EVENTS, DIM, CITIZENS, EACH, FIRST = 300, 64, 42, 200, 5
QUESTION, NOW = "the crisis", 320
WITNESS, LIKEST = "saw the direct cause", "the likest"
MUST_TIMES = 5.0
Rows = npt.NDArray[np.float64]


class Fixed:
    """A router that knows the vector of the question."""

    def __init__(self, vector: Rows) -> None:
        self._vector = vector

    async def embed(self, texts: list[str], /) -> Sequence[npt.ArrayLike]:
        return [self._vector for _ in texts]


def run(report: Report, *, count: int) -> None:
    """Ask councils about crises with hundreds of auto-linked ancestors.

    Parameters
    ----------
    report : Report
        Where the figures go.
    count : int
        How many graphs.
    """
    found: dict[str, list[tuple[bool, bool, float]]] = {"default": [], "tcmf-seed": []}
    linked = []
    for seed in range(count):
        memory, event, asked = crisis(seed)
        linked.append(len(memory.causes.graph().predecessors(event, 6)))
        for settings, rows in found.items():
            council = Council(memory, settings)
            streams, router = council.citizens(), Fixed(asked)
            begun = time.process_time()
            told = asyncio.run(
                council.retriever.retrieve(QUESTION, streams, NOW, "health", event, router=router)
            )
            taken = time.process_time() - begun
            first = [one.memory.text for one in told.recalled[:FIRST]]
            rows.append((WITNESS in first, LIKEST in first, taken))
    report.section(
        "councils on dense graphs",
        f"{count} graphs of {EVENTS} events linked by nearness and likeness, "
        f"{np.mean(linked):.0f} ancestors within six links; {CITIZENS} citizens of {EACH} memories",
    )
    base = float(np.median([taken for *_, taken in found["tcmf-seed"]]))
    for settings, rows in found.items():
        ours = settings == "default"
        direct, likest, taken = np.array(rows, float).T
        report.row(
            settings,
            Figure("direct cause in five", float(direct.mean()), 1.0 if ours else None),
            Figure("likest in five", float(likest.mean()), 1.0 if ours else None),
            Figure("ms", float(np.median(taken)) * 1e3, lower=True),
            Figure(
                "times the seed's",
                float(np.median(taken)) / base,
                MUST_TIMES if ours else None,
                lower=True,
            ),
        )


def crisis(seed: int) -> tuple[Memory, int, Rows]:
    """Make a memory of events and citizens; return it, the crisis, and the question's vector."""
    rng = np.random.default_rng(seed)
    topics = _unit(rng.normal(size=(12, DIM)))
    surface, cause = _near(topics[0], 0.8, rng), _unit(rng.normal(size=DIM))
    memory = Memory(embedder=NoEmbedder(DIM))
    rows = [_near(topics[rng.integers(12)], 0.8, rng) for _ in range(EVENTS)]
    told = [_event(f"event {at}", at, row, "", "health") for at, row in enumerate(rows)]
    told.append(_event("the direct cause", EVENTS, cause, "", "senate"))
    told.append(_event(QUESTION, EVENTS + 1, surface, "", "health"))
    ids = memory.add_many(told).tolist()
    graph = memory.causes.graph()
    for event in ids:
        if event != ids[-2]:
            graph.auto_link_predecessors(event)
    graph.link(int(ids[-2]), int(ids[-1]), 1.0)
    seen = []
    for number in range(CITIZENS):
        for at in range(EACH):
            row = _near(topics[rng.integers(12)], rng.uniform(0.4, 0.8), rng)
            seen.append(_event(f"memory {number}.{at}", at, row, f"citizen {number}"))
    seen.append(_event(WITNESS, EVENTS, _near(cause, 0.85, rng), "citizen 3"))
    seen.append(_event(LIKEST, EVENTS, _near(surface, 0.97, rng), "citizen 5"))
    memory.add_many(seen)
    return memory, int(ids[-1]), surface


def _event(text: str, time: int, row: Rows, citizen: str, institution: str = "") -> Event:
    about = {"institution": institution} if institution else {}
    vector = row.astype(np.float32)
    return Event(text, timestamp=time, vector=vector, namespace=citizen, metadata=about)


def _unit(rows: Rows) -> Rows:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _near(subject: Rows, cosine: float, rng: np.random.Generator) -> Rows:
    """Draw a direction at exactly this cosine from another."""
    aside = rng.normal(size=len(subject))
    aside = _unit(aside - (aside @ subject) * subject)
    return np.asarray(cosine * subject + np.sqrt(1 - cosine**2) * aside)
