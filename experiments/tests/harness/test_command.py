"""What the command line asks for, and what it refuses before anything is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from cvx.inspect import PageData
from cvx.memory import Memory

pytest.importorskip("statsmodels")

from experiments.harness.arms import ARMS, GROUPS
from experiments.harness.command import parser, run_command, setup_of
from experiments.harness.protocols import PROTOCOLS
from experiments.tests.harness.hat_domain import Hats


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_is_not_asked_for_is_the_protocol_s_own(name: str, real: bool) -> None:
    found = setup_of(Hats(real=real), parser("hats", None).parse_args(["--protocol", name]))
    usual = PROTOCOLS[name].real if real else PROTOCOLS[name].generated
    assert (found.seeds, found.rounds, found.games_per_round, found.measured) == usual
    assert found.arms == tuple(GROUPS["protocols"])
    found.check()


@pytest.mark.requirement("V21")
def test_a_language_model_plays_every_arm_of_a_group_that_it_can() -> None:
    options = parser("hats", None).parse_args(["--llm", "http://localhost:1", "--model", "m"])
    found = setup_of(Hats(), options)
    assert set(found.arms) >= {"full", "e7c", "e7d", "e7e", "e8", "none"}
    assert all(ARMS[name].readable for name in found.arms)


def test_rounds_to_measure_after_are_a_list_of_numbers() -> None:
    options = parser("hats", None).parse_args(["--rounds", "5", "--measured-after", "0,2,5"])
    assert setup_of(Hats(), options).points == (0, 2, 5)


def test_a_place_that_cannot_be_written_to_is_refused_before_playing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    words = ["--out", str(blocked / "folder" / "x")]
    assert run_command(parser("hats", None), lambda _: Hats(), words) == 2
    told = capsys.readouterr().err
    assert "cannot be written to" in told
    assert "--out" in told


@pytest.mark.requirement("V21")
def test_a_whole_experiment_of_another_domain_is_played_in_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = "--seeds 2 --rounds 2 --games-per-round 3 --measured 3 --arms full,e7c,none"
    given = [*words.split(), "--out", str(tmp_path / "hats")]
    assert run_command(parser("hats", None), lambda _: Hats(), given) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "games of hats" in told
    assert "90 games in" in told
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".png", ".html", ""}
    assert f"cvx inspect --store {tmp_path / 'hats-memory'}" in told
    with Memory.open(tmp_path / "hats-memory", read_only=True) as memory:
        view = PageData(memory)
        own = view.episodes({"q": ""})["rows"]
        assert len(own) > 6
        assert view.curves()[0]["episodes"] >= 6
        # The latest page holds choices, which are episodes of one step and without a goal.
        rows = view.episodes({"q": "hat"})["rows"]
        attempt = next(one["id"] for one in rows if one["goal"])
        decided = [step["advice"] for step in view.episode({"id": str(attempt)})["steps"]]
        assert [advice for advice in decided if advice]


def test_help_says_how_many_games_there_are_unless_told_otherwise() -> None:
    said = " ".join(parser("x", None).format_help().split())
    for protocol in PROTOCOLS.values():
        for size in ("seeds", "rounds", "games_per_round", "measured"):
            if generated := getattr(protocol.generated, size):
                real = getattr(protocol.real, size)
                more = f" (real games {real})" if real != generated else ""
                assert f"{protocol.name} {generated}{more}" in said
