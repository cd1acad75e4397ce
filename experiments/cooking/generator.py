"""Cooking games made by TextWorld's own generator, that of ``tw-make tw-cooking``."""

from __future__ import annotations

import contextlib
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from cvx.errors import InvalidInputError
from experiments.cooking.engine import quiet
from experiments.cooking.levels import LEVELS, Level
from experiments.errors import GameError

Split = Literal["train", "valid", "test"]
"""TextWorld's own parts: each has foods, and ways to prepare them, that the others lack."""

GAME_FILE = "game.z8"
_MOST = 1000
"""Games of a seed: their own seeds are drawn from so many numbers, apart from those of others."""


def make_game(level: Level, seed: int, split: Split, folder: Path) -> Path:
    """Make one game.

    Parameters
    ----------
    level : Level
    seed : int
        Of everything that is drawn, the recipe included.
    split : {"train", "valid", "test"}
        Which foods and preparations it may have.
    folder : Path
        Where it goes.

    Returns
    -------
    Path
        The game file, with TextWorld's description of the world beside it.

    Raises
    ------
    GameError
        TextWorld is not installed.
    """
    challenges, generator = _textworld()
    make = challenges.CHALLENGES["tw-cooking"][1]
    options = generator.GameOptions()
    options.seeds = seed
    options.path = str(folder / GAME_FILE)
    with quiet():
        generator.compile_game(make(level.settings(seed, split), options), options)
    return folder / GAME_FILE


def games_of(cache: Path, n: int, seed: int, split: Split) -> list[Path]:
    """Return n games of a seed, the levels in turn, made once however many processes ask.

    Parameters
    ----------
    cache : Path
        Where they are kept.
    n, seed : int
        At most 1000 games of a seed. Those of different seeds differ in everything.
    split : {"train", "valid", "test"}

    Returns
    -------
    list of Path
        In order; the folder of each is named by its number and its level.

    Raises
    ------
    InvalidInputError
        ``n`` is below 1 or above 1000.
    GameError
        TextWorld is not installed.
    """
    if n < 1:
        raise InvalidInputError(f"n is {n}: ask for at least 1 game")
    if n > _MOST:
        raise InvalidInputError(f"n is {n}: ask for at most {_MOST} games of a seed")
    _textworld()
    home = cache / f"games-{version('textworld')}" / f"{split}-{seed}"
    return [_made(home, place, _MOST * seed + place, split) for place in range(n)]


def _made(home: Path, place: int, seed: int, split: Split) -> Path:
    level = LEVELS[place % len(LEVELS)]
    folder = home / f"{place:04d}-{level.name}"
    if not folder.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as draft:
            made = make_game(level, seed, split, Path(draft) / "game").parent
            # Only one rename can win; the games of the others are the same.
            with contextlib.suppress(OSError):
                made.rename(folder)
    return folder / GAME_FILE


def _textworld() -> tuple[Any, Any]:
    try:
        from textworld import challenges, generator  # type: ignore[import-untyped]
    except ImportError as error:
        raise GameError(f"{error}: pip install alfworld 'textworld[pddl]'") from error
    return challenges, generator
