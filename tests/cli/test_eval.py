from __future__ import annotations

import json
from pathlib import Path

import pytest

from cvx.cli.app import run
from cvx.embed import LexicalEmbedder
from cvx.evaluation import Label
from cvx.memory import Memory
from cvx.recall import default_pipeline
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


def test_eval_measures_each_question_by_weights_that_were_fitted_to_others(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, questions = talk
    arguments = ["eval", str(questions), "-s", str(store), "--tune", "--folds", "2"]
    code, out = said([*arguments, "--json"], capsys)
    assert code == 0
    found = json.loads(out)
    assert set(found["weights"]) > {"dense", "speaker"}
    own, tuned = found["measured"][-2:]
    assert (own["name"], tuned["name"]) == ("this memory", "tuned")
    assert own["metrics"]["recall@5"]["n"] == tuned["metrics"]["recall@5"]["n"]
    assert "weights: dense" in said(arguments, capsys)[1]


def test_eval_keeps_what_was_fitted_only_when_told_to(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store, questions = talk
    arguments = ["eval", str(questions), "-s", str(store), "--tune", "--folds", "2", "--json"]
    shipped = Memory(embedder=LexicalEmbedder()).learning.pipeline.weighting.weights
    said(arguments, capsys)
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        assert memory.learning.pipeline.weighting.weights == shipped
    _, out = said([*arguments, "--save"], capsys)
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        kept = memory.learning.pipeline.weighting.weights
        assert kept == default_pipeline(json.loads(out)["weights"]).weighting.weights != shipped
    code, out = said(["eval", str(questions), "-s", str(store), "--save"], capsys)
    assert code == 2
    assert "give --tune too" in out


def test_eval_names_the_line_of_a_broken_label(
    talk: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    write_labels(broken, [Label(query="x", gold=frozenset({1}))])
    broken.write_text(broken.read_text() + "{}\n")
    code, out = said(["eval", str(broken), "-s", str(talk[0])], capsys)
    assert code == 2
    assert "broken.jsonl, line 2" in out
