"""Games are made once, the same for a seed, and no recipe of one part is in another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textworld.challenges.tw_cooking import cooking  # type: ignore[import-untyped]

from cvx.errors import InvalidInputError
from experiments.cooking.generator import games_of, make_game
from experiments.cooking.levels import LEVELS


def _world(game: Path) -> object:
    return json.loads(game.with_suffix(".json").read_text(encoding="utf-8"))["metadata"]["recipe"]


def test_a_seed_makes_the_same_game_again(tmp_path: Path) -> None:
    first = make_game(LEVELS[0], 3, "train", tmp_path / "a")
    again = make_game(LEVELS[0], 3, "train", tmp_path / "b")
    assert _world(first) == _world(again)


def test_games_are_made_once_and_named_by_number_and_level(cache: Path, game: Path) -> None:
    made = game.stat().st_mtime_ns
    assert games_of(cache, 1, 7, "train") == [game]
    assert game.stat().st_mtime_ns == made
    assert game.parent.name == f"0000-{LEVELS[0].name}"


def test_no_food_is_prepared_in_one_part_as_in_another() -> None:
    parts = cooking.FOOD_PREPARATIONS_SPLITS
    foods = cooking.FOODS_SPLITS
    untouched = ("raw", "uncut")
    ways = {
        part: {(f, w) for f, some in parts[part].items() for w in some if w != untouched}
        for part in ("train", "valid", "test")
    }
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert ways[one].isdisjoint(ways[other])
        assert set(foods[one]).isdisjoint(foods[other])


def test_no_games_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="n is 0"):
        games_of(tmp_path, 0, 1, "train")


def test_more_games_than_a_seed_has_to_itself_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="n is 1001"):
        games_of(tmp_path, 1001, 1, "train")
