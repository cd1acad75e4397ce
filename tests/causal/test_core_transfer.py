"""A core's events in a memory, and a memory's in a core."""

from __future__ import annotations

from pathlib import Path

import pytest

from cvx.causal import CausalMemoryCore, LLMJudge
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.memory.transfer import from_duckdb, to_duckdb


@pytest.mark.requirement("X9", "X5")
def test_a_core_file_becomes_a_memory_that_tells_the_same_chain(tmp_path: Path) -> None:
    path = tmp_path / "core.db"
    embedder = LexicalEmbedder(dim=64)
    with CausalMemoryCore(str(path), lambda _: "Yes. Water came in.", embedder) as core:
        core.add_event("It rained all night.")
        core.add_event("The cellar flooded.")
        told = core.get_context("cellar")
    assert told == "The cellar flooded. This was because it rained all night (water came in)."
    memory = Memory(embedder=embedder)
    rain, flood = from_duckdb(memory, path)
    (step,) = memory.why(flood).steps
    assert (step.event.event_id, step.edge.why) == (rain, "Water came in.")
    assert str(memory.why(flood)) == ("It rained all night, so the cellar flooded (water came in).")


@pytest.mark.requirement("X9", "X5")
def test_a_memory_becomes_a_core_file_that_goes_on(tmp_path: Path) -> None:
    embedder = LexicalEmbedder(dim=64)
    memory = Memory(embedder=embedder)
    rain = memory.add("It rained all night.", timestamp=1_000_000).id
    flood = memory.add("The cellar flooded.", timestamp=2_000_000).id
    memory.link(rain, flood, weight=0.8, why="the drain is too small")
    path = tmp_path / "memory.duckdb"
    to_duckdb(memory, path)
    judge = LLMJudge(lambda prompt: "Yes. The water stayed." if "cellar" in prompt else "No.")
    with CausalMemoryCore(str(path), judge, embedder) as core:
        assert core.get_context("cellar") == (
            "The cellar flooded. This was because it rained all night (the drain is too small)."
        )
        core.add_event("The books of the cellar are mouldy.")
        assert core.events()[-1].cause_id == flood
        assert [event.text for event in core.chain(core.events()[-1].event_id)] == [
            "It rained all night.",
            "The cellar flooded.",
            "The books of the cellar are mouldy.",
        ]
