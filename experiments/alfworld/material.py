"""ALFWorld as a domain of the experiment: its games, its demonstrations."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvx.errors import InvalidInputError
from experiments.alfworld.demonstrations import DEFAULT_CACHE, demonstrate
from experiments.alfworld.engine import GAME_FILE, AlfworldGame, find_games, spoken
from experiments.alfworld.generator import TASK_TYPES, generate_games
from experiments.errors import DemonstrationError, GameError, GameNotFoundError
from experiments.harness.domain import Material
from experiments.plans import Played

if TYPE_CHECKING:
    from experiments.harness.setup import Setup
    from experiments.textgames.llm import LLMPolicy

_TO_SHOW = 6  # games of each kind among which a winning demonstration is looked for
_SHOWN_STEPS = 50  # of a demonstration, however many steps the players have
_TRAIN, _TEST = "valid_train", "valid_seen"
# Generated games to measure on have seeds that no games to learn from or to show have.
_UNSEEN = 1_000_000


@dataclass(frozen=True, slots=True)
class Alfworld:
    """The household games of ALFWorld.

    Parameters
    ----------
    games : Path, optional
        A folder with real games, ``valid_train`` and ``valid_seen`` in it; None plays generated
        ones. Demonstrations are from ``valid_train``. What is played to learn from is too, if the
        protocol measures, and what is measured on is from ``valid_seen``; the other protocols play
        ``valid_seen``.
    cache : Path
        Where generated games, translations and demonstrations are kept.
    demonstrations : int, optional
        So many, of games drawn at random, whatever their type; 0 for none. Default one a type.
    """

    games: Path | None = None
    cache: Path = Path(DEFAULT_CACHE)
    demonstrations: int | None = None

    @property
    def name(self) -> str:
        """A word for folders and files."""
        return "alfworld"

    @property
    def real(self) -> bool:
        """Whether the games are those of the ALFWorld release."""
        return self.games is not None

    def check(self, setup: Setup) -> None:
        """Raise a CvxError for a folder without its parts, or demonstrations that cannot be."""
        if self.demonstrations is not None and self.demonstrations < 0:
            raise InvalidInputError(
                f"demonstrations is {self.demonstrations}: give 0 for none, or how many"
            )
        if self.demonstrations in (0, 1) and "shuffled" in setup.arms:
            raise InvalidInputError(
                f"the arm 'shuffled' exchanges the goals of demonstrations, and there are "
                f"{self.demonstrations}: leave it out of the arms, or show at least 2"
            )
        if self.games is not None:
            for part in (_TRAIN, _TEST):
                find_games(_split(self.games, part))

    def prepare(self, setup: Setup, seed: int) -> Material:
        """Make or find the games and the winning demonstrations of a seed, one of each task.

        Raises
        ------
        GameNotFoundError, GameError
            A folder or a game that is missing or damaged, or none of some kind of task.
        DemonstrationError
            No demonstration of some kind of task could be won.
        """
        if self.games is None:
            wanted = setup.rounds * setup.games_per_round
            games = generated_games(self.cache, wanted, 2 * seed)
            pool = generated_games(self.cache, _TO_SHOW * len(TASK_TYPES), 2 * seed + 1)
            unseen: Sequence[Path] = []
            if setup.measures:
                unseen = generated_games(self.cache, setup.measured, _UNSEEN + seed)
        else:
            pool = find_games(_split(self.games, _TRAIN))
            unseen = list(find_games(_split(self.games, _TEST)))
            games = list(pool if setup.measures else unseen)
            # In order of their names, the first of them would be of one kind of task.
            random.Random("measured").shuffle(unseen)
        random.Random(f"order {seed}").shuffle(games)
        shown = self._shown(pool, seed)
        left = [game for game in games if game not in shown]
        told = [(steps[0].observation.goal, steps) for steps in shown.values()]
        return Material(told, [self.name_of(game) for game in shown], left, unseen)

    def _shown(self, pool: Sequence[Path], seed: int) -> dict[Path, list[Played]]:
        """Return games with a winning demonstration of each."""
        rng, shown = random.Random(f"demonstrations {seed}"), dict[Path, list[Played]]()
        if self.demonstrations is not None:
            choices = list(pool)
            rng.shuffle(choices)
            for _ in range(self.demonstrations):
                self._show(choices, shown, seed, "any type")
            return shown
        for task_type in TASK_TYPES:
            choices = [game for game in pool if self.task_type_of(game) == task_type]
            if not choices:
                raise GameError(
                    f"there is no game of type {task_type} among the {len(pool)} to demonstrate: "
                    "each kind of task is shown once, so get the folder whole"
                )
            rng.shuffle(choices)
            self._show(choices, shown, seed, f"type {task_type}")
        return shown

    def _show(
        self, choices: list[Path], shown: dict[Path, list[Played]], seed: int, which: str
    ) -> None:
        """Demonstrate the first of these games that the expert wins, and take it from them."""
        tried = 0
        while choices:
            game, tried = choices.pop(0), tried + 1
            with contextlib.suppress(DemonstrationError):
                shown[game] = demonstrate(game, seed=seed, max_steps=_SHOWN_STEPS, cache=self.cache)
                return
        raise DemonstrationError(
            f"none of {tried} games of {which} was won by the expert in {_SHOWN_STEPS} steps: "
            "get the folder whole"
        )

    def open(self, game: Path, setup: Setup) -> AlfworldGame:
        """Open a game to be played once."""
        return AlfworldGame(game, max_steps=setup.max_steps, cache=self.cache)

    def task_type_of(self, game: Path) -> str:
        """Return the kind of task of a game, by the name of its folder."""
        return game.parents[1].name.split("-")[0]

    def name_of(self, game: Path) -> str:
        """Return a name that equal games have in common, whatever folder they are in."""
        return _name_of(game)

    def policy(self, setup: Setup, seed: int) -> LLMPolicy:
        """Return a language model that plays by choosing among the admissible commands."""
        from experiments.chat import AnswerCache
        from experiments.textgames.llm import LLMPolicy

        assert setup.llm is not None
        assert setup.model is not None
        answers = None if setup.answers is None else AnswerCache(setup.answers)
        return LLMPolicy(setup.llm, setup.model, seed=seed, cache=answers, meant=spoken)

    def describe(self) -> Mapping[str, Any]:
        """Return the folder and the versions of the packages that make the games."""
        packages = {name: version(name) for name in ("textworld", "alfworld")}
        games = None if self.games is None else str(self.games)
        return {"games": games, "demonstrations": self.demonstrations, "versions": packages}

    def words(self, setup: Setup) -> tuple[str, str]:
        """Say which games are played, and what is demonstrated."""
        drawn = "one a task type" if self.demonstrations is None else "of any type"
        n = len(TASK_TYPES) if self.demonstrations is None else self.demonstrations
        shown = f"{n} winning demonstrations ({drawn}, alfworld's handcoded expert)"
        if self.games is None:
            return "ALFWorld-generated games", f"{shown} of other games"
        if setup.measures:
            return f"real ALFWorld games ({_TRAIN}, measured on {_TEST})", f"{shown} of {_TRAIN}"
        return f"real ALFWorld games ({_TEST})", f"{shown} of {_TRAIN}"


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
    games = sorted(folder.rglob(GAME_FILE), key=lambda game: game.parent.name)
    if len(games) != n:
        raise GameError(
            f"{folder} holds {len(games)} of the {n} games that were generated into it: "
            "delete that folder, and they are made anew"
        )
    return games


def _split(folder: Path, name: str) -> Path:
    """Return a part of a folder of real games, which may hold the release's own subfolder."""
    for place in (folder / name, folder / "json_2.1.1" / name):
        if place.is_dir():
            return place
    raise GameNotFoundError(
        f"{folder} has no folder {name}: name the folder of the ALFWorld release that holds "
        f"{_TRAIN} and {_TEST}, such as json_2.1.1, or leave --games out to play generated games"
    )


@functools.lru_cache(maxsize=4096)
def _name_of(game: Path) -> str:
    folder = "/".join(game.parts[-3:-1])
    return f"{folder}-{hashlib.sha256(game.read_bytes()).hexdigest()[:8]}"
