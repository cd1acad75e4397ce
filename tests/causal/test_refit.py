"""Refitting the statistical judge with one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benches.causal.fitting import probabilities
from benches.causal.refit import main, read_examples
from cvx.causal.judges.protocol import Pair
from cvx.causal.judges.statistical import StatisticalJudge
from cvx.errors import InvalidInputError


def line(number: int) -> str:
    """Write a pair of a world in which zorps glip and blems snur."""
    cause, effect, other = ("zorps", "glip", "snur") if number % 2 else ("blems", "snur", "glip")
    return json.dumps(
        {
            "cause": f"case{number} {cause}",
            "effect": f"then{number} {effect}",
            "wrong": f"else{number} {other}",
            "wrong_is": "effect",
        }
    )


def test_the_command_fits_what_the_pairs_teach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "judge.npz"
    pairs.write_text("\n".join(line(number) for number in range(80)) + "\n\n", "utf-8")
    assert main([str(pairs), str(out)]) == 0
    assert "80 pairs" in capsys.readouterr().out
    for cause, effect, other in (("zorps", "glip", "snur"), ("blems", "snur", "glip")):
        likely, unlikely = probabilities(
            StatisticalJudge.load(out),
            [Pair(f"some {cause}", f"a {effect}"), Pair(f"some {cause}", f"a {other}")],
        )
        assert likely > unlikely


@pytest.mark.parametrize(
    "bad",
    [
        "no json",
        "[]",
        "{}",
        line(1).replace('"effect"}', '"both"}'),
        line(1).replace("zorps", "")[:9],
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "judge.npz"
    pairs.write_text(f"{line(1)}\n{bad}\n", "utf-8")
    with pytest.raises(InvalidInputError, match="line 2"):
        read_examples(pairs)
    assert main([str(pairs), str(out)]) == 1
    assert "line 2" in capsys.readouterr().err
    assert not out.exists()


def test_too_few_pairs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(line(1), "utf-8")
    assert main([str(pairs), str(tmp_path / "judge.npz")]) == 1
    assert "at least" in capsys.readouterr().err
    assert main([str(tmp_path / "absent"), str(tmp_path / "judge.npz")]) == 1
