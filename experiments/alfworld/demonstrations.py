"""Winning demonstrations: how a game is won, shown once.

alfworld's handcoded expert looks for things as a player would, opening and going about, and takes
under a second. Losing attempts are never returned.
"""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.alfworld.engine import game_file, goal_of, open_engine
from experiments.alfworld.files import write_whole
from experiments.alfworld.package import alfworld_module
from experiments.errors import DemonstrationError, GameError
from experiments.plans import Observation, Played

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_CACHE = ".cache/cvx-alfworld"
_FORMAT = 1


def demonstrate(
    game: str | Path,
    *,
    seed: int = 0,
    attempts: int = 3,
    max_steps: int = 50,
    cache: str | Path | None = DEFAULT_CACHE,
) -> list[Played]:
    """Show how a game is won.

    Parameters
    ----------
    game : path-like
        A ``game.tw-pddl`` file with ``traj_data.json`` beside it, or its folder.
    seed : int, default 0
        Seeds the expert's choices; attempt ``i`` uses ``seed + i``. The random state of the
        caller stays as it was.
    attempts : int, default 3
        How often the expert may try.
    max_steps : int, default 50
        Steps within which the game must be won.
    cache : path-like or None, default ".cache/cvx-alfworld"
        Folder of earlier demonstrations and translations; None keeps nothing.

    Returns
    -------
    list of Played
        From the first observation to the winning command. The same for the same arguments.

    Raises
    ------
    GameNotFoundError, GameError
        If the game or the file beside it is missing or damaged.
    DemonstrationError
        If the expert does not win.
    """
    path = game_file(game)
    kept = None
    if cache is not None:
        name = f"{_key(path, seed, attempts, max_steps)}.json"
        kept = Path(cache) / "demonstrations" / name
    won = None if kept is None else _read(kept)
    if won is None:
        won = _attempts(path, range(seed, seed + attempts), max_steps, cache)
        if kept is not None:
            _write(kept, won)
    if not won:
        raise DemonstrationError(
            f"the expert did not win {path} in {max_steps} steps: "
            "raise max_steps or attempts, or take another game"
        )
    return won


def _key(path: Path, *arguments: int) -> str:
    beside = path.with_name("traj_data.json")
    parts = [_FORMAT, version("alfworld"), version("textworld"), ("expert",), *arguments]
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(path.read_bytes())
    digest.update(beside.read_bytes() if beside.is_file() else b"")
    return digest.hexdigest()


def _attempts(path: Path, seeds: range, max_steps: int, cache: str | Path | None) -> list[Played]:
    """Return how the game was won, or an empty list."""
    env = open_engine(path, cache, facts=True)
    try:
        for seed in seeds:
            with _seeded(seed):
                won = _play(env, _expert(path, max_steps), max_steps)
            if won:
                return won
        return []
    finally:
        env.unwrapped.close()


def _play(env: Any, choose: Callable[[Any, str], str], max_steps: int) -> list[Played]:
    """Play until the game is won; an empty list if it is not."""
    state = env.reset()
    goal = goal_of(state["feedback"])
    played: list[Played] = []
    command = ""
    while not state["won"] and len(played) < max_steps:
        seen = Observation(state["feedback"], goal, tuple(state["admissible_commands"]))
        try:
            command = choose(state, command)
        except StopIteration:
            break
        played.append(Played(seen, command))
        state, _, _ = env.step(command)
    return played if state["won"] else []


def _expert(path: Path, max_steps: int) -> Callable[[Any, str], str]:
    """Return alfworld's handcoded expert as a function, used as alfworld's `AlfredExpert` does."""
    experts = alfworld_module("agents.expert")
    expert = experts.HandCodedTWAgent(max_steps=max_steps)
    try:
        expert.reset(str(path))
    except (OSError, ValueError, KeyError) as error:
        beside = path.with_name("traj_data.json")
        raise GameError(f"the expert cannot read {beside} ({error!r}): get the file") from error

    def choose(state: Any, last: str) -> str:
        if not last:
            expert.observe(state["feedback"])
            return "look"
        try:
            # It tracks what it holds by the word "put" of the older grammar.
            told = "put" + last.removeprefix("move") if last.startswith("move ") else last
            command = str(expert.act(state, 0, state["won"], told))
        except (NameError, LookupError) as error:
            # Its own time-out and failure are NameErrors; an unforeseen room is a LookupError.
            raise StopIteration from error
        return command if command in state["admissible_commands"] else "look"

    return choose


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    # The expert draws from the random module itself.
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


def _read(path: Path) -> list[Played] | None:
    """Return what is kept: None for nothing (or damage), an empty list for a known failure."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [
            Played(Observation(text, goal, tuple(commands)), command)
            for text, goal, commands, command in rows
        ]
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, played: list[Played]) -> None:
    rows = [(*_fields(step.observation), step.command) for step in played]
    write_whole(path, json.dumps(rows).encode())


def _fields(seen: Observation) -> tuple[str, str, tuple[str, ...]]:
    return seen.text, seen.goal, seen.admissible_commands
