"""The protocols: which games are played in which order, and from which of them memory learns.

They answer different questions and are never mixed in one table. ``stream`` asks how memory does
on games that are new to it while it learns along the way, ``repeat`` what it makes of the same
games met again, ``transfer`` what it brings to games of which it has seen none, and from which it
learns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cvx.errors import InvalidInputError
from experiments.errors import GameError

if TYPE_CHECKING:
    from experiments.harness.setup import Setup


class Turn(NamedTuple):
    """One game in the order of a seed.

    Attributes
    ----------
    round : int
        How many rounds of own experience come before it.
    game : Path
        Its file.
    measured : bool
        Whether it is played with memory not learning.
    """

    round: int
    game: Path
    measured: bool = False


class Sizes(NamedTuple):
    """How much of a protocol is played unless something else is asked for."""

    seeds: int
    rounds: int
    games_per_round: int
    measured: int = 0


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way to play.

    Attributes
    ----------
    name, title : str
        As it is chosen, and what it does.
    measures : bool
        Whether success is judged on games from which memory does not learn.
    order : callable
        From a setup, the games to learn from and those to measure on, to the turns of a seed.
    generated, real : Sizes
        What is played with generated and with real games unless something else is asked for.
    """

    name: str
    title: str
    measures: bool
    order: Callable[[Setup, Sequence[Path], Sequence[Path]], list[Turn]]
    generated: Sizes
    real: Sizes

    def says(self, setup: Setup) -> str:
        """Return in words what a setup plays."""
        size = f"{setup.rounds} rounds of {setup.games_per_round} games"
        if self.measures:
            after = ", ".join(map(str, setup.points))
            size += f", measured on {setup.measured} others after {after} rounds"
        return f"{self.name} ({self.title}), {size}"


def _stream(setup: Setup, games: Sequence[Path], measured: Sequence[Path]) -> list[Turn]:  # noqa: ARG001
    size = setup.games_per_round
    own = _first(games, setup.rounds * size, "to play")
    return [Turn(place // size, game) for place, game in enumerate(own)]


def _repeat(setup: Setup, games: Sequence[Path], measured: Sequence[Path]) -> list[Turn]:  # noqa: ARG001
    own = _first(games, setup.games_per_round, "to play")
    return [Turn(number, game) for number in range(setup.rounds) for game in own]


def _transfer(setup: Setup, games: Sequence[Path], measured: Sequence[Path]) -> list[Turn]:
    size = setup.games_per_round
    own = _first(games, setup.rounds * size, "to learn from")
    unseen = _first(measured, setup.measured, "to measure on")
    turns = []
    for number in range(setup.rounds + 1):
        if number in setup.points:
            turns += [Turn(number, game, measured=True) for game in unseen]
        turns += [Turn(number, game) for game in own[number * size : (number + 1) * size]]
    return turns


def _first(games: Sequence[Path], n: int, why: str) -> Sequence[Path]:
    if len(games) < n:
        raise GameError(f"{n} games {why} were asked for, there are {len(games)}: ask for fewer")
    return games[:n]


_ALL = (
    Protocol(
        "transfer",
        "learn on some games, measured on games never seen while memory does not learn",
        True,
        _transfer,
        Sizes(seeds=5, rounds=3, games_per_round=12, measured=24),
        Sizes(seeds=5, rounds=10, games_per_round=19, measured=140),
    ),
    Protocol(
        "repeat",
        "the same games in every round, memory learns all the time",
        False,
        _repeat,
        Sizes(seeds=5, rounds=10, games_per_round=12),
        Sizes(seeds=5, rounds=10, games_per_round=60),
    ),
    Protocol(
        "stream",
        "each game once and new to memory, which learns all the time",
        False,
        _stream,
        Sizes(seeds=5, rounds=3, games_per_round=20),
        Sizes(seeds=3, rounds=7, games_per_round=20),
    ),
)
PROTOCOLS: Mapping[str, Protocol] = {protocol.name: protocol for protocol in _ALL}


def protocol_of(name: str) -> Protocol:
    """Return a protocol by its name.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    if name not in PROTOCOLS:
        raise InvalidInputError(
            f"there is no protocol {name!r}: choose from {', '.join(PROTOCOLS)}"
        )
    return PROTOCOLS[name]


def size_of(setup: Setup) -> int:
    """Return how many games an arm plays with one seed."""
    stand_ins = [Path(str(n)) for n in range(setup.rounds * setup.games_per_round)]
    unseen = [Path(str(n)) for n in range(setup.measured)]
    return len(protocol_of(setup.protocol).order(setup, stand_ins, unseen))
