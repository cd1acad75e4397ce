"""A memory without a folder: the whole of it, and not a single file."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.memory import Memory
from cvx.types import Cue, Event, Filter
from tests.store.facade import texts
from tests.store.processes import embedder


@pytest.mark.requirement("W1", "W25")
def test_a_memory_has_id_content_embedding_and_metadata_and_comes_back_with_a_score() -> None:
    memory = Memory(embedder=embedder())
    mug = memory.add(
        "I am Ana, a sailor",
        aliases=["who am I?", "what is my identity?", "describe myself"],
        metadata={"agent": "ana", "category": "identity"},
        tags=["identity"],
    ).id
    sea = memory.add("the sea was rough that day", tags=["episodic"], timestamp=7).id
    kept = memory.get(mug)
    assert (kept.event_id, kept.text) == (mug, "I am Ana, a sailor")
    assert kept.metadata == {"agent": "ana", "category": "identity"}
    assert kept.vector is not None
    np.testing.assert_array_equal(kept.vector, embedder().embed([kept.text])[0])
    # By a canonical question, by a vector, by a filter, bounded by k.
    for question in ("who am I?", "what is my identity?", "describe myself"):
        assert texts(memory, question, k=1) == ["I am Ana, a sailor"]
    (hit,) = memory.recall(Cue(vector=kept.vector), k=1)
    assert hit.event == kept
    assert hit.similarity == pytest.approx(1.0)
    assert hit.score > 0
    assert texts(memory, "who am I?", where=Filter(tags=["episodic"]), floor=-2.0) == [
        "the sea was rough that day"
    ]
    assert texts(memory, "sea", k=1) == [memory.get(sea).text]
    assert (len(memory.events()), len(memory.events(Filter(tags=["identity"]))), len(memory)) == (
        2,
        1,
        2,
    )


@pytest.mark.requirement("W2", "X9")
def test_no_file_is_opened_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[object] = []
    plain = builtins.open

    def noted(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if set(mode) & set("wax+"):
            opened.append(file)
        return plain(file, mode, *rest, **options)

    monkeypatch.setattr(builtins, "open", noted)
    with Memory(embedder=embedder()) as memory:
        run = memory.learning.active.begin("wash the cup", "clean")
        loop = memory.learning.active
        loop.act(loop.recall(Cue(step="at the sink")), "open tap")
        loop.close(run, 1.0)
        memory.erase(memory.add("something else"))
        assert memory.admin.snapshot() is False
        assert memory.as_of(memory.record.now()).admin.stats()["events"] == 1
    assert list(tmp_path.iterdir()) == []
    assert opened == []


@pytest.mark.requirement("W24")
def test_a_walk_over_quantised_codes_finds_what_an_exact_scan_finds() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 16)).astype(np.float32)
    walked, scanned = Memory._opened(None, embedder(), exact_below=0), Memory(embedder=embedder())
    for memory in (walked, scanned):
        memory.add_many(
            Event(timestamp=n, text=f"event {n}", vector=row) for n, row in enumerate(rows)
        )
    found = 0
    for query in rng.normal(size=(50, 16)).astype(np.float32):
        near = [
            {
                h.event.event_id
                for h in m.recall(Cue(vector=query), 10, sources=["dense"])
                if h.event
            }
            for m in (walked, scanned)
        ]
        found += len(near[0] & near[1])
    assert found >= 0.98 * 500
