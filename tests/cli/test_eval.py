from __future__ import annotations

import json
from pathlib import Path

import pytest

from cvx.cli.app import run
from cvx.embed import LexicalEmbedder
from cvx.evaluation import Label
from cvx.memory import Memory
from tests.evaluation.generated_talk import generated_talk
from tests.evaluation.labelled_file import write_labels


@pytest.fixture
def talk(tmp_path: Path) -> tuple[Path, Path]:
    """A store with a talk in it, and a file of questions about it."""
    store, questions = tmp_path / "store", tmp_path / "questions.jsonl"
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        write_labels(questions, generated_talk(memory, sessions=8))
    return store, questions


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        run(arguments)
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out + captured.err


def test_eval_prints_the_memory_beside_the_plain_ways(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, questions = talk
    code, out = said(["eval", str(questions), "-s", str(store), "--at", "3"], capsys)
    assert code == 0
    assert [line.split("  ")[0] for line in out.splitlines() if line[:1].isalpha()] == [
        "dense",
        "lexical",
        "rank",
        "this memory",
    ]
    assert "recall@3" in out


def test_eval_fits_to_the_groups_it_is_told_and_measures_the_others(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, questions = talk
    train = ["--train", "quarter 1", "--train", "quarter 3"]
    code, out = said(["eval", str(questions), "-s", str(store), "--tune", *train, "--json"], capsys)
    assert code == 0
    found = json.loads(out)
    assert found["fitted to"] == ["quarter 1", "quarter 3"]
    assert set(found["weights"]) > {"dense", "speaker"}
    assert found["measured"][-1]["name"] == "tuned"


def test_eval_keeps_what_was_fitted_only_when_told_to(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, questions = talk
    arguments = ["eval", str(questions), "-s", str(store), "--tune", "--json"]
    shipped = Memory(embedder=LexicalEmbedder()).learning.pipeline.weighting.weights
    said(arguments, capsys)
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        assert memory.learning.pipeline.weighting.weights == shipped
    _, out = said([*arguments, "--floor", "--save"], capsys)
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        assert memory.learning.pipeline.weighting.weights != shipped
        assert memory.learning.pipeline.floor.least == json.loads(out)["floor"]["threshold"]
    code, out = said(["eval", str(questions), "-s", str(store), "--save"], capsys)
    assert code == 2
    assert "--tune, --floor or both" in out


def test_eval_names_the_line_of_a_broken_label(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    write_labels(broken, [Label(query="x", gold=frozenset({1}))])
    broken.write_text(broken.read_text() + "{}\n")
    code, out = said(["eval", str(broken), "-s", str(talk[0])], capsys)
    assert code == 2
    assert "broken.jsonl, line 2" in out
