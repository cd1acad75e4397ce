"""Time of a game step: our ALFWorld engine beside the stock TextWorld environment.

Generated games are played along the way to win that the expert found on ours, whose caches are warm
from it: as for an agent that plays a game again. CPU time, which other processes do not stretch.

    python -m benches.engine [--games 6]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alfworld.agents.environment.alfred_tw_env import (  # type: ignore[import-untyped]
    AlfredDemangler,
    AlfredInfos,
)
from textworld.core import EnvInfos  # type: ignore[import-untyped]
from textworld.envs.pddl import PddlEnv  # type: ignore[import-untyped]

from experiments.alfworld.demonstrations import demonstrate
from experiments.alfworld.engine import AlfworldGame
from experiments.alfworld.generator import generate_games

SEED, MOST_STEPS, MUST = 5, 100, 10.0


def busy(step: Callable[[str], Any], commands: list[str]) -> float:
    """CPU seconds that these commands take."""
    start = time.process_time()
    for command in commands:
        step(command)
    return time.process_time() - start


def stock(path: Path, commands: list[str]) -> float:
    infos = EnvInfos(admissible_commands=True, won=True)
    env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))
    env.load(str(path))
    env.reset()
    return busy(env.step, commands)


def ours(path: Path, commands: list[str], cache: Path) -> float:
    with AlfworldGame(path, max_steps=MOST_STEPS, cache=cache) as game:
        game.reset()
        return busy(game.step, commands)


def main() -> int:
    """Measure and print; return 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=6)
    args = parser.parse_args()
    times, steps = {"ours": 0.0, "stock": 0.0}, 0
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        for path in generate_games(args.games, SEED, Path(name) / "games"):
            won = demonstrate(path, attempts=10, max_steps=MOST_STEPS, cache=cache)
            commands = [step.command for step in won]
            times["ours"] += ours(path, commands, cache)
            times["stock"] += stock(path, commands)
            steps += len(commands)
    ratio = times["stock"] / times["ours"]
    each = ", ".join(f"{who} {1e3 * spent / steps:.2f} ms" for who, spent in times.items())
    verdict = "met" if ratio > MUST else "MISSED"
    print(f"a step of {args.games} games, seed {SEED}, {steps} steps: {each}")
    print(f"stock / ours {ratio:.1f}x > {MUST:g} {verdict}")
    return int(ratio <= MUST)


if __name__ == "__main__":
    sys.exit(main())
