"""The dinner from its first turn to its last, without a language model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import cvx
from experiments.dinner.__main__ import main
from experiments.dinner.play import SCRIPT, play, seeded, who_knows


@pytest.mark.requirement("W28", "W15")
def test_the_dinner_is_played_on_memories_as_well_as_on_full_definitions() -> None:
    cast = seeded(cvx.Memory(embedder="lexical", clock="turns"))
    lines = list(play(cast))
    assert len(lines) == len(SCRIPT["lines"])
    first = {line.speaker: line for line in reversed(lines)}
    # Who they are, they find out on their first turn.
    assert first["Alex"].turn == 1
    assert first["Alex"].with_memory
    facts = [line for line in lines if line.fact == "definition"]
    assert all(line.with_definition for line in facts)
    # The offline default knows words only; MiniLM's figure is measured by benches.characters.
    assert sum(line.with_memory for line in facts) >= 0.75 * len(facts)
    # What was said, no definition holds.
    assert not any(line.with_definition for line in lines if line.fact == "dialogue")
    told = cast["Sam"].query_memory("what did Alex say about a table for three?")
    assert any("We need a table for three" in one["content"] for one in told["memories"])
    for name in SCRIPT["characters"]:
        own = [line for line in lines if line.speaker == name]
        assert sum(one.tokens for one in own) <= 0.4 * sum(one.definition_tokens for one in own)
    assert all(300 <= line.tokens <= 900 for line in lines)
    assert all(1_800 <= line.definition_tokens <= 3_000 for line in lines)


@pytest.mark.requirement("W28", "W9")
def test_who_whispers_is_heard_by_nobody_else() -> None:
    cast = seeded(cvx.Memory(embedder="lexical", clock="turns"))
    lines = list(play(cast))
    known = who_knows(cast)
    for turn, said in enumerate(SCRIPT["lines"], 1):
        heard = {said["speaker"], *said.get("heard_by", SCRIPT["characters"])}
        assert {name for name in known if turn in known[name]} == heard
        assert known[said["speaker"]][turn]
    secret = next(line.text for line in lines if "psst" in line.text)
    assert secret not in str(cast["Alex"].query_memory("what did Jordan whisper?", 50))


@pytest.mark.requirement("W28")
def test_one_command_prints_the_dialogue_the_recalls_and_the_tokens_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "dinner.svg"
    monkeypatch.setattr(sys, "argv", ["dinner", "--picture", str(picture)])
    assert main() == 0
    told = capsys.readouterr().out
    assert " 1 Alex: Hi everyone, I'm Alex." in told
    assert "      recalled: " in told
    assert "| tokens, Sam | " in told
    assert "| facts of the definition | 16 of 16 | " in told
    assert picture.read_text().startswith("<?xml")
