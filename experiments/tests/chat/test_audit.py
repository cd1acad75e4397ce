"""The log of a run: whole lines, in order, readable after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.chat import AuditLog, read_audit
from experiments.errors import AuditError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=5))
def test_what_was_noted_is_read_in_order(
    tmp_path_factory: pytest.TempPathFactory, told: list[object]
) -> None:
    path = tmp_path_factory.mktemp("audit") / "run.jsonl"
    half = len(told) // 2
    for part in (told[:half], told[half:]):
        with AuditLog(path) as log:
            for value in part:
                log.note("thing", value=value)
    assert [line["value"] for line in read_audit(path)] == told


def test_a_line_is_there_before_the_log_is_closed_and_a_cut_one_is_left_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    log = AuditLog(path)
    log.note("decision", command="look")
    log.note("outcome", reward=1.0)
    assert [line["kind"] for line in read_audit(path)] == ["decision", "outcome"]
    log.close()
    path.write_bytes(path.read_bytes()[:-4])
    assert [line["kind"] for line in read_audit(path)] == ["decision"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"kind": "a"}\n{"kind": \n{"kind": "b"}\n')
    with pytest.raises(AuditError, match=r"line 2 of .* is damaged"):
        list(read_audit(path))


def test_what_cannot_be_written_or_read_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditError, match="cannot be written"):
        AuditLog(tmp_path / "file" / "run.jsonl")
    with pytest.raises(AuditError, match="cannot be read"):
        list(read_audit(tmp_path / "none.jsonl"))
    log = AuditLog(tmp_path / "run.jsonl")
    log.close()
    with pytest.raises(AuditError, match="cannot be written"):
        log.note("late")


def test_a_log_goes_on_after_a_line_that_a_dying_process_left_cut(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with AuditLog(path) as log:
        log.note("decision", command="look")
    with path.open("ab") as file:
        file.write(b'{"kind": "dec')
    with AuditLog(path) as log:
        log.note("outcome", reward=1.0)
    assert [line["kind"] for line in read_audit(path)] == ["decision", "outcome"]
