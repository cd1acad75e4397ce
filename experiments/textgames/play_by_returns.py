"""Plays a game whose commands are chosen by what they returned."""

from __future__ import annotations

import time
from random import Random

from experiments.plans import Observation, Walk, complete
from experiments.textgames.game import Game, Result, offered


def play_by_returns(game: Game, seen: Observation, walk: Walk, rng: Random) -> Result:
    """Play a game that has begun to its end; one that is broken off leaves nothing.

    Parameters
    ----------
    game : Game
    seen : Observation
        The first.
    walk : Walk
        Chooses the commands, and is told how they went.
    rng : Random
        Decides between equals.

    Raises
    ------
    GameError
        The game offers no command.
    """
    command, steps, score, over, seconds = None, 0, 0.0, False, 0.0
    try:
        while not over:
            before = offered(seen, command)
            start = time.perf_counter()
            command = walk.choose(before, rng)
            seconds += time.perf_counter() - start
            seen, reward, over = game.step(command)
            walk.went(command, reward, before, seen.admissible_commands)
            steps, score = steps + 1, score + reward
    except BaseException:
        walk.discard()
        raise
    finally:
        walk.rest()
    walk.close(score)
    return Result(complete(score), steps, 1, steps, seconds, score)
