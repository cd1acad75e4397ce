"""ALFWorld as a domain: its games are whole, its demonstrations a seed's own, its faults named."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cvx.errors import InvalidInputError
from experiments.alfworld.__main__ import main
from experiments.alfworld.generator import TASK_TYPES, generate_games
from experiments.alfworld.material import Alfworld, generated_games
from experiments.errors import GameError, GameNotFoundError
from experiments.harness.setup import Setup


def _setup(domain: Alfworld, **changes: Any) -> Setup:
    usual = {"protocol": "stream", "seeds": 1, "rounds": 1, "games_per_round": 2}
    return Setup(domain=domain, **{**usual, **changes})


def test_processes_that_ask_for_the_same_games_at_once_get_whole_ones(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(generated_games, [tmp_path] * 8, [12] * 8, [7] * 8))
    assert all(games == made[0] for games in made)
    assert len(made[0]) == 12
    for game in made[0]:
        assert json.loads(game.read_text(encoding="utf-8"))["solvable"] is True
    assert [p.name for p in (tmp_path / "generated").iterdir()] == [made[0][0].parents[2].name]


def test_generated_games_of_which_some_are_lost_are_not_called_too_few(tmp_path: Path) -> None:
    games = generated_games(tmp_path, 3, 7)
    shutil.rmtree(games[1].parent)
    with pytest.raises(GameError, match=r"holds 2 of the 3 games .* delete that folder"):
        generated_games(tmp_path, 3, 7)


def test_demonstrations_of_a_seed_do_not_depend_on_how_many_games_are_played(
    tmp_path: Path,
) -> None:
    domain = Alfworld(cache=tmp_path)
    few = domain.prepare(_setup(domain), 3)
    more = domain.prepare(_setup(domain, rounds=2, games_per_round=4), 3)
    assert few.shown == more.shown
    assert [name.split("-")[0] for name in few.shown] == list(TASK_TYPES)
    assert len(few.games) == 2
    assert not set(few.shown) & {domain.name_of(game) for game in few.games}


def test_demonstrations_do_not_depend_on_the_steps_of_players_and_may_be_few_or_none(
    tmp_path: Path,
) -> None:
    two, none = (Alfworld(cache=tmp_path, demonstrations=n) for n in (2, 0))
    long, short = (two.prepare(_setup(two, max_steps=steps), 3) for steps in (50, 5))
    assert long.shown == short.shown
    assert [len(steps) for _, steps in long.demonstrations] == [
        len(steps) for _, steps in short.demonstrations
    ]
    assert len(long.shown) == 2
    assert none.prepare(_setup(none), 3).demonstrations == []


def test_a_negative_number_of_demonstrations_and_goals_that_cannot_be_exchanged_are_refused() -> (
    None
):
    negative, one = Alfworld(demonstrations=-1), Alfworld(demonstrations=1)
    with pytest.raises(InvalidInputError, match="demonstrations is -1"):
        negative.check(_setup(negative))
    with pytest.raises(InvalidInputError, match="show at least 2"):
        one.check(_setup(one, arms=("full", "shuffled")))
    one.check(_setup(one, arms=("full", "none")))


@pytest.mark.slow
@pytest.mark.requirement("V21")
def test_what_is_shown_learned_from_and_measured_on_are_different_games(tmp_path: Path) -> None:
    generate_games(12, 5, tmp_path / "valid_train")
    generate_games(4, 6, tmp_path / "valid_seen")
    real = Alfworld(tmp_path, tmp_path / "cache")
    made = Alfworld(cache=tmp_path / "cache")
    for domain in (real, made):
        setup = _setup(domain, protocol="transfer", games_per_round=6, measured=4)
        material = domain.prepare(setup, 0)
        learned, unseen = ({domain.name_of(g) for g in part} for part in
                           (material.games, material.unseen))  # fmt: skip
        assert len(learned) == 6
        assert len(unseen) == 4
        assert not learned & unseen
        assert not set(material.shown) & (learned | unseen)


@pytest.mark.slow
@pytest.mark.requirement("V21")
def test_the_command_line_plays_and_writes_a_table_a_json_a_picture_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "runs" / "small.v1"
    argv = "--seeds 1 --rounds 1 --games-per-round 2 --measured 2 --arms full,none --workers 2"
    argv += f" --out {out} --cache {tmp_path / 'cache'}"
    assert main(argv.split()) == 0
    told = capsys.readouterr().out
    assert "ALFWorld-generated" in told
    assert "of memory, a decision" in " ".join(told.split())
    written = json.loads(out.with_name("small.v1.json").read_text(encoding="utf-8"))
    assert len(written["games"]) == 2 * (2 + 2 + 2)
    by_arm = {arm: [g["game"] for g in written["games"] if g["arm"] == arm]
              for arm in ("full", "none")}  # fmt: skip
    assert by_arm["full"] == by_arm["none"], "the arms play the same games in the same order"
    assert written["differences"]["none"]["late"]["low"] <= 1
    assert out.with_name("small.v1.png").read_bytes().startswith(b"\x89PNG")
    assert argv in out.with_name("small.v1.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.requirement("W26")
def test_the_same_command_with_a_store_plays_no_game_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = "--protocol repeat --seeds 1 --rounds 2 --games-per-round 1 --arms full --workers 1"
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
    argv = f"--protocol stream --games {tmp_path} --seeds 1 --rounds 1 --games-per-round 1"
    argv += f" --arms full --workers 1 --cache {tmp_path / 'cache'}"
    assert main(argv.split()) == 2
    assert str(seen) in capsys.readouterr().err


def test_a_folder_without_games_of_some_kind_is_not_blamed_on_the_expert(tmp_path: Path) -> None:
    generate_games(2, 5, tmp_path / "valid_train", TASK_TYPES[:1])
    generate_games(1, 6, tmp_path / "valid_seen")
    domain = Alfworld(tmp_path, tmp_path / "cache")
    with pytest.raises(GameError, match=f"no game of type {TASK_TYPES[1]} among the 2"):
        domain.prepare(_setup(domain), 0)


def test_a_folder_without_the_two_parts_or_without_games_in_them_is_refused(
    tmp_path: Path,
) -> None:
    domain = Alfworld(tmp_path)
    with pytest.raises(GameNotFoundError, match="has no folder valid_train"):
        domain.check(_setup(domain))
    (tmp_path / "valid_train").mkdir()
    (tmp_path / "valid_seen").mkdir()
    with pytest.raises(GameNotFoundError, match=r"no game\.tw-pddl below .*valid_train"):
        domain.check(_setup(domain))


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ("--arms best", "groups protocols, ablations, all"),
        ("--protocol both", "choose from transfer, repeat, stream"),
        ("--measured-after 0,x", "0,5,10"),
        ("--protocol repeat --measured 5", "choose transfer"),
    ],
)
def test_an_unknown_word_ends_with_code_2_and_the_choices(
    argv: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv.split()) == 2
    assert named in capsys.readouterr().err
