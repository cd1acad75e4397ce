"""TextWorld's cooking games as a domain of the experiment: its games, its demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvx.errors import InvalidInputError
from experiments.cooking.demonstrations import demonstrate
from experiments.cooking.engine import CookingGame
from experiments.cooking.generator import games_of
from experiments.cooking.levels import LEVELS
from experiments.harness.domain import Material

if TYPE_CHECKING:
    from experiments.harness.setup import Setup
    from experiments.textgames.reader import Policy

DEFAULT_CACHE = ".cache/cvx-cooking"


@dataclass(frozen=True, slots=True)
class Cooking:
    """Cooking games: read what is to be cooked, find it, prepare it, eat it.

    What is demonstrated, what is played to learn from and what is measured on comes from the
    generator's parts ``train``, ``valid`` and ``test``: what is cooked or cut in one
    is not so in another, so that no recipe of one is in another.

    Parameters
    ----------
    cache : Path
        Where the games are kept.
    demonstrated : int, default 6
        How many of the levels are demonstrated, the simplest first.
    """

    cache: Path = Path(DEFAULT_CACHE)
    demonstrated: int = len(LEVELS)

    @property
    def name(self) -> str:
        """A word for folders and files."""
        return "cooking"

    @property
    def real(self) -> bool:
        """Whether the games are those of a release; these are made for the experiment."""
        return False

    def check(self, setup: Setup) -> None:
        """Raise an InvalidInputError for a language model, or levels that there are not."""
        if setup.llm is not None:
            raise _no_model()
        if not 0 <= self.demonstrated <= len(LEVELS):
            raise InvalidInputError(
                f"{self.demonstrated} demonstrations were asked for: give 0 to {len(LEVELS)}"
            )

    def prepare(self, setup: Setup, seed: int) -> Material:
        """Make or find the games and the winning demonstrations of a seed, one a level.

        Raises
        ------
        GameError
            TextWorld is not installed, or a game is damaged.
        DemonstrationError
            The walkthrough of a game needs more steps than there are.
        """
        shown = games_of(self.cache, len(LEVELS), seed, "train")[: self.demonstrated]
        games = games_of(self.cache, setup.rounds * setup.games_per_round, seed, "valid")
        unseen: Sequence[Path] = []
        if setup.measures:
            unseen = games_of(self.cache, setup.measured, seed, "test")
        demonstrations = []
        for game in shown:
            steps = demonstrate(game, max_steps=setup.max_steps)
            demonstrations.append((steps[0].observation.goal, steps))
        return Material(demonstrations, [self.name_of(game) for game in shown], games, unseen)

    def open(self, game: Path, setup: Setup) -> CookingGame:
        """Open a game to be played once."""
        return CookingGame(game, max_steps=setup.max_steps)

    def task_type_of(self, game: Path) -> str:
        """Return the level of a game, by the name of its folder."""
        return game.parent.name.partition("-")[2]

    def name_of(self, game: Path) -> str:
        """Return a name that equal games have in common, whatever folder they are in."""
        return "/".join(game.parts[-3:-1])

    def policy(self, setup: Setup, seed: int) -> Policy:  # noqa: ARG002
        """Refuse: these games are not played by a language model here."""
        raise _no_model()

    def describe(self) -> Mapping[str, Any]:
        """Return the levels and the version of the package that makes the games."""
        levels = {level.name: level.settings(0, "") for level in LEVELS}
        return {"levels": levels, "versions": {"textworld": version("textworld")}}

    def words(self, setup: Setup) -> tuple[str, str]:
        """Say which games are played, and what is demonstrated."""
        parts = "part valid, measured on part test" if setup.measures else "part valid"
        shown = f"{self.demonstrated} winning demonstrations (one a level, the game's walkthrough)"
        return f"TextWorld cooking games ({parts})", f"{shown} of part train"


def _no_model() -> InvalidInputError:
    return InvalidInputError(
        "a language model was given, and the cooking games have no place for one: leave --llm out"
    )
