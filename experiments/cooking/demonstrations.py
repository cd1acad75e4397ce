"""Winning demonstrations: the way that the game itself knows, played."""

from __future__ import annotations

from pathlib import Path

from experiments.cooking.engine import CookingGame
from experiments.errors import DemonstrationError
from experiments.plans import Played


def demonstrate(game: str | Path, *, max_steps: int) -> list[Played]:
    """Show how a game is won, by its own walkthrough.

    Commands of the walkthrough that would do nothing, such as opening what is open, are left out.

    Returns
    -------
    list of Played
        From the first observation to the winning command.

    Raises
    ------
    GameNotFoundError, GameError
        The game is missing or damaged.
    DemonstrationError
        The walkthrough does not win within the steps.
    """
    played: list[Played] = []
    with CookingGame(game, max_steps=max_steps) as engine:
        commands = engine.walkthrough()
        seen, over = engine.reset(), False
        for command in commands:
            if command in seen.admissible_commands and not over:
                played.append(Played(seen, command))
                seen, _, over = engine.step(command)
        if not engine.won:
            raise DemonstrationError(
                f"the walkthrough of {game} does not win in {max_steps} steps: raise max_steps, "
                "or take another game"
            )
    return played
