"""What a store was made with stays as it was."""

from pathlib import Path

import pytest

from cvx.memory import Memory
from tests.store.processes import embedder


@pytest.mark.requirement("X10", "X9")
def test_a_store_keeps_the_settings_of_its_index(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder(), seed=7, exact_below=20) as memory:
        for number in range(60):
            memory.add(f"event {number}")
        made = [memory.index.regions(level).tolist() for level in memory.index.region_levels]
    for path in (tmp_path / "m" / "index").iterdir():
        path.unlink()
    with Memory.open(tmp_path / "m", embedder(), seed=8) as memory:
        index = memory.index
        assert (index.params["exact_below"], memory.admin.stats()["rebuilds"]) == (20, 1)
        index.refresh_regions()
        again = Memory(embedder(), seed=7)
        again.add_many(memory.record.events())
        again.index.refresh_regions()
        assert [index.regions(level).tolist() for level in index.region_levels] == [
            again.index.regions(level).tolist() for level in again.index.region_levels
        ]
    assert made
