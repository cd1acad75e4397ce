"""A newcomer's assistant: users apart, facts that change, what the model gets."""

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import cvx


@pytest.mark.requirement("B20")
def test_an_assistant_keeps_up_with_what_its_users_tell_it(tmp_path: Path) -> None:
    memory = cvx.Memory.open(tmp_path / "assistant", embedder="lexical")
    ana, bob = memory.within("user-ana"), memory.within("user-bob")
    assert ana.recall("Where does Ana work?") == []
    assert ana.context("Where does Ana work?") == ""

    nuts = ana.add(
        "Ana is allergic to peanuts.", tags=["health"], kind="fact", metadata={"turn": 1}
    )
    old = ana.add("Ana works at the harbour.", key="job", metadata={"turn": 2})
    new = ana.add("Ana works at the town library.", key="job", metadata={"turn": 6})
    ana.add("Ana bought a red bicycle.", timestamp=datetime(2026, 1, 5, tzinfo=UTC))
    ana.add("Ana sold the red bicycle.", timestamp=datetime(2026, 6, 5, tzinfo=UTC))
    assert old.recorded is not None
    assert (new.id, new.version, new.history[0].text) == (old.id, 2, "Ana works at the harbour.")
    assert ana.recall("Where does Ana work?")[0].text == "Ana works at the town library."
    assert (
        ana.as_of(old.recorded).recall("Where does Ana work?")[0].text
        == "Ana works at the harbour."
    )
    nuts = ana.update(nuts, text="Ana is allergic to peanuts and shrimp.")
    assert "shrimp" in ana.recall("What is Ana allergic to?")[0].text
    assert nuts.history[0].version == 1

    def texts(**where: Any) -> set[str]:
        return {hit.text for hit in ana.recall("Ana", where=where)}

    assert texts(kind="fact") == {nuts.text}
    assert texts(metadata={"turn": {"gte": 5}}) == {new.text}
    since = datetime(2026, 3, 1, tzinfo=UTC)
    assert "Ana bought a red bicycle." not in texts(since=since)
    assert texts(outcome="failure") == set()
    assert bob.recall("allergies of Ana") == []
    assert ana.recall("capital of Mongolia") == []
    with pytest.raises(cvx.errors.UnknownError):
        bob.get(nuts)
    assert [json.loads(json.dumps(dict(hit)))["text"] for hit in ana.recall("bicycle", k=1)]
    assert pickle.loads(pickle.dumps(new)) == new
    with pytest.raises(TypeError, match="open its folder in the other process"):
        pickle.dumps(memory)

    block = ana.context("Where does Ana work?", budget_tokens=40)
    assert block.used_tokens <= 40
    assert block.decision is not None
    assert "town library" in block
    memory.close()

    memory = cvx.Memory.open(tmp_path / "assistant")
    ana = memory.within("user-ana")
    ana.feedback(block.decision, helped=True)
    ana.feedback(block.decision, helped=False)
    assert ana.learning.attribution(block.decision).helped is False
    assert ana.forget(nuts) == ana.forget(nuts) == [nuts.id]
    assert texts(tags=["health"]) == set()
    assert ana.update(nuts, state="active").text in texts(tags=["health"])
    assert ana.erase(nuts).complete
    assert texts(tags=["health"]) == set()
    with pytest.raises(cvx.errors.UnknownError):
        ana.get(nuts)

    memory.admin.export(tmp_path / "all.jsonl")
    with cvx.Memory.open(tmp_path / "copy", embedder="lexical") as copy:
        copy.admin.import_(tmp_path / "all.jsonl")
        assert copy.within("user-ana").get(key="job").history[0].text == old.text
        assert "shrimp" not in (tmp_path / "all.jsonl").read_text()
    with cvx.Memory.open(tmp_path / "assistant", read_only=True) as reader:
        assert reader.within("user-ana").recall("Where does Ana work?")[0].text == new.text
    memory.close()
