"""ScienceWorld behind three verbs: reset, step, close."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any, NamedTuple, Self

from experiments.errors import GameError, GameNotFoundError
from experiments.plans import Observation

PARTS = ("train", "dev", "test")
"""The parts into which ScienceWorld's authors divide the variations of each task."""

_NO_STEPS = frozenset(["reset task", "task"])  # begin anew, or say the goal once more


def simulator(jar: str | Path | None = None) -> Simulator:
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


class Simulator(NamedTuple):
    """The simulator's methods, as its authors' Python class calls them, and its Java machine.

    That class asks for the commands one by one, a call each, and for texts that nobody reads here.
    """

    server: Any
    jvm: Any

    def commands(self) -> tuple[str, ...]:
        """Return the admissible commands, sorted."""
        listed = self.server.getValidActionObjectCombinations()
        return tuple(sorted(set(self.jvm.java.lang.String.join("\n", listed).split("\n"))))


@functools.lru_cache(maxsize=1)
def _started(jar: str) -> Simulator:
    from py4j.java_gateway import (  # type: ignore[import-untyped]
        GatewayParameters,
        JavaGateway,
        launch_gateway,
    )

    try:
        port, process = launch_gateway(
            classpath=jar,
            die_on_exit=True,
            cwd=str(Path(jar).parent),
            javaopts=["-XX:+UseSerialGC"],  # one thread for collecting garbage
            return_proc=True,
        )
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(auto_field=True, port=port), java_process=process
        )
        server = gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
    except Exception as error:
        raise GameError(f"{jar} did not start in Java ({error!r}): install it anew") from error
    return Simulator(server, gateway.jvm)


@functools.lru_cache(maxsize=64)
def variations(task: str, part: str) -> tuple[int, ...]:
    """Return the numbers of a task's variations in a part.

    Raises
    ------
    GameNotFoundError
        There is no such task.
    """
    server = simulator().server
    names = list(server.getTaskNames())
    if task not in names:
        raise GameNotFoundError(
            f"there is no task {task!r}: choose from {', '.join(sorted(names))}"
        )
    server.load(task, 0, "", False)
    return tuple(getattr(server, f"getVariations{part.capitalize()}")())


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
        self._listed: dict[tuple[str, str], tuple[str, ...]] = {}

    def reset(self) -> Observation:
        """Start an episode."""
        return self._begun(gold=False)

    def _begun(self, *, gold: bool) -> Observation:
        server = simulator().server
        server.load(self.task, self.variation, self.simplified, gold)
        server.reset()
        self.steps, self.score, self.won, self._over = 0, 0.0, False, False
        self.goal = server.freeActionTaskDesc().removeprefix("Task Description:").strip()
        self._listed = {}
        return self._seen(server.step("look around"))

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; return what is seen, the share of the score, and whether it is over.

        Where the simulator asks which of several things was meant, that is the first.
        """
        if self._over:
            raise GameError(f"the episode of {self.task} is over: call reset() before step()")
        server = simulator().server
        told = server.step(command)
        while told.startswith("Ambiguous request"):
            told = server.step("0")
        self.steps += 1
        score = max(round(server.getScore(), 2), self.score)
        failed = server.getScore() < 0
        reward, self.score = score - self.score, score
        self.won = score >= 1.0
        self._over = self.won or failed or server.getCompleted() or self.steps >= self.max_steps
        return self._seen(told), reward, self._over

    def _seen(self, told: str) -> Observation:
        """Return what is seen; commands are listed once for all that looks alike in a game.

        Listing them takes the simulator several times as long as a step.
        """
        server = simulator().server
        around = server.freeActionLook(), server.freeActionInventory()
        if around not in self._listed:
            self._listed[around] = tuple(
                one for one in simulator().commands() if one not in _NO_STEPS
            )
        return Observation(told, self.goal, self._listed[around])

    def walkthrough(self) -> tuple[str, ...]:
        """Return the commands by which the simulator says that it is won."""
        self._begun(gold=True)
        return tuple(simulator().server.getGoldActionSequence())

    def close(self) -> None:
        """End the episode; the simulator goes on for others."""
        self._over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
