"""ScienceWorld as a domain of the experiment: its variations, its demonstrations."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvx.errors import InvalidInputError
from experiments.errors import DemonstrationError
from experiments.harness.domain import Material
from experiments.plans import Played
from experiments.scienceworld.engine import ScienceWorldGame, simulator, variations

if TYPE_CHECKING:
    from experiments.harness.setup import Setup
    from experiments.textgames.reader import Policy

TASKS = (
    "find-living-thing",
    "find-non-living-thing",
    "boil",
    "melt",
    "lifespan-longest-lived",
    "chemistry-mix-paint-secondary-color",
)
_SHOWN_STEPS = 200  # of a demonstration, however many steps the players have
_TO_SHOW = 5  # variations of a task among which a winning demonstration is looked for


@dataclass(frozen=True, slots=True)
class ScienceWorld:
    """Tasks of ScienceWorld.

    What is demonstrated is from part ``train`` of its authors, what is played to learn from is
    from ``dev``, and what is measured on from ``test``.

    Parameters
    ----------
    tasks : tuple of str
        Their names; one winning demonstration is shown of each.
    simplified : str, default "easy"
        As for `ScienceWorldGame`.
    """

    tasks: tuple[str, ...] = TASKS
    simplified: str = "easy"

    @property
    def name(self) -> str:
        """A word for folders and files."""
        return "scienceworld"

    @property
    def real(self) -> bool:
        """Whether the games are those of a release."""
        return True

    def check(self, setup: Setup) -> None:
        """Raise a CvxError where it is not installed, a task is unknown, or a model is given."""
        if setup.llm is not None:
            raise _no_model()
        if not self.tasks:
            raise InvalidInputError(f"tasks is empty: choose from {', '.join(TASKS)} and others")
        simulator()
        for task in self.tasks:
            variations(task, "train")

    def prepare(self, setup: Setup, seed: int) -> Material:
        """Find the variations and the winning demonstrations of a seed, one of each task.

        Raises
        ------
        DemonstrationError
            No demonstration of some task could be won.
        """
        told = {}
        for task in self.tasks:
            game, steps = demonstration(task, seed, self.simplified)
            told[game] = (steps[0].observation.goal, steps)
        games = self._drawn("dev", setup.rounds * setup.games_per_round, seed)
        unseen = self._drawn("test", setup.measured, seed) if setup.measures else []
        return Material(list(told.values()), [self.name_of(game) for game in told], games, unseen)

    def _drawn(self, part: str, n: int, seed: int) -> list[Path]:
        """Return n variations, of each task as many, in an order of their own.

        However many there are of one part, those of another are the same.
        """
        rng = random.Random(f"scienceworld {part} {seed}")
        each = {task: list(variations(task, part)) for task in self.tasks}
        for numbers in each.values():
            rng.shuffle(numbers)
        longest = max(len(numbers) for numbers in each.values())
        turns = [
            Path(task) / str(numbers[turn])
            for turn in range(longest)
            for task, numbers in each.items()
            if turn < len(numbers)
        ]
        drawn = turns[:n]
        rng.shuffle(drawn)
        return drawn

    def open(self, game: Path, setup: Setup) -> ScienceWorldGame:
        """Open a game to be played once."""
        return ScienceWorldGame(
            game.parent.name,
            int(game.name),
            max_steps=setup.max_steps,
            simplified=self.simplified,
        )

    def task_type_of(self, game: Path) -> str:
        """Return the task of a game."""
        return game.parent.name

    def name_of(self, game: Path) -> str:
        """Return the task and the number of its variation."""
        return "/".join(game.parts[-2:])

    def policy(self, setup: Setup, seed: int) -> Policy:  # noqa: ARG002
        """Refuse: these games are not played by a language model here."""
        raise _no_model()

    def describe(self) -> Mapping[str, Any]:
        """Return the tasks, the simplifications and the version of the package."""
        versions = {"scienceworld": version("scienceworld")}
        return {"tasks": self.tasks, "simplified": self.simplified, "versions": versions}

    def words(self, setup: Setup) -> tuple[str, str]:
        """Say which games are played, and what is demonstrated."""
        parts = "part dev, measured on part test" if setup.measures else "part dev"
        shown = f"{len(self.tasks)} winning demonstrations (one a task, its own walkthrough)"
        simple = f", simplifications {self.simplified}" if self.simplified else ""
        return f"ScienceWorld ({parts}{simple})", f"{shown} of part train"


@functools.lru_cache(maxsize=256)
def demonstration(task: str, seed: int, simplified: str) -> tuple[Path, Sequence[Played]]:
    """Return a variation of part train, drawn by a seed, and the steps that won it.

    Raises
    ------
    DemonstrationError
        None of the first few was won by its own walkthrough.
    """
    choices = list(variations(task, "train"))
    random.Random(f"scienceworld {task} {seed}").shuffle(choices)
    for number in choices[:_TO_SHOW]:
        with ScienceWorldGame(task, number, max_steps=_SHOWN_STEPS, simplified=simplified) as game:
            steps, commands = [], game.walkthrough()
            seen, over = game.reset(), False
            for command in commands:
                if over:
                    break
                before = seen
                seen, reward, over = game.step(command)
                # Such as opening what is open.
                if command in before.admissible_commands or reward > 0:
                    steps.append(Played(before, command, reward))
            if game.won:
                return Path(task) / str(number), tuple(steps)
    raise DemonstrationError(
        f"none of {_TO_SHOW} variations of {task} was won by its own walkthrough: leave the "
        "task out"
    )


def _no_model() -> InvalidInputError:
    return InvalidInputError(
        "a language model was given, and ScienceWorld has no place for one here: leave --llm out"
    )
