"""One arm with one seed, game by game, on a memory that may outlive the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cvx.alfworld.engine import AlfworldGame
from cvx.alfworld.llm import LLMPolicy
from cvx.alfworld.material import Material, Setup, name_of, prepare, task_type_of
from cvx.errors import InvalidParameterError
from cvx.memory import Memory
from cvx.textgames.arms import arm_of
from cvx.textgames.game import Player

_COURSE, _PLAYER = "alfworld", "alfworld player"


@dataclass(frozen=True, slots=True)
class Played:
    """One game of one arm.

    Attributes
    ----------
    arm, seed, round, place
        Where it belongs; ``place`` counts the games of a seed.
    game : str
        Which game; equal for equal games, whatever the arm and seed.
    task_type : str
        Which of ALFWorld's six kinds of task; the agent is not told.
    won, steps, attempts, decisions, seconds
        As in `Result`.
    """

    arm: str
    seed: int
    round: int
    place: int
    game: str
    task_type: str
    won: bool
    steps: int
    attempts: int
    decisions: int
    seconds: float


class Course:
    """The games of one arm and seed, each of them played once, whatever happens in between.

    Everything that a game leaves behind (its episodes, what they taught, the player's draws, the
    result) becomes durable in one piece, when the game has ended. A process that dies in the
    middle of a game leaves nothing of it, and the game is played again.

    Parameters
    ----------
    setup : Setup
        With the ``store`` that the memory is kept in, if any.
    arm : str
        A name in `ARMS`.
    seed : int
        Which of the setup's seeds.
    memory : Memory
        That of the arm and seed, see `folder_of`.

    Raises
    ------
    InvalidParameterError
        The memory belongs to other games.
    CvxError
        As `prepare` raises.
    """

    def __init__(self, setup: Setup, arm: str, seed: int, memory: Memory) -> None:
        self.setup, self.arm, self.seed, self.memory = setup, arm, seed, memory
        self.material = prepare(setup, seed)
        policy = None
        if setup.llm is not None and setup.model is not None:
            policy = LLMPolicy(setup.llm, setup.model, seed=seed)
        self.player: Player = arm_of(arm).player(memory, seed, policy)
        self._begin()

    def _begin(self) -> None:
        course = _description(self.setup, self.material)
        known = self.memory.record.state(_COURSE)
        if known is None:
            with self.memory.together():
                if arm_of(self.arm).shown:
                    self.player.learn(self.material.demonstrations)
                self._keep(_COURSE, course)
                self._keep(_PLAYER, self.player.state())
            return
        if known != course:
            raise InvalidParameterError(
                f"{self.memory.folder} holds other games than those asked for: give another "
                "--store, or the setup that it was made with"
            )
        self.player.restore(self.memory.record.state(_PLAYER) or {})

    def played(self, place: int) -> Played | None:
        """Return the result of a game, None if it is still to be played."""
        known = self.memory.record.state(f"{_COURSE} game {place}")
        return None if known is None else Played(**known)

    def play(self) -> Iterator[Played]:
        """Yield the games in order: those that were played before, then those played now."""
        for place, path in enumerate(self.material.games):
            yield self.played(place) or self._play(place, path)

    def _play(self, place: int, path: Path) -> Played:
        setup = self.setup
        with (
            AlfworldGame(path, max_steps=setup.max_steps, cache=setup.cache) as game,
            self.memory.together(),
        ):
            result = self.player.play(game)
            number, kind = place // setup.games_per_round, task_type_of(path)
            played = Played(self.arm, self.seed, number, place, name_of(path), kind, *result)
            self._keep(f"{_COURSE} game {place}", asdict(played))
            self._keep(_PLAYER, self.player.state())
        return played

    def _keep(self, name: str, value: Mapping[str, Any]) -> None:
        with self.memory.record.transaction() as write:
            write.set_state(name, value)


def play_arm(setup: Setup, arm: str, seed: int) -> Iterator[Played]:
    """Play all rounds of one arm with one seed, learning on the way; or go on with them."""
    with arm_of(arm).open(folder_of(setup, arm, seed), seed) as memory:
        yield from Course(setup, arm, seed, memory).play()


def folder_of(setup: Setup, arm: str, seed: int) -> Path | None:
    """Return where an arm keeps its memory with a seed, None for RAM."""
    return None if setup.store is None else setup.store / f"{arm}-{seed}"


def _description(setup: Setup, material: Material) -> dict[str, Any]:
    return {
        "games": [name_of(game) for game in material.games],
        "shown": material.shown,
        "max_steps": setup.max_steps,
        "model": setup.model,
    }
