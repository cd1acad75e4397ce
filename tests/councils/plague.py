"""The plague of the blueprint: who saw what, and what led to it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from cvx.causal import CausalGraph
from cvx.councils import PRESETS, TCMF, Citizen, MemoryStream, TCMFContext, TCMFRetriever

SEED = PRESETS["tcmf-seed"]
QUESTION = "Plague outbreak in the market district"
REFUSAL = "City refused to fund quarantine infrastructure two weeks ago"
SYMPTOMS = "Merchants reported strange symptoms near the well"
SICK = "Children are sick, clinics are full"


class Fixed:
    """A router that knows the vector of every question."""

    def __init__(self, vector: list[float]) -> None:
        self.vector = vector
        self.asked: list[list[str]] = []

    async def embed(self, texts: list[str], /) -> list[list[float]]:
        self.asked.append(texts)
        return [self.vector for _ in texts]


def retrieved(
    citizens: Mapping[str, Citizen | MemoryStream],
    graph: CausalGraph | None = None,
    settings: TCMF | str = SEED,
    **options: Any,
) -> TCMFContext:
    usual: dict[str, Any] = {"tick": 80, "institution_id": "health", "crisis_event_id": "plague"}
    options = usual | options
    return asyncio.run(TCMFRetriever(graph, settings).retrieve(QUESTION, citizens, **options))


def plague(graph: CausalGraph | None = None) -> CausalGraph:
    graph = CausalGraph() if graph is None else graph
    axis: dict[str, list[float]] = {
        "cuts": [0, 0.6, 0.8],
        "refusal": [0, 1, 0],
        "cases": [-0.6, 0, 0.8],
        "plague": [1, 0, 0],
    }
    for name, text, tick in [
        ("cuts", "Infrastructure budget cuts passed by Senate", 60),
        ("refusal", "Quarantine proposal rejected in emergency session", 65),
        ("cases", "First cases reported in the eastern ward", 72),
        ("plague", QUESTION, 80),
    ]:
        graph.add_event(name, text, tick, institution_id="senate", embedding=axis[name])
    for cause, effect in (("cuts", "refusal"), ("refusal", "cases"), ("cases", "plague")):
        graph.link(cause, effect)
    return graph


def witnesses() -> dict[str, Citizen | MemoryStream]:
    adisa, reza = MemoryStream("adisa"), MemoryStream("reza")
    adisa.add(REFUSAL, 66, importance=8, embedding=[0.2, math.sqrt(0.96), 0])
    reza.add(SYMPTOMS, 78, importance=5, embedding=[0.8, 0, -0.6])
    reza.add(SICK, 78, importance=5, embedding=[0.6, 0, -0.8])
    return {"adisa": Citizen("Mayor Adisa", adisa), "reza": Citizen("Merchant Reza", reza)}
