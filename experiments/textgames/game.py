"""Protocols of a text game and of a player, and the result of a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from experiments.errors import GameError
from experiments.plans import Demonstrations, Observation


class Game(Protocol):
    """Anything that is played by commands."""

    def reset(self) -> Observation:
        """Start an episode."""
        ...

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; return what is seen, the reward and whether it is over.

        The rewards of a game that is won add up to 1.
        """
        ...


class Result(NamedTuple):
    """How one game went.

    Attributes
    ----------
    won : bool
    steps : int
        Commands given.
    attempts : int
        Plans tried.
    decisions : int
        How often memory was asked what to do.
    seconds : float
        What that took, embedding apart.
    score : float
        The sum of rewards, 1 in a game that was won.
    """

    won: bool
    steps: int
    attempts: int
    decisions: int
    seconds: float
    score: float


class Player(Protocol):
    """What plays in an arm."""

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        ...

    def play(self, game: Game) -> Result:
        """Play one game to its end."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return what it needs beside its memory to go on, as JSON can hold it."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state, over the memory as it was then."""
        ...


def offered(seen: Observation, last: str | None) -> Sequence[str]:
    """Return the admissible commands after the last one.

    Raises
    ------
    GameError
        There is none, before the game is over.
    """
    if not seen.admissible_commands:
        raise GameError(
            f"there is no command after {last!r}, and the game is not over: an observation needs "
            "admissible_commands as long as there is something to decide"
        )
    return seen.admissible_commands
