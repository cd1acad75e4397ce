"""How long another process waits for the lock."""

from __future__ import annotations

import subprocess
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from benches.storing.material import DIM
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory


def _recall(folder: str, questions: Connection) -> None:
    """Say what is found first, for every text that is asked."""
    with Memory.open(folder, embedder=LexicalEmbedder(dim=DIM)) as memory:
        questions.send("ready")
        while text := questions.recv():
            (hit,) = memory.recall(text, 1)
            questions.send(hit.event.text if hit.event else "")


def until_recalled(folder: Path, events: int) -> list[float]:
    """Milliseconds from asking another process for what was just committed to its right answer."""
    context = get_context("spawn")
    here, there = context.Pipe()
    other = context.Process(target=_recall, args=(str(folder), there))
    waits = []
    with Memory.open(folder, embedder=LexicalEmbedder(dim=DIM)) as memory:
        other.start()
        there.close()
        assert here.recv() == "ready"
        for number in range(events):
            memory.add(f"thing {number}")
            start = time.perf_counter()
            here.send(f"thing {number}")
            assert here.recv() == f"thing {number}"
            waits.append((time.perf_counter() - start) * 1e3)
        here.send("")
        other.join()
    return waits


def import_ms(times: int) -> list[float]:
    """Milliseconds of CPU that ``import cvx`` takes in a fresh interpreter, so many times."""
    code = "import time; t = time.process_time(); import cvx; print(time.process_time() - t)"
    run = [sys.executable, "-c", code]
    return [1e3 * float(subprocess.check_output(run)) for _ in range(times)]
