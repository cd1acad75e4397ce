"""ScienceWorld behind three verbs: reset, step, close."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any, Self

from experiments.errors import GameError, GameNotFoundError
from experiments.plans import Observation

PARTS = ("train", "dev", "test")
"""The parts into which ScienceWorld's authors divide the variations of each task."""


def simulator(jar: str | Path | None = None) -> Any:
    """Return the simulator, one a process: it is a Java program that is started once.

    Parameters
    ----------
    jar : path-like, optional
        The simulator; default the one that the package carries.

    Raises
    ------
    GameError
        The package, its jar or Java is missing; the message says what to install.
    """
    try:
        from scienceworld.constants import JAR_PATH  # type: ignore[import-untyped]
    except ImportError as error:
        raise GameError(f"{error}: pip install scienceworld") from error
    path = Path(jar or JAR_PATH)
    if not path.is_file():
        raise GameError(
            f"there is no {path}: pip install --force-reinstall scienceworld, which carries it"
        )
    if shutil.which("java") is None:
        raise GameError(
            "there is no java, which ScienceWorld runs on: apt-get install default-jre-headless"
        )
    return _started(str(path))


@functools.lru_cache(maxsize=1)
def _started(jar: str) -> Any:
    from scienceworld import ScienceWorldEnv  # type: ignore[import-untyped]

    try:
        # The step limit is kept by the game below.
        return ScienceWorldEnv("", jar, envStepLimit=10**9)
    except Exception as error:
        raise GameError(f"{jar} did not start in Java ({error!r}): install it anew") from error


@functools.lru_cache(maxsize=64)
def variations(task: str, part: str) -> tuple[int, ...]:
    """Return the numbers of a task's variations in a part.

    Raises
    ------
    GameNotFoundError
        There is no such task.
    """
    env = simulator()
    if task not in env.get_task_names():
        raise GameNotFoundError(
            f"there is no task {task!r}: choose from {', '.join(sorted(env.get_task_names()))}"
        )
    env.load(task, 0, "")
    return tuple(getattr(env, f"get_variations_{part}")())


class ScienceWorldGame:
    """One variation of one task.

    Rewards are the shares of the task's score that were earned; a score below 0, as for an answer
    that is wrong, is the end, and takes back nothing that was earned.

    Parameters
    ----------
    task : str
        Its name.
    variation : int
    max_steps : int
        At least 1.
    simplified : str, default "easy"
        The simulator's simplifications, joined by commas; "" for none.

    Raises
    ------
    GameNotFoundError
        There is no such task or variation.
    GameError
        Something is not installed, ``max_steps`` is below 1, or a game is played before `reset`
        or after its end.
    """

    def __init__(
        self, task: str, variation: int, *, max_steps: int, simplified: str = "easy"
    ) -> None:
        if max_steps < 1:
            raise GameError(f"max_steps is {max_steps}, at least 1 is needed: give a step limit")
        if not any(variation in variations(task, part) for part in PARTS):
            raise GameNotFoundError(f"task {task!r} has no variation {variation}: choose another")
        self.task, self.variation, self.max_steps = task, variation, max_steps
        self.simplified = simplified
        self.steps, self.score, self.won, self.goal = 0, 0.0, False, ""
        self._over = True

    def reset(self) -> Observation:
        """Start an episode."""
        return self._begun(gold=False)

    def _begun(self, *, gold: bool) -> Observation:
        env = simulator()
        env.load(self.task, self.variation, self.simplified, gold)
        told, info = env.reset()
        self.steps, self.score, self.won, self._over = 0, 0.0, False, False
        self.goal = info["taskDesc"].removeprefix("Task Description:").strip()
        return self._seen(told, info)

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; return what is seen, the share of the score, and whether it is over."""
        if self._over:
            raise GameError(f"the episode of {self.task} is over: call reset() before step()")
        told, _, completed, info = simulator().step(command)
        self.steps += 1
        score = max(info["score"] / 100, self.score)
        reward, self.score = score - self.score, score
        self.won = score >= 1.0
        self._over = self.won or bool(completed) or self.steps >= self.max_steps
        return self._seen(told, info), reward, self._over

    def _seen(self, told: str, info: Any) -> Observation:
        return Observation(told, self.goal, tuple(sorted(set(info["valid"]))))

    def walkthrough(self) -> tuple[str, ...]:
        """Return the commands by which the simulator says that it is won."""
        self._begun(gold=True)
        return tuple(simulator().get_gold_action_sequence())

    def close(self) -> None:
        """End the episode; the simulator goes on for others."""
        self._over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
