"""A newcomer's simulation: an island, its council, and what each of its people saw."""

import asyncio
from pathlib import Path

import cvx
from cvx.councils import Council
from cvx.councils.crisis_context import TCMFContext


def test_a_council_remembers_who_saw_what_led_to_the_wreck(tmp_path: Path) -> None:
    memory = cvx.Memory.open(tmp_path / "island", embedder="lexical", clock="ticks")
    island = Council(memory)
    assert list(island) == []
    nothing = asyncio.run(island.context("Why is the lighthouse dark?"))
    assert nothing.recalled == ()
    assert nothing.degraded

    oil = island.decision("The council sold the whale oil", 10, "council")
    dark = island.crisis("The lighthouse went dark", 14, "keeper", causes=[oil])
    wreck = island.crisis("A ship ran onto the reef", 15, "harbour", causes=[dark])
    island["Mira"].saw("Barrels of whale oil were carried away", 10, importance=8)
    island["Otto"].saw("The cherries are ripe", 14)
    assert list(island) == ["Mira", "Otto"]
    assert "Mira" in island
    assert "Zoe" not in island

    def ask() -> TCMFContext:
        return asyncio.run(island.context("A ship ran onto the reef", crisis=wreck, k=2))

    assert ask().recalled[0].name == "Mira"
    assert [event.text for event in ask().chain] == [
        "The council sold the whale oil",
        "The lighthouse went dark",
    ]
    assert str(memory.why("the ship on the reef")) == (
        "The council sold the whale oil, so the lighthouse went dark. "
        "That is why a ship ran onto the reef."
    )
    memory.add("A storm came", timestamp=20)
    assert memory.add("The sea is calm").timestamp == 21
    memory.close()

    with cvx.Memory.open(tmp_path / "island") as memory:
        island = Council(memory)
        assert ask().recalled[0].name == "Mira"
        assert list(island) == ["Mira", "Otto"]
