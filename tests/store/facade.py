"""A memory in RAM and one in a folder: every test of the facade runs on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cvx.memory import Memory
from tests.store.processes import embedder


@pytest.fixture(params=["ram", "folder"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    ticks = iter(range(1000, 100_000))
    made = (
        Memory._opened(None, embedder(), now=ticks.__next__)
        if request.param == "ram"
        else Memory._opened(tmp_path / "m", embedder(), now=ticks.__next__)
    )
    with made:
        yield made


def texts(memory: Memory, cue: str, **options: object) -> list[str]:
    hits = memory.recall(cue, **options)  # type: ignore[arg-type]
    return [hit.event.text for hit in hits if hit.event]
