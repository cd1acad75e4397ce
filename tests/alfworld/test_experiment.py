"""The experiment plays, counts and reports what it says, and refuses what it cannot play."""

from __future__ import annotations

import json
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cvx.alfworld.__main__ import _check_writable, main
from cvx.alfworld.course import Played
from cvx.alfworld.generator import TASK_TYPES, generate_games
from cvx.alfworld.material import Setup, generated_games, prepare, task_type_of
from cvx.alfworld.report import conditions, summary
from cvx.alfworld.statistics import paired_difference, wilson
from cvx.errors import (
    GameError,
    GameNotFoundError,
    InvalidParameterError,
    LengthMismatchError,
    OutputError,
)
from cvx.plans import Observation
from cvx.textgames.arms import ARMS, arm_of
from cvx.textgames.controls import FrequencyPlayer
from cvx.textgames.reader import Reader
from tests.textgames.hats import HatGame, demonstrations


def _played(arm: str, seed: int, place: int, *, won: bool, steps: int = 10) -> Played:
    return Played(
        arm, seed, place // 2, place, f"game {seed} {place}", "t", won, steps, 1, 4, 0.002
    )


def test_wilson_agrees_with_known_values() -> None:
    assert [round(x, 4) for x in wilson(0, 60)] == [0.0, 0.0, 0.0602]
    assert [round(x, 4) for x in wilson(57, 60)] == [0.95, 0.863, 0.9829]
    assert math.isnan(wilson(0, 0).mean)


def test_a_paired_difference_has_its_mean_inside_its_interval() -> None:
    rng = np.random.default_rng(0)
    second = rng.integers(0, 2, 200).astype(float)
    first = np.maximum(second, rng.integers(0, 2, 200))
    found = paired_difference(first.tolist(), second.tolist(), list(range(200)))
    assert found.mean == pytest.approx(float((first - second).mean()))
    assert 0 < found.low < found.mean < found.high
    assert found.p < 0.001
    same = paired_difference([1.0, 0.0], [1.0, 0.0], ["a", "b"])
    assert (same.mean, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_same_game_with_several_seeds_is_one_cluster() -> None:
    first, second = [1.0, 1.0, 1.0, 0.0] * 3, [0.0, 1.0, 0.0, 0.0] * 3
    alone = paired_difference(first, second, list(range(12)))
    clustered = paired_difference(first, second, list("abcd") * 3)
    assert alone.mean == clustered.mean
    assert clustered.high - clustered.low > alone.high - alone.low


@pytest.mark.parametrize(("first", "second", "clusters"), [([], [], []), ([1.0], [], ["a"])])
def test_unequal_or_no_pairs_are_refused(
    first: list[float], second: list[float], clusters: list[str]
) -> None:
    with pytest.raises(LengthMismatchError, match="equally many"):
        paired_difference(first, second, clusters)


def test_the_summary_counts_every_game_once_and_pairs_by_game() -> None:
    setup = Setup(seeds=2, rounds=2, games_per_round=2, arms=("full", "none"))
    games = [_played("full", s, p, won=True) for s in range(2) for p in range(4)]
    games += [_played("none", s, p, won=p == 0, steps=50) for s in range(2) for p in range(4)]
    found = summary(setup, games)
    assert [r["success"].mean for r in found["arms"]["none"]["rounds"]] == [0.5, 0.0]
    assert found["arms"]["none"]["all"]["games"] == 8
    assert found["arms"]["full"]["all"]["ms_per_decision"] == pytest.approx(0.5)
    assert found["differences"]["none"]["success"].mean == 0.75
    assert found["differences"]["none"]["steps"].mean == -40.0
    for word in ("ALFWorld-generated", "demonstrations", "50 steps", "agent"):
        assert word in conditions(setup)


def test_the_frequency_player_draws_what_was_shown_most() -> None:
    arm = arm_of("frequency")
    player = arm.player(arm.open(None, 0), 0)
    assert isinstance(player, FrequencyPlayer)
    player.learn(demonstrations())
    assert player.counts["walk to #"] == 7
    game = HatGame("hang a hat on the peg", seed=1, max_steps=60)
    given: list[str] = []
    step = game.step

    def noted(command: str) -> tuple[Observation, float, bool]:
        given.append(command)
        return step(command)

    game.step = noted  # type: ignore[method-assign]
    player.play(game)
    assert given
    assert "wait" not in given, "no demonstration waits"


class _Script:
    """Answers like a model that copies the actions of the first recalled episode."""

    def __init__(self) -> None:
        self.contexts: list[str] = []

    def act(self, observation, *, context="", history=()):  # type: ignore[no-untyped-def]
        self.contexts.append(context)
        unheard = [c for c in observation.admissible_commands if c not in dict(history)]
        return (unheard or observation.admissible_commands)[0]


@pytest.mark.requirement("V18")
def test_a_reading_player_is_shown_evidence_and_its_games_are_remembered() -> None:
    policy = _Script()
    arm = ARMS["full"]
    reader = arm.player(arm.open(None, 0), 0, policy)
    assert isinstance(reader, Reader)
    reader.learn(demonstrations())
    result = reader.play(HatGame("hang a hat on the peg", seed=1))
    assert result.steps == len(policy.contexts)
    assert "evidence from earlier episodes" in policy.contexts[0]
    assert len(reader.memory.episodes) == 3


def test_processes_that_ask_for_the_same_games_at_once_get_whole_ones(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(generated_games, [tmp_path] * 8, [12] * 8, [7] * 8))
    assert all(games == made[0] for games in made)
    assert len(made[0]) == 12
    for game in made[0]:
        assert json.loads(game.read_text(encoding="utf-8"))["solvable"] is True
    assert [p.name for p in (tmp_path / "generated").iterdir()] == [made[0][0].parents[2].name]


def test_demonstrations_of_a_seed_do_not_depend_on_how_many_games_are_played(
    tmp_path: Path,
) -> None:
    few = prepare(Setup(rounds=1, games_per_round=2, cache=tmp_path), seed=3)
    more = prepare(Setup(rounds=2, games_per_round=4, cache=tmp_path), seed=3)
    assert few.shown == more.shown
    assert [task_type_of(Path("x") / s.split("/")[0] / "t" / "g") for s in few.shown] == list(
        TASK_TYPES
    )
    assert len(few.games) == 2
    assert not set(few.shown) & {g.parent.name for g in few.games}


@pytest.mark.slow
def test_the_command_line_plays_and_writes_a_table_a_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "runs" / "small"
    argv = f"--seeds 1 --rounds 1 --games-per-round 2 --arms full,none --workers 2 --out {out}"
    assert main([*argv.split(), "--cache", str(tmp_path / "cache")]) == 0
    told = capsys.readouterr().out
    assert "ALFWorld-generated" in told
    assert "ms: of memory, a decision" in " ".join(told.split())
    written = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert len(written["games"]) == 4
    by_arm = {arm: [g["game"] for g in written["games"] if g["arm"] == arm] for arm in ARMS}
    assert by_arm["full"] == by_arm["none"], "the arms play the same games in the same order"
    assert written["differences"]["none"]["success"]["low"] <= 1
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.requirement("W26")
def test_the_same_command_with_a_store_plays_no_game_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = "--seeds 1 --rounds 1 --games-per-round 2 --arms full --workers 1"
    places = ["--cache", str(tmp_path / "cache"), "--store", str(tmp_path / "store")]
    reports = []
    for name in ("first", "second"):
        out = tmp_path / name
        assert main([*arguments.split(), *places, "--out", str(out)]) == 0
        reports.append(json.loads(out.with_suffix(".json").read_text(encoding="utf-8")))
    # To the microsecond: the second report tells of the games of the first.
    assert reports[0]["games"] == reports[1]["games"]
    assert len(reports[0]["games"]) == 2
    assert [folder.name for folder in (tmp_path / "store").iterdir()] == ["full-0"]


def test_a_missing_folder_of_games_ends_with_code_2_and_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--games", str(tmp_path / "nowhere")]) == 2
    told = capsys.readouterr().err
    assert "valid_train" in told
    assert "--games" in told


@pytest.mark.slow
def test_a_damaged_game_ends_with_code_2_and_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_games(12, 5, tmp_path / "valid_train")
    (seen,) = generate_games(1, 6, tmp_path / "valid_seen")
    seen.write_text('{"pddl_domain": "cut', encoding="utf-8")
    argv = f"--games {tmp_path} --seeds 1 --rounds 1 --games-per-round 1 --arms full --workers 1"
    assert main([*argv.split(), "--cache", str(tmp_path / "cache")]) == 2
    assert str(seen) in capsys.readouterr().err


def test_more_games_than_there_are_is_refused(tmp_path: Path) -> None:
    generate_games(6, 5, tmp_path / "valid_train")
    generate_games(1, 6, tmp_path / "valid_seen")
    setup = Setup(rounds=2, games_per_round=1, games=tmp_path, cache=tmp_path / "cache")
    with pytest.raises(GameError, match="ask for fewer"):
        prepare(setup, 0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (Setup(seeds=0), "seeds is 0"),
        (Setup(arms=()), "arms is empty"),
        (Setup(arms=("best",)), "best"),
        (Setup(llm="http://localhost:1/v1"), "name"),
        (Setup(llm="http://localhost:1/v1", model="m", arms=("frequency",)), "no place"),
    ],
)
def test_setups_that_cannot_be_played_are_refused(wrong: Setup, named: str) -> None:
    with pytest.raises(InvalidParameterError, match=named):
        wrong.check()


def test_a_folder_without_the_two_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GameNotFoundError, match="valid_train"):
        Setup(games=tmp_path).check()


def test_a_place_that_cannot_be_written_to_is_refused_before_playing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OutputError, match="--out"):
        _check_writable(blocked / "folder")
    assert main(["--seeds", "1", "--arms", "none", "--out", str(blocked / "folder" / "x")]) == 2
    assert "cannot be written to" in capsys.readouterr().err
