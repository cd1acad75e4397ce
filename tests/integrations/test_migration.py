"""What Mem0 2.2 and Chroma 1.5 wrote into ``exports`` is taken over, and nothing else is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvx.errors import FileError, InvalidInputError, NamespaceError
from cvx.integrations.migration import from_chroma, from_jsonl, from_mem0
from cvx.memory import Memory
from tests.cli.command import Cvx

EXPORTS = Path(__file__).parent / "exports"


@pytest.fixture
def memory() -> Memory:
    return Memory(embedder="lexical")


def test_memories_of_mem0_keep_user_time_and_metadata(memory: Memory) -> None:
    ids = from_mem0(memory, EXPORTS / "mem0.json")
    assert len(ids) == 4
    ana, bob = memory.within("ana"), memory.within("bob")
    assert [hit.text for hit in bob.recall("who plays an instrument?", min_relevance=0.0)] == [
        "Bob plays the tuba"
    ]
    nuts = ana.recall("is Ana allergic to nuts?")[0]
    assert nuts.text == "Ana is allergic to peanuts"
    assert dict(nuts.metadata) == {"topic": "health", "user_id": "ana", "role": "user"}
    event = ana.get(key="6148977b-114b-478d-b5b2-d2b0ae166546")
    assert event.metadata["run_id"] == "chat-7"
    when = datetime(2026, 11, 23, 4, 58, 4, 147872, UTC).timestamp()
    assert event.timestamp == round(when * 1_000_000)


def test_taking_the_same_export_over_again_changes_nothing(memory: Memory) -> None:
    first = from_mem0(memory, EXPORTS / "mem0.json")
    again = from_mem0(memory, json.loads((EXPORTS / "mem0.json").read_text()))
    assert (first == again).all()
    assert [memory.get(int(one)).version for one in again] == [1] * 4


def test_all_users_in_one_namespace_where_asked_for(memory: Memory) -> None:
    ana = memory.within("team")
    with pytest.raises(NamespaceError):
        from_mem0(ana, EXPORTS / "mem0.json")
    from_mem0(ana, EXPORTS / "mem0.json", namespace=None)
    assert len(ana) == len(memory) == 4


def test_a_field_that_keeps_nobody_apart_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="namespace is 'userid': give 'user_id' or"):
        from_mem0(memory, EXPORTS / "mem0.json", namespace="userid")
    assert len(memory) == 0


@pytest.mark.parametrize(
    ("take", "exported", "options", "named"),
    [
        (from_mem0, [{"memory": "a", "metadata": "s"}], {}, r"metadata of exported\[0\] is 's'"),
        (from_chroma, {"ids": ["a"], "metadatas": ["s"]}, {}, r"metadata of exported\[0\] is 's'"),
        (from_chroma, {"ids": ["a"], "documents": 3}, {}, "documents is 3"),
        (from_chroma, {"ids": ["a"], "documents": "b"}, {}, "documents is 'b'"),
        (from_chroma, {"ids": "ab"}, {}, "exported is"),
        (from_jsonl, [{"text": "a"}], {"text": ["a"]}, r"text is \['a'\]"),
    ],
)
def test_what_has_another_type_is_refused_by_name(
    memory: Memory, take: Any, exported: Any, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidInputError, match=named):
        take(memory, exported, **options)
    assert len(memory) == 0


def test_a_collection_of_chroma_keeps_ids_and_metadata(memory: Memory) -> None:
    from_chroma(memory, EXPORTS / "chroma.json")
    assert memory.get(key="b").text == "Ana is allergic to peanuts."
    assert dict(memory.get(key="a").metadata) == {"topic": "weather", "day": 3, "seen": True}
    assert memory.recall("rain", where={"metadata": {"day": {"gte": 3}}})[0].key == "a"


def test_vectors_of_chroma_are_kept_where_they_fit() -> None:
    memory = Memory(dim=4)
    from_chroma(memory, EXPORTS / "chroma.json", vectors=True)
    hit = memory.recall(np.array([0.125, 0.25, 0.5, 0], np.float32), 1)[0]
    assert (hit.key, hit.distance) == ("a", 0.0)
    with pytest.raises(InvalidInputError, match=r"holds \(3,\)"):
        from_chroma(Memory(dim=3), EXPORTS / "chroma.json", vectors=True)


def test_json_lines_are_read_by_the_names_of_their_fields(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(
        '{"content": "It rained.", "when": "2026-11-23T10:00", "mood": "calm", "who": "ana"}\n\n'
        '{"content": "It snowed.\\u2028", "when": 7, "mood": null}\n'
    )
    first, second = from_jsonl(memory, path, text="content", timestamp="when", entity="who")
    event = memory.get(int(first))
    assert (event.entity, dict(event.metadata)) == ("ana", {"mood": "calm"})
    assert event.timestamp == 1_795_428_000_000_000
    assert memory.get(int(second)).timestamp == 7


@pytest.mark.parametrize(
    ("take", "exported", "why"),
    [
        (from_mem0, [{"id": "a", "text": "x"}], r"exported\[0\] has no text in 'memory'.*id, text"),
        (from_mem0, ["x"], r"exported\[0\] is 'x'"),
        (from_mem0, 7, "exported is 7"),
        (from_mem0, [{"memory": "x", "created_at": "soon"}], "time is 'soon'"),
        (from_mem0, [{"memory": "x", "metadata": {"a": float("nan")}}], "nan"),
        (from_chroma, {"documents": ["x"]}, "'ids' and more"),
        (from_chroma, {"ids": ["a"], "documents": ["x", "y"]}, "2 for 1 ids"),
        (from_jsonl, [{"content": "x"}], "no text in 'text': it has content"),
    ],
)
def test_what_is_no_such_export_is_refused_whole(
    memory: Memory, take: Any, exported: Any, why: str
) -> None:
    with pytest.raises(InvalidInputError, match=why):
        take(memory, exported)
    assert len(memory) == 0


def test_a_damaged_line_is_named_and_nothing_is_taken(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"\n')
    with pytest.raises(InvalidInputError, match=r"notes\.jsonl, line 2"):
        from_jsonl(memory, path)
    with pytest.raises(InvalidInputError, match="'txt'"):
        from_jsonl(memory, path, txt="content")
    with pytest.raises(InvalidInputError, match="embeddings are missing"):
        from_chroma(memory, {"ids": ["a"], "documents": ["x"]}, vectors=True)
    assert len(memory) == 0


@pytest.mark.parametrize("take", [from_mem0, from_chroma, from_jsonl])
def test_a_file_that_is_no_utf8_is_refused_by_its_line(
    memory: Memory, tmp_path: Path, take: Any
) -> None:
    path = tmp_path / "b.jsonl"
    path.write_bytes(b'{"text": "a"}\n\xff\xfe{"text": "x"}\n')
    with pytest.raises(FileError, match=r"b\.jsonl, line 2: byte 0xff is not UTF-8: save"):
        take(memory, path)
    with pytest.raises(FileError, match=r"missing\.json cannot be read"):
        take(memory, tmp_path / "missing.json")


@pytest.mark.parametrize("take", [from_mem0, from_chroma, from_jsonl])
@pytest.mark.parametrize("end", ["", "]" * 100_000])
def test_json_of_any_depth_is_refused_by_its_line(
    memory: Memory, tmp_path: Path, take: Any, end: str
) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 100_000 + end)
    with pytest.raises(InvalidInputError, match=r"deep\.jsonl, line 1: .* at most 32 deep"):
        take(memory, path)


def test_a_line_that_cannot_be_taken_is_counted_from_one(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    for line, why in (
        ('{"content": "x"}', "notes.jsonl, line 3 has no text in 'text'"),
        ("[1]", r"notes.jsonl, line 3 is \[1\]: give a JSON object"),
        ('{"text": "x", "timestamp": "soon"}', "notes.jsonl, line 3: the time is 'soon'"),
    ):
        path.write_text(f'{{"text": "a"}}\n\n{line}\n')
        with pytest.raises(InvalidInputError, match=why):
            from_jsonl(memory, path)
    path.write_text('[{"text": "a"}, {"content": "x"}]')
    with pytest.raises(InvalidInputError, match=r"notes.jsonl, object 2 has no text"):
        from_jsonl(memory, path)
    path.write_text("\n")
    assert from_jsonl(memory, path).tolist() == []
    assert len(memory) == 0


def test_the_command_says_what_was_new_changed_and_the_same(cvx: Cvx, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "one", "key": "a"}\n{"text": "two", "key": "b"}\n')
    given = ("import", path, "--from", "jsonl")
    assert cvx(*given).out == "2 events taken over\n"
    assert cvx(*given).out == "2 events taken over: 0 new, 0 changed, 2 as they were\n"
    path.write_text('{"text": "one!", "key": "a"}\n{"text": "two", "key": "b"}\n{"text": "3"}\n')
    assert cvx(*given).out == "3 events taken over: 1 new, 1 changed, 1 as they were\n"


def test_the_command_takes_over_each_kind(cvx: Cvx, tmp_path: Path) -> None:
    assert cvx("import", EXPORTS / "mem0.json", "--from", "mem0").out == "4 events taken over\n"
    assert cvx("import", EXPORTS / "chroma.json", "--from", "chroma", "--json").json["rows"] == {
        "events": 3
    }
    path = tmp_path / "notes.jsonl"
    path.write_text('{"content": "The kettle is red."}\n')
    done = cvx("import", path, "--from", "jsonl", "--field", "text=content")
    assert (done.code, done.out) == (0, "1 event taken over\n")
    assert "kettle" in cvx("recall", "kettle", "-k", "1").out
    assert cvx("recall", "allergic", "--namespace", "ana", "-k", "1").out.count("peanuts") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--from", "zep"), "mem0, chroma, jsonl or core"),
        (("--from", "jsonl", "--field", "content"), "text=content"),
        (("--field", "text=content"), "goes with --from jsonl"),
        (("--from", "mem0", "--keep-vectors"), "--from core or chroma"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(
    cvx: Cvx, arguments: tuple[str, ...], why: str
) -> None:
    done = cvx("import", EXPORTS / "mem0.json", *arguments)
    assert done.code == 2
    assert why in " ".join(done.err.replace("│", "").split())
