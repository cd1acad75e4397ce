"""What an experiment plays with: its setup, the games, the demonstrations."""

from __future__ import annotations

import contextlib
import hashlib
import random
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cvx.alfworld.demonstrations import DEFAULT_CACHE, demonstrate
from cvx.alfworld.engine import find_games
from cvx.alfworld.generator import TASK_TYPES, generate_games
from cvx.errors import DemonstrationError, GameError, GameNotFoundError, InvalidParameterError
from cvx.plans import Demonstrations
from cvx.textgames.arms import ARMS, arm_of

_TO_SHOW = 6  # games of each kind among which a winning demonstration is looked for
_TRAIN, _TEST = "valid_train", "valid_seen"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is to be played.

    Parameters
    ----------
    seeds, rounds, games_per_round : int
        Every seed has its own demonstrations and its own games, or its own order of real ones.
    first_seed : int, default 0
        The seeds are this one and those after it.
    arms : tuple of str
        Names in `ARMS`.
    games : Path, optional
        A folder with real games, demonstrations from its ``valid_train`` and games from its
        ``valid_seen``; None plays generated ones.
    workers : int, default 2
        Processes.
    max_steps : int, default 50
        Commands a game, for the players and for the demonstrations.
    cache : Path
        Where generated games and demonstrations are kept.
    llm, model : str, optional
        Address and name of a language model to play in the agent's place.
    store : Path, optional
        A folder in which every arm and seed keeps its memory and its results, so that an
        experiment that was broken off goes on where it was; None keeps them in RAM.
    """

    seeds: int = 3
    rounds: int = 3
    games_per_round: int = 20
    first_seed: int = 0
    arms: tuple[str, ...] = tuple(ARMS)
    games: Path | None = None
    workers: int = 2
    max_steps: int = 50
    cache: Path = Path(DEFAULT_CACHE)
    llm: str | None = None
    model: str | None = None
    store: Path | None = None

    def check(self) -> None:
        """Raise an InvalidParameterError for what cannot be played."""
        for name in ("seeds", "rounds", "games_per_round", "workers", "max_steps"):
            if getattr(self, name) < 1:
                raise InvalidParameterError(f"{name} is {getattr(self, name)}: give at least 1")
        if self.first_seed < 0:
            raise InvalidParameterError(f"first_seed is {self.first_seed}: give at least 0")
        if not self.arms:
            raise InvalidParameterError(f"arms is empty: choose from {', '.join(ARMS)}")
        if (self.llm is None) != (self.model is None):
            raise InvalidParameterError(
                "a language model needs --llm, its address, and --model, its name"
            )
        for name in self.arms:
            arm = arm_of(name)
            if self.llm and not arm.readable:
                raise InvalidParameterError(f"arm {name!r} has no place for a language model")
        if self.games is not None:
            _split(self.games, _TRAIN)
            _split(self.games, _TEST)


def describe(setup: Setup) -> Mapping[str, Any]:
    """Return the setup as plain values, for the record of a run."""
    plain = asdict(setup)
    plain["games"] = None if setup.games is None else str(setup.games)
    plain["cache"] = str(setup.cache)
    plain["store"] = None if setup.store is None else str(setup.store)
    return plain


@dataclass(slots=True)
class Material:
    """What one seed plays with."""

    demonstrations: Demonstrations
    shown: list[str]
    games: list[Path] = field(default_factory=list)


def task_type_of(game: Path) -> str:
    """Return the kind of task of a game, by the name of its folder."""
    return game.parents[1].name.split("-")[0]


def prepare(setup: Setup, seed: int) -> Material:
    """Make or find the games and the winning demonstrations of a seed, one of each kind of task.

    Raises
    ------
    GameNotFoundError, GameError
        A folder or a game that is missing or damaged, or too few games.
    DemonstrationError
        No demonstration of some kind of task could be won.
    """
    wanted = setup.rounds * setup.games_per_round
    if setup.games is None:
        games = generated_games(setup.cache, wanted, 2 * seed)
        pool = generated_games(setup.cache, _TO_SHOW * len(TASK_TYPES), 2 * seed + 1)
    else:
        games = find_games(_split(setup.games, _TEST))
        pool = find_games(_split(setup.games, _TRAIN))
        if len(games) < wanted:
            raise GameError(
                f"{setup.rounds} rounds of {setup.games_per_round} games were asked for, "
                f"{setup.games} has {len(games)}: ask for fewer"
            )
    random.Random(f"order {seed}").shuffle(games)
    rng = random.Random(f"demonstrations {seed}")
    demonstrations, shown = [], []
    for task_type in TASK_TYPES:
        choices = [game for game in pool if task_type_of(game) == task_type]
        rng.shuffle(choices)
        for game in choices:
            with contextlib.suppress(DemonstrationError):
                steps = demonstrate(
                    game, by=("expert",), seed=seed, max_steps=setup.max_steps, cache=setup.cache
                )
                demonstrations.append((steps[0].observation.goal, steps))
                shown.append(name_of(game))
                break
        else:
            raise DemonstrationError(
                f"none of {len(choices)} games of type {task_type} was won by the expert in "
                f"{setup.max_steps} steps: raise max_steps"
            )
    return Material(demonstrations, shown, games[:wanted])


def generated_games(cache: Path, n: int, seed: int) -> list[Path]:
    """Return n generated games in order, made once however many processes ask for them."""
    folder = cache / "generated" / f"{version('alfworld')}-{seed}-{n}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
            generate_games(n, seed, Path(draft) / "games")
            # Only one rename can win; the games of the others are the same.
            with contextlib.suppress(OSError):
                (Path(draft) / "games").rename(folder)
    return sorted(find_games(folder), key=lambda game: game.parent.name)


def _split(folder: Path, name: str) -> Path:
    """Return a part of a folder of real games, which may hold the release's own subfolder."""
    for place in (folder / name, folder / "json_2.1.1" / name):
        if place.is_dir():
            return place
    raise GameNotFoundError(
        f"{folder} has no folder {name}: name the folder of the ALFWorld release that holds "
        f"{_TRAIN} and {_TEST}, such as json_2.1.1, or leave --games out to play generated games"
    )


def name_of(game: Path) -> str:
    """Return a name that equal games have in common, whatever folder they are in."""
    folder = "/".join(game.parts[-3:-1])
    return f"{folder}-{hashlib.sha256(game.read_bytes()).hexdigest()[:8]}"
