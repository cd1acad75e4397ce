"""A run that is recorded: every kind of write, with what the store holds after each.

    TRACE_ROOT=DIR TRACE_LOG=FILE LD_PRELOAD=trace.so python workload.py DIR

After each call it appends a line to ``DIR/acks``: what the store holds now, and the files that it
has written whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cvx.causal import CausalMemoryCore, RuleJudge
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.memory.reembed import reembed
from cvx.memory.transfer import import_export
from cvx.types import Event

DIM = 64


def embedder() -> LexicalEmbedder:
    """Return the embedder of the recorded store; small, so that states are."""
    return LexicalEmbedder(dim=DIM)


def held(memory: Memory) -> dict[str, Any]:
    """Return all that a store holds, as plain values."""
    events = sorted(memory.record.events(), key=lambda event: event.id)
    rows = ([e.id, e.text, e.state, e.reward, e.kind, [*e.tags], e.salience] for e in events)
    links = ([e.from_node, e.to_node, e.kind, e.weight] for e in memory.record.links())
    return {"events": list(rows), "links": sorted(links)}


def told(core: CausalMemoryCore) -> list[list[Any]]:
    """Return the events of a core, as plain values."""
    return [[row.event_id, row.effect_text, row.cause_id] for row in core.events()]


def run(root: Path) -> None:
    """Write, and say after each call what is there."""
    acks = os.open(root / "acks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    line: dict[str, Any] = {"stores": {}, "files": {}, "core": []}

    def acknowledge(memory: Memory | None = None, store: str = "store") -> None:
        if memory is not None:
            line["stores"][store] = held(memory)
        os.write(acks, (json.dumps(line) + "\n").encode())

    rng = np.random.default_rng(0)
    memory = Memory.open(root / "store", embedder=embedder())
    acknowledge(memory)
    added = []
    for number in range(6):
        added.append(memory.add(f"the {number}th note", key=f"k{number}", tags=["note"]))
        acknowledge(memory)
    memory.add("the 2nd note, told anew", key="k2")
    acknowledge(memory)
    memory.update(added[3], tags=["note", "late"], salience=0.5)
    acknowledge(memory)
    memory.link(added[0], added[1], "caused", why="one came of the other")
    acknowledge(memory)
    memory.add_many(
        [Event(timestamp=at, text=f"a long line {at} " + "x" * 700) for at in range(12)]
    )
    acknowledge(memory)
    block = memory.context("the 4th note", 200)
    memory.feedback(block, helped=True)
    acknowledge(memory)
    memory.admin.snapshot()
    acknowledge(memory)
    memory.forget([added[4]])
    acknowledge(memory)
    memory.erase([added[5]])
    acknowledge(memory)
    with memory.admin.transaction():
        first = memory.add("both or neither: one", vector=rng.normal(size=DIM).astype(np.float32))
        second = memory.add("both or neither: two")
        memory.link(first, second, "caused")
    acknowledge(memory)
    memory.admin.compact()
    acknowledge(memory)
    memory.admin.export(root / "all.jsonl")
    line["files"]["all.jsonl"] = hashlib.sha256((root / "all.jsonl").read_bytes()).hexdigest()
    acknowledge(memory)
    memory.close()
    import_export(root / "second", root / "all.jsonl")
    with Memory.open(root / "second") as copy:
        acknowledge(copy, "second")
    reembed(root / "store", LexicalEmbedder(dim=DIM // 2))
    memory = Memory.open(root / "store")
    acknowledge(memory)
    memory.add("after it was opened again")
    acknowledge(memory)
    memory.close()
    core = CausalMemoryCore(root / "core.db", RuleJudge(), embedder())
    acknowledge()
    for text in ("The drain was blocked.", "The cellar flooded because the drain was blocked."):
        core.add_event(text)
        line["core"] = told(core)
        acknowledge()
    core.close()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
