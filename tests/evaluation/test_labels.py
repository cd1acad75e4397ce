from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import FileError, InvalidInputError, UnknownError
from cvx.evaluation.labels import Label, groups_of, read_labels
from cvx.evaluation.metrics import resolved
from cvx.memory import Memory
from tests.evaluation.labelled_file import write_labels

LABELS = st.builds(
    Label,
    query=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    gold=st.frozensets(st.integers(0, 99) | st.sampled_from(("a", "b c"))),
    group=st.none() | st.sampled_from(("g", "h")),
    category=st.sampled_from(("", "when")),
    time=st.none() | st.integers(0, 2**60),
    speaker=st.none() | st.integers(0, 9),
    namespace=st.sampled_from(("", "other")),
)


@given(labels=st.lists(LABELS, min_size=1, max_size=5))
def test_what_is_written_is_read(
    labels: list[Label], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("labels") / "questions.jsonl"
    write_labels(path, labels)
    assert read_labels(path) == labels


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "list instead of an object"),
        ('{"query": "x"}', "gold is .*: give a list of event ids"),
        ('{"query": "x", "gold": [1], "namespace": 5}', "namespace is 5: give a str"),
        ('{"query": "x", "gold": [1], "time": 9999999999999999999}', "give one of 64 bits"),
        ('{"query": " ", "gold": []}', "query is ' ': give what is asked"),
        ('{"query": "x", "gold": [true]}', "gold is .*: give a list of event ids"),
        ('{"query": "x", "gold": [1], "answer": 1}', "unknown keys"),
        ('{"query": "x", "gold": [1], "time": "now"}', "time is 'now': give an int"),
        ('{"query": "x",', "line 2"),
    ],
)
def test_a_line_that_is_no_label_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"query": "q", "gold": [1]}) + "\n" + line + "\n")
    with pytest.raises(InvalidInputError, match=said) as error:
        read_labels(path)
    assert "line 2" in str(error.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n")
    with pytest.raises(InvalidInputError, match="no labels"):
        read_labels(path)


def test_a_file_that_is_not_there_is_named_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"^\S+none.jsonl cannot be read \(No such file .*: give a"):
        read_labels(tmp_path / "none.jsonl")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="no text in UTF-8"):
        read_labels(path)


def test_a_label_without_a_group_is_a_group_of_its_own() -> None:
    labels = [Label(query="x", gold=frozenset(), group=g) for g in (None, "a", None)]
    assert groups_of(labels) == ["#0", "a", "#2"]


def test_gold_is_named_by_id_or_key_and_must_be_there(memory: Memory) -> None:
    first = memory.add("the kettle is blue", key="kettle").id
    found = resolved(memory, [Label(query="x", gold=frozenset({first, "kettle"}))])
    assert found == [frozenset({first})]
    with pytest.raises(InvalidInputError, match="label the events of this store"):
        resolved(memory, [Label(query="x", gold=frozenset({99}))])
    with pytest.raises(UnknownError, match="pan"):
        resolved(memory, [Label(query="x", gold=frozenset({"pan"}))])
