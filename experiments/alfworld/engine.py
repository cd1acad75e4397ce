"""ALFWorld games on the real TextWorld engine, behind three verbs: reset, step, close."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from experiments.alfworld.package import alfworld_module
from experiments.errors import GameError, GameNotFoundError
from experiments.plans import Observation

if TYPE_CHECKING:
    from collections.abc import Callable

GAME_FILE = "game.tw-pddl"
_FIELDS = ("pddl_domain", "grammar", "pddl_problem")
_GOAL = re.compile(r"Your task is to: (.*)")
# The two grammars of ALFWorld's releases name one action differently.
_PUT = re.compile(r"put (.+) in/on (.+)")
_MOVE = re.compile(r"move (.+) to (.+)")


class AlfworldGame:
    """One ALFWorld game.

    Observations, admissible commands, reward and end are those of the stock TextWorld environment.
    Commands of either release are understood: ``put X in/on Y`` is ``move X to Y`` where only the
    latter is admissible, and the other way round.

    Parameters
    ----------
    path : path-like
        A ``game.tw-pddl`` file, or the folder that holds one.
    max_steps : int
        Steps after which an episode ends, won or not; at least 1.
    cache : path-like, optional
        A folder for translated games. The first load of a game takes about 0.3 s, later ones in
        the same process or with the same folder some milliseconds.

    Raises
    ------
    GameNotFoundError
        If there is no game at ``path``.
    GameError
        If the game is damaged, ``max_steps`` is below 1, or a game is played before `reset` or
        after its end.

    Examples
    --------
    >>> game = AlfworldGame("games/0000", max_steps=50)        # doctest: +SKIP
    >>> observation = game.reset()                             # doctest: +SKIP
    >>> observation, reward, done = game.step("go to desk 1")  # doctest: +SKIP
    """

    def __init__(
        self, path: str | Path, *, max_steps: int, cache: str | Path | None = None
    ) -> None:
        if max_steps < 1:
            raise GameError(f"max_steps is {max_steps}, at least 1 is needed: give a step limit")
        self.path = game_file(path)
        self.max_steps = max_steps
        self.steps = 0
        self.won = False
        self.goal = ""
        self._over = True
        self._env = open_engine(self.path, cache)

    def reset(self) -> Observation:
        """Start an episode.

        Returns
        -------
        Observation
            Its text is the room's description and the task.
        """
        if self._env is None:
            raise GameError(f"{self.path} is closed: make a new AlfworldGame")
        state = self._checked(self._env.reset)
        self.steps = 0
        self.won = bool(state["won"])
        self._over = self.won
        self.goal = goal_of(state["feedback"])
        self._admissible: tuple[str, ...] = tuple(state["admissible_commands"])
        return Observation(state["feedback"], self.goal, self._admissible)

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; one that is not admissible changes nothing but takes its step.

        Parameters
        ----------
        command : str

        Returns
        -------
        observation : Observation
        reward : float
            1.0 when the game is won by this step, else 0.0.
        done : bool
            True when the game is won or the step limit reached.
        """
        if self._over or self._env is None:
            raise GameError(f"the episode of {self.path} is over: call reset() before step()")
        state, _, _ = self._checked(self._env.step, spoken(command.strip(), self._admissible))
        self.steps += 1
        self.won = bool(state["won"])
        self._over = self.won or self.steps >= self.max_steps
        self._admissible = tuple(state["admissible_commands"])
        observation = Observation(state["feedback"], self.goal, self._admissible)
        return observation, float(self.won), self._over

    def _checked(self, verb: Callable[..., Any], *arguments: str) -> Any:
        try:
            return verb(*arguments)
        except Exception as error:
            # A grammar that lacks a symbol is found out only when a text needs it.
            raise GameError(f"{self.path} is damaged ({error!r}): get the file anew") from error

    def close(self) -> None:
        """Give the engine back; a closed game cannot be reset. Closing twice does nothing."""
        if self._env is not None:
            self._env.unwrapped.close()
        self._env = None
        self._over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def spoken(command: str, admissible: tuple[str, ...]) -> str:
    """Return ``command`` in the words of the game's grammar, or as it is if that makes no sense.

    Examples
    --------
    >>> spoken("put mug 1 in/on desk 1", ("look", "move mug 1 to desk 1"))
    'move mug 1 to desk 1'
    """
    if command in admissible:
        return command
    for pattern, other in ((_PUT, "move {} to {}"), (_MOVE, "put {} in/on {}")):
        parts = pattern.fullmatch(command)
        if parts and other.format(*parts.groups()) in admissible:
            return other.format(*parts.groups())
    return command


def goal_of(text: str) -> str:
    """Return the task's sentence from a game's first observation, without the full stop.

    Raises
    ------
    GameError
        If the text states no task.

    Examples
    --------
    >>> goal_of("You see a desk 1. Your task is to: put a mug in desk.")
    'put a mug in desk'
    """
    said = _GOAL.search(text)
    if said is None:
        raise GameError("the game does not say 'Your task is to: ...': get the file anew")
    return said[1].strip().removesuffix(".").rstrip()


def game_file(path: str | Path) -> Path:
    """Return the game file at ``path``: the file itself, or the only one in that folder."""
    path = Path(path)
    if path.is_dir():
        found = sorted(path.rglob(GAME_FILE))
        if len(found) != 1:
            raise GameNotFoundError(
                f"{path} holds {len(found)} {GAME_FILE} files, one is needed: "
                "name the folder of one game"
            )
        return found[0]
    if not path.is_file():
        raise GameNotFoundError(f"there is no game at {path}: check the path")
    return path


def find_games(folder: str | Path) -> list[Path]:
    """Return all game files below ``folder``, sorted by path.

    Raises
    ------
    GameNotFoundError
        If the folder is missing or holds no game.
    """
    found = sorted(Path(folder).rglob(GAME_FILE))
    if not found:
        raise GameNotFoundError(
            f"there is no {GAME_FILE} below {folder}: name a folder of ALFWorld games, such as "
            "json_2.1.1/valid_seen, or generate some with experiments.alfworld.generator"
        )
    return found


def read_game(path: Path) -> dict[str, Any]:
    """Return the content of a game file, checked to have what the engine reads."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GameError(f"{path} is damaged ({error!r}): get the file anew") from error
    lacking = [
        name
        for name in _FIELDS
        if not (isinstance(data, dict) and isinstance(data.get(name), str) and data[name])
    ]
    if lacking:
        raise GameError(f"{path} is not a game, it lacks {', '.join(lacking)}: get the file anew")
    return dict(data)


def open_engine(path: Path, cache: str | Path | None = None, *, facts: bool = False) -> Any:
    """Load a game into the engine that `AlfworldGame` plays it on.

    Parameters
    ----------
    path : Path
        A game file.
    cache : path-like, optional
        As for `AlfworldGame`.
    facts : bool, default False
        Whether states list the true facts of the world, which the handcoded expert reads.

    Returns
    -------
    textworld.Environment
        A `FastPddlEnv` under alfworld's own wrapper that names the objects.

    Raises
    ------
    GameError
        If the game is damaged or alfworld is not installed.
    """
    data = read_game(path)
    try:
        from textworld.core import EnvInfos  # type: ignore[import-untyped]

        from experiments.alfworld.pddl import FastPddlEnv
    except ImportError as error:
        raise GameError(f"{error}: pip install alfworld 'textworld[pddl]'") from error
    inner = FastPddlEnv(EnvInfos(facts=facts), cache=None if cache is None else Path(cache))
    wrapper = alfworld_module("agents.environment.alfred_tw_env").AlfredDemangler
    env = wrapper(inner, shuffle=False)
    try:
        env.load(data)
    except (Exception, SystemExit) as error:
        # fast-downward's parser ends with sys.exit, TatSu's with exceptions of its own.
        env.unwrapped.close()
        raise GameError(f"{path} is damaged ({error!r}): get the file anew") from error
    return env
