"""fast-downward's planner in a process of its own, with bounds on time and memory.

The search has no bounds of its own: on a game of two objects in a large kitchen it takes five
gigabytes and does not end, and what it took it never gives back.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from experiments.errors import GameError

_MEMORY = 4 << 30  # bytes of address space
_GAVE_UP = 75  # EX_TEMPFAIL


def plan(game: Path, seconds: float, cache: Path | None = None) -> list[str] | None:
    """Return commands that win a game.

    Parameters
    ----------
    game : Path
        A game file.
    seconds : float
        How long the planner may search.
    cache : Path, optional
        As for `AlfworldGame`.

    Returns
    -------
    list of str or None
        Empty if the game cannot be won, None if time or memory ran out before that was known.

    Raises
    ------
    GameError
        If the game cannot be loaded.
    """
    command = [sys.executable, "-m", "experiments.alfworld.planner", str(game), str(cache or "")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        found: list[str] = json.loads(done.stdout.splitlines()[-1])
        return found
    if done.returncode == _GAVE_UP or done.returncode < 0:
        return None
    raise GameError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(game))


def main(game: str, cache: str) -> int:
    """Print the plan for a game as JSON."""
    from experiments.alfworld.engine import open_engine

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        env = open_engine(Path(game), cache or None)
    except GameError as error:
        print(error, file=sys.stderr)
        return 1
    env.reset()
    try:
        print(json.dumps(env.plan()))
    except MemoryError:
        return _GAVE_UP
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
