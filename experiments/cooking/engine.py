"""Cooking games on the TextWorld engine, behind three verbs: reset, step, close."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from experiments.errors import GameError, GameNotFoundError
from experiments.plans import Observation

_STATUS = re.compile(r"\s*>[ \t]*(-=.*=-\S*)?\s*\Z")


class CookingGame:
    """One cooking game.

    The goal is the objective as the game states it: it sends the player to the cookbook, and the
    recipe itself must be read in the game.

    Parameters
    ----------
    path : path-like
        A ``.z8`` file as `make_game` makes it.
    max_steps : int
        Steps after which an episode ends; at least 1.

    Attributes
    ----------
    score : float
        The share of the game's points that were earned, from 0 to 1.

    Raises
    ------
    GameNotFoundError
        There is no game at ``path``.
    GameError
        The game is damaged, ``max_steps`` is below 1, TextWorld is not installed, or a game is
        played before `reset` or after its end.

    Examples
    --------
    >>> game = CookingGame("games/game.z8", max_steps=100)     # doctest: +SKIP
    >>> observation = game.reset()                             # doctest: +SKIP
    >>> observation, reward, done = game.step("go north")      # doctest: +SKIP
    """

    def __init__(self, path: str | Path, *, max_steps: int) -> None:
        if max_steps < 1:
            raise GameError(f"max_steps is {max_steps}, at least 1 is needed: give a step limit")
        self.path = Path(path)
        if not self.path.is_file():
            raise GameNotFoundError(f"there is no game at {path}: check the path")
        self.max_steps = max_steps
        self.steps = 0
        self.score = 0.0
        self.won = False
        self.goal = ""
        self._over = True
        self._env = _open(self.path)

    def reset(self) -> Observation:
        """Start an episode."""
        if self._env is None:
            raise GameError(f"{self.path} is closed: make a new CookingGame")
        state = self._env.reset()
        self.steps, self.score, self.won, self._over = 0, 0.0, False, False
        self.goal = state.objective
        # Before it comes a picture of the letters of the engine's name.
        told = state.feedback[max(state.feedback.find(self.goal), 0) :]
        return self._seen(told, state)

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; one that is not admissible changes nothing but takes its step.

        Returns
        -------
        observation : Observation
        reward : float
            The share of the game's points that this step earned; they add up to 1 in a won game.
        done : bool
            True when the game is won, lost or the step limit reached.
        """
        if self._over or self._env is None:
            raise GameError(f"the episode of {self.path} is over: call reset() before step()")
        state, _, _ = self._env.step(command.strip())
        self.steps += 1
        self.won = bool(state.won)
        score = state.score / state.max_score
        reward, self.score = score - self.score, score
        self._over = self.won or bool(state.lost) or self.steps >= self.max_steps
        return self._seen(state.feedback, state), reward, self._over

    def _seen(self, told: str, state: Any) -> Observation:
        commands = tuple(sorted(set(state.admissible_commands)))
        return Observation(_STATUS.sub("", told).strip(), self.goal, commands)

    def walkthrough(self) -> tuple[str, ...]:
        """Return the commands by which the game itself says that it is won."""
        if self._env is None:
            raise GameError(f"{self.path} is closed: make a new CookingGame")
        return tuple(self._env.reset()["extra.walkthrough"])

    def close(self) -> None:
        """Give the engine back; a closed game cannot be reset. Closing twice does nothing."""
        if self._env is not None:
            self._env.close()
        self._env = None
        self._over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep jericho from warning that it does not know a game, which is new and cannot be known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is not fully supported", Warning)
        yield


def _check(path: Path) -> None:
    """Raise a GameError for a file whose own checksum fails: the interpreter would end the process.

    References
    ----------
    The Z-Machine Standards Document 1.1, section 11.1.6: length in words of 8 bytes at 0x1a,
    checksum of all bytes from 0x40 on at 0x1c.
    """
    data = path.read_bytes()
    length, kept = 8 * int.from_bytes(data[0x1A:0x1C]), int.from_bytes(data[0x1C:0x1E])
    if (
        data[:1] != b"\x08"
        or not 0x40 <= length <= len(data)
        or sum(data[0x40:length]) % 2**16 != kept
    ):
        raise GameError(f"{path} is damaged, its checksum does not agree: make the game anew")


def _open(path: Path) -> Any:
    try:
        import textworld  # type: ignore[import-untyped]
    except ImportError as error:
        raise GameError(f"{error}: pip install alfworld 'textworld[pddl]'") from error
    _check(path)
    asked = textworld.EnvInfos(
        admissible_commands=True,
        objective=True,
        score=True,
        max_score=True,
        won=True,
        lost=True,
        extras=["walkthrough"],
    )
    try:
        with quiet():
            return textworld.start(str(path), asked)
    except Exception as error:
        raise GameError(f"{path} is damaged ({error!r}): make the game anew") from error
