"""What is erased while an episode runs comes back into the store by no way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cvx.memory import Memory
from cvx.types import Cue
from tests.store.processes import embedder

SECRET = "the code of the safe is 4711"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """One store, opened twice."""
    folder = tmp_path / "store"
    mine, other = Memory.open(folder, embedder=embedder()), Memory.open(folder, embedder=embedder())
    yield mine, other
    for memory in (mine, other):
        memory.close()


def rows_about(memory: Memory, node: int) -> list[str]:
    """Wherever the record names a node."""
    record = memory.record
    found = [
        f"decision {row['decision_id']}"
        for row in record.decisions()
        if node in [*(hit[0] for hit in row["hits"]), *row["followed"]]
    ]
    found += [str(row) for row in record.usage() if row[0] == f'["node",{node}]']
    found += [str(row) for row in record.decays() if row[1] == node]
    for incoming in (True, False):
        found += [str(edge) for edge in record.links_of([node], incoming=incoming)]
    return found


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("reward", [1.0, 0.0])
def test_a_running_episode_forgets_what_another_process_erased(
    pair: tuple[Memory, Memory], tmp_path: Path, reward: float
) -> None:
    mine, other = pair
    event = mine.add(SECRET, action="turn to 4711", reward=1.0)
    mine.add("a kitchen", action="look")
    loop = mine.learning.loop()
    run = loop.begin("take the gold", "open")
    decision = loop.recall(Cue(step="a vault", vector=mine.embedder.embed([SECRET])[0]), k=1)
    (hit,) = decision.hits
    shown = loop.render(decision)
    assert "4711" in shown
    loop.act(decision, "turn the wheel", hit, rendered=shown)
    other.erase(event)
    loop.close(run, reward)
    assert rows_about(other, hit.node) == []
    (row,) = other.record.decisions()
    assert (row["rendered"], row["action"], row["hits"]) == ("", "turn the wheel", [])
    mine.close()
    other.close()
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"4711" in path.read_bytes()] == []


@pytest.mark.requirement("B8")
def test_what_a_running_episode_was_shown_is_not_written_down_after_an_erase(
    pair: tuple[Memory, Memory],
) -> None:
    mine, other = pair
    event = mine.add(SECRET)
    mine.add("a kitchen", action="look", entity="7")
    loop = mine.learning.loop()
    run = loop.begin("take the gold", "open")
    vector = mine.embedder.embed(["a kitchen"])[0]
    decision = loop.recall(Cue(step="a vault", vector=vector), k=1)
    assert [hit.action for hit in decision.hits] == ["look"]
    # The text need not come from the hits alone.
    loop.act(decision, "turn the wheel", rendered="what succeeded most often: turn to 4711")
    other.erase(event)
    loop.close(run, 1.0)
    (row,) = other.record.decisions()
    assert (row["rendered"], row["action"], len(row["hits"])) == ("", "turn the wheel", 1)


@pytest.mark.requirement("B8")
def test_an_erased_step_leaves_the_continuations_that_a_loop_shows(
    pair: tuple[Memory, Memory],
) -> None:
    mine, other = pair
    loop = mine.learning.loop()
    steps = [("a hall", "go to safe 1"), (SECRET, "turn to 4711"), ("an open safe", "take gold 1")]
    episode = loop.add_demonstration("open the safe", steps, "open")
    loop.begin("open the safe", "open")

    def chains() -> list[list[str | None]]:
        hits = loop.recall(Cue(step="a hall"), distinct=None).hits
        return sorted([hit.action, *(step.action for step in hit.successors)] for hit in hits)

    assert ["go to safe 1", "turn to 4711", "take gold 1"] in chains()
    (event,) = (e.event_id for e in mine.record.events() if e.node == episode.steps[1].node)
    other.erase(event or 0)
    loop.begin("open the safe", "open")
    assert chains() == [["go to safe 1", "take gold 1"], ["take gold 1"]]
    assert SECRET not in [step.text for known in loop.episodes for step in known.steps]


def test_regions_of_an_index_that_was_built_anew_are_others(pair: tuple[Memory, Memory]) -> None:
    mine, _ = pair
    mine.add("a kitchen", action="look")
    mine.add("a hall", action="look")
    before = mine.index.region_epoch
    mine._shared.store.replica.rebuild()
    assert mine.recall("a hall")[0].text == "a hall"
    assert mine.index.region_epoch > before
