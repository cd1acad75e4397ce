"""What keeps the whole store in order: quarantine by filter, trust of a source, exports."""

from pathlib import Path

import pytest

from cvx import LexicalEmbedder, Memory
from cvx.errors import ExportError, InvalidInputError, NamespaceError

pytestmark = pytest.mark.requirement("B20")


def filled() -> Memory:
    memory = Memory(embedder=LexicalEmbedder(64))
    memory.add("the key is under the pot", source="web", entity="ana", kind="note")
    memory.add("the key is in the river", source="web", entity="bo", namespace="bo")
    memory.add("the key is blue", source="diary", kind="note")
    return memory


def test_a_filter_says_what_is_quarantined_and_released_in_the_whole_store() -> None:
    memory = filled()
    assert memory.admin.quarantine(where={"entities": ["ana", "bo"]}, dry_run=True) == [1, 2]
    assert len(memory) == 3
    assert memory.admin.quarantine(source="web", where={"kind": "note"}) == [1]
    assert [event.id for event in memory.events()] == [3]
    assert memory.admin.quarantine(where=[{"kind": "note"}, {"entities": "bo"}]) == [2, 3]
    assert memory.recall("the key") == []
    assert memory.admin.release(source="web", dry_run=True) == [1, 2]
    assert memory.admin.release(where={}) == [1, 2, 3]
    assert len(memory) == 3


def test_without_a_source_or_a_filter_nothing_is_moved() -> None:
    memory = filled()
    for verb in (memory.admin.quarantine, memory.admin.release):
        with pytest.raises(InvalidInputError, match="source is None and where is None"):
            verb()
        with pytest.raises(InvalidInputError, match="colour"):
            verb(where={"colour": "red"})
    with pytest.raises(InvalidInputError, match="source is empty"):
        memory.admin.quarantine(source="")
    assert len(memory) == 3


def test_trust_in_a_source_changes_all_that_came_from_it() -> None:
    memory = filled()
    assert memory.admin.trust("web", 0.25) == [1, 2]
    assert memory.admin.trust("web", 0.25) == []
    assert [memory.get(n).trust for n in (1, 2, 3)] == [0.25, 0.25, 1.0]
    assert {hit.id: hit.trust for hit in memory.recall("the key is")} == {1: 0.25, 3: 1.0}
    with pytest.raises(InvalidInputError, match="value is 2"):
        memory.admin.trust("web", 2)


@pytest.mark.parametrize("empty", [True, False])
def test_an_export_is_taken_into_an_open_memory(tmp_path: Path, empty: bool) -> None:
    filled().admin.export(tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder(64)) as memory:
        if not empty:
            memory.add("a cup", key="cup")
        memory.admin.import_(tmp_path / "all.jsonl")
        assert "the key is blue" in [hit.text for hit in memory.recall("the key is blue")]
        assert [one.entity for one in memory.events({"entities": "ana"})] == ["ana"]
        added = memory.add("a jug")
        assert memory.recall("a jug")[0].event == added
        with pytest.raises(ExportError, match="again"):
            memory.admin.import_(tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "m") as again:
        assert len(again) == 4 + (not empty)
        assert again.recall("the key is blue")[0].text == "the key is blue"


@pytest.mark.parametrize("where", ["in RAM", "in a folder"])
def test_a_memory_goes_on_with_another_embedder(where: str, tmp_path: Path) -> None:
    made = LexicalEmbedder(16)
    memory = Memory(embedder=made) if where == "in RAM" else Memory.open(tmp_path, embedder=made)
    ana = memory.within("ana")
    ana.add("the spare key is under the green pot", aliases=["key hiding place"])
    rain = memory.add("it rained all night")
    memory.link(rain, memory.add("the cellar is under water"))
    assert ana.recall("where is the key?")[0].id == 1
    assert memory.admin.reembed(LexicalEmbedder(64)) == 4
    assert (memory.dim, ana.dim, memory.index.dim) == (64, 64, 64)
    assert ana.recall("where is the key?")[0].id == 1
    assert [event.id for event in memory.why("the cellar")] == [2]
    memory.add("the drain is too small")
    assert memory.recall("the drain")[0].id == 4
    assert memory.admin.reembed(LexicalEmbedder(64)) == 0
    with memory.episode("find the key") as episode:
        episode.act("look under the pot", observation="a green pot")
        episode.end(1.0)
    memory.close()
    if where == "in a folder":
        with Memory.open(tmp_path) as again:
            assert (again.dim, len(again)) == (64, 5)
            assert again.recall("the drain")[0].id == 4


def test_who_is_bound_moves_no_store() -> None:
    memory = Memory(embedder=LexicalEmbedder(16))
    with pytest.raises(NamespaceError):
        memory.within("ana").admin.reembed(LexicalEmbedder(32))
    with pytest.raises(InvalidInputError, match="embedder is 7"):
        memory.admin.reembed(7)  # type: ignore[arg-type]
    assert memory.dim == 16
