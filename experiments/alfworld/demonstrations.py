"""Winning demonstrations: how a game is won, shown once.

Two demonstrators come with the packages. alfworld's handcoded expert looks for things as a player
would, opening and going about, and takes under a second. fast-downward's planner knows where
everything is and takes one to twenty seconds, in a process of its own. Losing attempts are never
returned.
"""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.alfworld.engine import game_file, goal_of, open_engine
from experiments.alfworld.files import write_whole
from experiments.alfworld.package import alfworld_module
from experiments.alfworld.planner import plan
from experiments.errors import DemonstrationError, GameError
from experiments.plans import Observation, Played

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_CACHE = ".cache/cvx-alfworld"
Demonstrator = Literal["expert", "planner"]
_FORMAT = 1


def demonstrate(
    game: str | Path,
    *,
    by: tuple[Demonstrator, ...] = ("expert", "planner"),
    seed: int = 0,
    attempts: int = 3,
    max_steps: int = 50,
    planner_s: float = 60.0,
    cache: str | Path | None = DEFAULT_CACHE,
) -> list[Played]:
    """Show how a game is won.

    Parameters
    ----------
    game : path-like
        A ``game.tw-pddl`` file with ``traj_data.json`` beside it, or its folder.
    by : tuple of {"expert", "planner"}, default: both
        Who tries, in this order, until one wins.
    seed : int, default 0
        Seeds the expert's choices; attempt ``i`` uses ``seed + i``. The random state of the
        caller stays as it was.
    attempts : int, default 3
        How often the expert may try.
    max_steps : int, default 50
        Steps within which the game must be won.
    planner_s : float, default 60
        Seconds after which the planner is stopped. It takes one to twenty on most games, and for
        ever on some that ask for two objects.
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
        If none of the demonstrators wins.
    """
    path = game_file(game)
    kept = (
        None if cache is None else Path(cache) / "demonstrations" / f"{_key(path, locals())}.json"
    )
    won = None if kept is None else _read(kept)
    if won is None:
        won, sure = [], True
        for who in by:
            tried = won or _attempt(path, who, seed, attempts, max_steps, planner_s, cache)
            won, sure = tried or [], sure and tried is not None
        # A planner stopped by the clock may do better another day: that is not kept.
        if kept is not None and (won or sure):
            _write(kept, won)
    if not won:
        raise DemonstrationError(
            f"{' and '.join(by)} did not win {path} in {max_steps} steps: "
            "raise max_steps or attempts, or take another game"
        )
    return won


def _key(path: Path, arguments: dict[str, Any]) -> str:
    beside = path.with_name("traj_data.json")
    parts: list[object] = [_FORMAT, version("alfworld"), version("textworld")]
    parts += [arguments[name] for name in ("by", "seed", "attempts", "max_steps")]
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(path.read_bytes())
    digest.update(beside.read_bytes() if beside.is_file() else b"")
    return digest.hexdigest()


def _attempt(
    path: Path,
    who: Demonstrator,
    seed: int,
    attempts: int,
    max_steps: int,
    planner_s: float,
    cache: str | Path | None,
) -> list[Played] | None:
    """Return how the game was won, an empty list for a loss, None if the planner was stopped."""
    env = open_engine(path, cache, facts=who == "expert")
    try:
        if who == "planner":
            found = plan(path, planner_s, None if cache is None else Path(cache))
            commands = iter(found or ())
            won = _play(env, lambda _state, _last: next(commands), max_steps)
            return None if found is None else won
        for i in range(attempts):
            with _seeded(seed + i):
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
        raise GameError(
            f"the expert cannot read {beside} ({error!r}): get the file, or use by=('planner',)"
        ) from error

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
